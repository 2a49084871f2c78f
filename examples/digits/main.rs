//! The digits demo: runs the compiled network on 360 images that it never saw, and shows how it did.
//!
//! ```text
//! tenon compile examples/digits/digits.onnx -D batch=360 -o .cache/digits.so
//! cargo run --release --example digits -- .cache/digits.so
//! ```

use std::{
    env,
    error::Error,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use tenon_compiler::io::{Array, NpyType, read_npz};

const SIZE: usize = 8;
/// Digits that stand beside each other.
const COLUMNS: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let library = PathBuf::from(env::args_os().nth(1).ok_or("usage: digits LIBRARY.so")?);
    let images = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/digits/test_images.npz");
    let (probabilities, took) = run(&library, &images)?;

    let given = read_npz(&images)?;
    let pixels = floats(named(&given, "image")?)?;
    let labels = integers(named(&given, "label")?)?;
    let answers: Vec<Answer> = pixels
        .chunks_exact(SIZE * SIZE)
        .zip(&labels)
        .zip(probabilities.chunks_exact(10))
        .map(|((image, &truth), p)| Answer::new(image, truth, p))
        .collect();

    let (right, wrong): (Vec<_>, Vec<_>) = answers.iter().partition(|a| a.guess == a.truth);
    println!("A few of the {} images:\n", answers.len());
    right.iter().take(2 * COLUMNS).collect::<Vec<_>>().chunks(COLUMNS).for_each(show);
    if !wrong.is_empty() {
        println!("What it got wrong:\n");
        wrong.iter().collect::<Vec<_>>().chunks(COLUMNS).for_each(show);
    }
    println!(
        "{} of {} right: {:.1} %, in {:.1} ms with starting the program",
        right.len(),
        answers.len(),
        100.0 * right.len() as f64 / answers.len() as f64,
        took.as_secs_f64() * 1e3,
    );
    Ok(())
}

/// Runs the library on the images: ten probabilities for each, and the time it took.
fn run(library: &Path, images: &Path) -> Result<(Vec<f32>, Duration), Box<dyn Error>> {
    let output = library.with_extension("npz");
    // target/<profile>/examples/digits, so the program is two folders up.
    let tenon = env::current_exe()?
        .ancestors()
        .nth(2)
        .expect("examples lie in target/<profile>/examples")
        .join("tenon");
    let start = Instant::now();
    let status = Command::new(tenon)
        .arg("run")
        .arg(library)
        .arg("--inputs")
        .arg(images)
        .arg("--output")
        .arg(&output)
        .status()?;
    let took = start.elapsed();
    if !status.success() {
        return Err(format!("tenon run: {status}").into());
    }
    let arrays = read_npz(&output)?;
    Ok((floats(named(&arrays, "probability")?)?, took))
}

fn named<'a>(arrays: &'a [(String, Array)], name: &str) -> Result<&'a Array, String> {
    arrays.iter().find(|a| a.0 == name).map(|a| &a.1).ok_or_else(|| format!("no array {name}"))
}

fn floats(array: &Array) -> Result<Vec<f32>, &'static str> {
    if array.dtype != NpyType::F32 {
        return Err("the array is not float32");
    }
    Ok(array.data.as_chunks().0.iter().map(|&x| f32::from_le_bytes(x)).collect())
}

fn integers(array: &Array) -> Result<Vec<i64>, &'static str> {
    if array.dtype != NpyType::I64 {
        return Err("the array is not int64");
    }
    Ok(array.data.as_chunks().0.iter().map(|&x| i64::from_le_bytes(x)).collect())
}

struct Answer<'a> {
    image: &'a [f32],
    truth: i64,
    guess: i64,
    sure: f32,
}

impl<'a> Answer<'a> {
    fn new(image: &'a [f32], truth: i64, probabilities: &[f32]) -> Self {
        let (guess, &sure) = probabilities
            .iter()
            .enumerate()
            .max_by(|a, b| a.1.total_cmp(b.1))
            .expect("ten classes");
        Self { image, truth, guess: guess as i64, sure }
    }

    /// One line of the image, each pixel two characters wide, so that it looks square.
    fn line(&self, y: usize) -> String {
        let shade = |v: f32| [' ', '░', '▒', '▓', '█'][(v.clamp(0.0, 1.0) * 4.0).round() as usize];
        self.image[y * SIZE..(y + 1) * SIZE].iter().flat_map(|&v| [shade(v); 2]).collect()
    }

    fn caption(&self) -> String {
        let sure = 100.0 * self.sure;
        if self.guess == self.truth {
            format!("{} ({sure:.0} %)", self.guess)
        } else {
            format!("{} ({sure:.0} %), is {}", self.guess, self.truth)
        }
    }
}

/// Draws answers beside each other, what the network says below each.
fn show(answers: &[&&Answer]) {
    let row = |cell: &dyn Fn(&Answer) -> String| {
        let cells: Vec<_> = answers.iter().map(|a| format!("{:<16}", cell(a))).collect();
        println!("  {}", cells.join("   ").trim_end());
    };
    for y in 0..SIZE {
        row(&|a| a.line(y));
    }
    row(&|a| a.caption());
    println!();
}
