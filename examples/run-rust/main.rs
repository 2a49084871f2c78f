//! A program that runs a library which `tenon compile` made, and links nothing of the compiler.
//!
//! ```text
//! cargo run --release -p tenon-runtime --example run-rust -- digits.so examples/digits/test_images.npz
//! ```

use std::env;
use std::error::Error;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use tenon_runtime::from_array;
use tenon_runtime::functions::Library;
use tenon_runtime::io::read_npz;
use tenon_runtime::parallel::ThreadPool;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<PathBuf> = env::args_os().skip(1).map(PathBuf::from).collect();
    let [library, arrays] = arguments.as_slice() else {
        return Err("usage: run-rust LIBRARY ARRAYS.npz".into());
    };
    let model = Library::open(library)?.function("main")?;
    model.inputs().iter().for_each(|input| println!("takes {input}"));

    // The arrays of the file that are inputs of the model.
    let mut named = read_npz(arrays)?;
    named.retain(|(name, _)| model.inputs().iter().any(|input| input.name == *name));
    let inputs = model.arrange(&named)?.into_iter().map(from_array);
    let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
    let inputs: Vec<_> = inputs.iter().map(|input| input.as_ref()).collect();

    // Threads are the caller's: a pool may serve any number of models.
    let pool = ThreadPool::new(NonZeroUsize::MIN.saturating_add(1))?;
    let outputs = model.run(&inputs, Some(&pool))?;
    for (output, spec) in outputs.iter().zip(model.outputs()) {
        println!("gives {spec} of shape {:?}", output.shape());
    }
    Ok(())
}
