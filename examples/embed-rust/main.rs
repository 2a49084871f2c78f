//! A program that compiles a model itself, and runs it with batches of several sizes.
//!
//! ```text
//! cargo run --release --example embed-rust -- target/release/tenon registry.toml
//! ```

use std::env;
use std::error::Error;
use std::path::{Path, PathBuf};

use tenon_compiler::io::{Array, read_npz};
use tenon_compiler::passes::Statistics;
use tenon_compiler::runtime::dlpack::TensorRef;
use tenon_compiler::runtime::{from_array, to_array};
use tenon_compiler::session::{Dims, Installation, Observer, Options, Session, Watch};
use tenon_compiler::target::Target;

/// What the session says goes to standard error.
struct Aloud;

impl Observer for Aloud {
    fn begins(&mut self, what: &str) {
        eprintln!("{what} …");
    }

    fn warns(&mut self, warning: &str) {
        eprintln!("warning: {warning}");
    }

    fn says(&mut self, text: &str) {
        eprintln!("{text}");
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<PathBuf> = env::args_os().skip(1).map(PathBuf::from).collect();
    let [program, registry] = arguments.as_slice() else {
        return Err("usage: embed-rust TENON REGISTRY.toml".into());
    };
    let digits = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/digits");

    // The session finds the plugins; it opens each when it is needed first.
    let session = Session::open(&Installation::at(program), std::slice::from_ref(registry))?;
    let model = session.read(&digits.join("digits.onnx"), &Dims::new())?;

    // Passes, then code. `session.compile` is both, for who does not watch.
    let (target, options) = (Target::native()?, Options::default());
    let mut watch = Watch {
        instruments: vec![Box::new(Statistics::default())],
        observer: Box::new(Aloud),
        ..Watch::default()
    };
    let lowered = session.lower(&model, &target, &options, &mut watch)?;
    let executable = session.generate(&lowered, &target, &options)?;

    // The model is immutable and may be shared by threads; each brings a context, which holds the memory of its runs.
    let digits_model = executable.jit()?;
    let mut context = digits_model.context()?;
    let given = read_npz(&digits.join("test_images.npz"))?;
    let named = |name: &str| {
        let found = given.iter().find(|(found, _)| found == name);
        found.map(|(_, array)| array).ok_or("the archive lacks an array")
    };
    let (images, labels) = (named("image")?, named("label")?);
    let mut right = 0;
    // The batch is open in the model, so each call chooses its own.
    for (first, count) in [(0, 1), (1, 9), (10, 350)] {
        let batch = from_array(&rows(images, first, count))?;
        let inputs: [TensorRef<'_>; 1] = [batch.as_ref()];
        let outputs = context.run(&inputs, None)?;
        let probabilities = to_array(&outputs[0], &digits_model.outputs()[0])?;
        let guesses = probabilities.data.chunks_exact(4 * 10).map(most_likely);
        let truths = labels.data.chunks_exact(8).skip(first).map(|label| usize::from(label[0]));
        right += guesses.zip(truths).filter(|(guess, truth)| guess == truth).count();
    }
    println!("{right} of {} right", images.shape[0]);
    Ok(())
}

/// Some rows of an array along its first axis.
fn rows(array: &Array, first: usize, count: usize) -> Array {
    let row = array.data.len() / array.shape[0];
    let mut shape = array.shape.clone();
    shape[0] = count;
    let data = array.data[first * row..(first + count) * row].to_vec();
    Array { dtype: array.dtype, shape, data }
}

/// The place of the greatest of ten floats.
fn most_likely(probabilities: &[u8]) -> usize {
    let values = probabilities.as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes));
    let greatest = values.enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
    greatest.map_or(0, |(place, _)| place)
}
