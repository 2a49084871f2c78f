//! What `docs/numerics.md` promises of compiled code as a whole: the same bits for any number of threads and in every run, one
//! rounding at most where floats may be contracted, none but what is written where they are strict.

use std::num::NonZeroUsize;

use libtest_mimic::Failed;
use tenon_compiler::eval::Tensor;
use tenon_compiler::runtime::parallel::ThreadPool;
use tenon_compiler::target::Target;

use crate::run::{Compiled, evaluated_behind, run_on};

/// Programs that are spread over threads, whose sums are long, and whose tiles are uneven.
const NETWORK: &str = "fn @main(%x: f32[3, 16, 29, 31], %w: f32[40, 16, 3, 3], %a: f32[61, 517], %b: f32[517, 83], %c: f32[97, 517]) {
  %conv = nn.conv2d(%x, %w) { padding = [1, 1, 1, 1] }
  %pool = nn.avg_pool2d(%conv) { pool_size = [3, 3], strides = [2, 2] }
  %mean = mean(%conv) { axis = [2, 3] }
  %columns = matmul(%a, %b)
  %dots = nn.dense(%a, %c)
  %soft = nn.softmax(%dots)
  %all = sum(%soft)
  %norm = nn.lrn(%pool) { size = 5 }
  ret (%conv, %pool, %mean, %columns, %dots, %soft, %all, %norm)
}
";

/// Sums and products alone, of which processors make the same bits.
const SUMS: &str = "fn @main(%x: f32[2, 16, 13, 11], %w: f32[24, 16, 3, 3], %a: f32[19, 133], %b: f32[133, 40], %c: f32[37, 133]) {
  %conv = nn.conv2d(%x, %w) { padding = [1, 1, 1, 1] }
  %relu = nn.relu(%conv)
  %scaled = multiply(%relu, const(f32[], 0.3))
  %pool = nn.avg_pool2d(%scaled) { pool_size = [2, 2], strides = [2, 2] }
  %rows = sum(%conv) { axis = [2, 3] }
  %columns = matmul(%a, %b)
  %dots = nn.dense(%a, %c)
  %most = max(%dots) { axis = [1] }
  ret (%conv, %pool, %rows, %columns, %dots, %most)
}
";

const SHAPES: [&[usize]; 5] =
    [&[3, 16, 29, 31], &[40, 16, 3, 3], &[61, 517], &[517, 83], &[97, 517]];
const SHAPES_OF_SUMS: [&[usize]; 5] =
    [&[2, 16, 13, 11], &[24, 16, 3, 3], &[19, 133], &[133, 40], &[37, 133]];

/// Numbers whose sums are rounded at every step.
fn numbers(shape: &[usize]) -> Tensor {
    let count: usize = shape.iter().product();
    let number = |at: usize| ((at * 2_654_435_761) % 10_007) as f32 / 10_007.0 - 0.37;
    Tensor::from_vec(shape.to_vec(), (0..count).map(number).collect())
}

fn bits(results: &[Tensor]) -> Vec<Vec<u8>> {
    results.iter().map(|tensor| tensor.bytes().to_vec()).collect()
}

const SHAPE_OF_IMAGES: &[usize] = &[2, 32, 29, 31];

/// A convolution with a constant kernel, which Winograd's algorithm computes where it may.
fn convolution() -> String {
    let kernel = floats(&numbers(&[32, 32, 3, 3]));
    let kernel: Vec<String> = kernel.iter().map(|weight| format!("{weight:?}")).collect();
    format!(
        "fn @main(%x: f32[2, 32, 29, 31]) {{
  %y = nn.conv2d(%x, const(f32[32, 32, 3, 3], [{}])) {{ padding = [1, 1, 1, 1] }}
  ret (%y,)
}}
",
        kernel.join(", ")
    )
}

/// The same bits on any number of threads, in each run, and of code that is made again.
pub(crate) fn threads() -> Result<(), Failed> {
    have_equal_bits(NETWORK, &SHAPES.map(numbers))?;
    have_equal_bits(&convolution(), &[numbers(SHAPE_OF_IMAGES)])
}

fn have_equal_bits(text: &str, inputs: &[Tensor]) -> Result<(), Failed> {
    let target = Target::parse("native,threads=4")?;
    let compiled = Compiled::new(text, &target)?;
    let expected = bits(&compiled.run(inputs, None)?);
    for threads in [1, 2, 3, 4, 7] {
        let pool = ThreadPool::new(NonZeroUsize::new(threads).ok_or("some threads")?)?;
        for _ in 0..2 {
            if bits(&compiled.run(inputs, Some(&pool))?) != expected {
                return Err(format!("{threads} threads compute something else").into());
            }
        }
    }
    match Compiled::new(text, &target)?.objects() == compiled.objects() {
        true => Ok(()),
        false => Err("the same module gives other code".into()),
    }
}

/// Strict floats are what the evaluator makes of the programs, on every processor.
pub(crate) fn strict() -> Result<(), Failed> {
    let inputs: Vec<Tensor> = SHAPES_OF_SUMS.into_iter().map(numbers).collect();
    let expected = bits(&evaluated_behind(SUMS, "relax.LegalizeOps", &inputs)?);
    let baseline = format!("{}-linux-gnu,float=strict", std::env::consts::ARCH);
    for target in ["native,float=strict", &baseline, "native,float=strict,threads=1"] {
        let found = bits(&run_on(SUMS, &inputs, &Target::parse(target)?)?);
        for (number, (found, expected)) in found.iter().zip(&expected).enumerate() {
            if found != expected {
                return Err(format!("{target}: result {number} is rounded otherwise").into());
            }
        }
    }
    Ok(())
}

/// A product and a sum of one expression are rounded once or twice; where floats are strict, twice.
pub(crate) fn contraction() -> Result<(), Failed> {
    let text = "fn @main(%x: f32[64], %y: f32[64], %z: f32[64]) {
  %p = multiply(%x, %y)
  %s = add(%p, %z)
  ret (%s,)
}
";
    let inputs: Vec<Tensor> = [1, 2, 3]
        .into_iter()
        .map(|seed| {
            let number = |at: usize| 1.0 + ((at * seed * 7919) % 4093) as f32 / 4093.0;
            Tensor::from_vec(vec![64], (0..64).map(number).collect())
        })
        .collect();
    let columns: Vec<Vec<f32>> = inputs.iter().map(floats).collect();
    let row = |at: usize| [columns[0][at], columns[1][at], columns[2][at]];
    let twice = |at| {
        let [x, y, z] = row(at);
        x * y + z
    };
    let once = |at| {
        let [x, y, z] = row(at);
        x.mul_add(y, z)
    };
    if (0..64).all(|at| once(at) == twice(at)) {
        return Err("the numbers do not tell one rounding from two".into());
    }
    let strict = run_on(text, &inputs, &Target::parse("native,float=strict")?)?;
    if floats(&strict[0]) != (0..64).map(twice).collect::<Vec<f32>>() {
        return Err("strict floats are contracted".into());
    }
    let target = Target::native()?;
    let found = floats(&run_on(text, &inputs, &target)?[0]);
    let wanted: Vec<f32> = match target.has_fma() {
        true => (0..64).map(once).collect(),
        false => (0..64).map(twice).collect(),
    };
    match found == wanted {
        true => Ok(()),
        false => Err("a product and its sum are not what the processor's instruction makes".into()),
    }
}

/// A convolution by Winograd's algorithm is off by a hundred-thousandth of its largest element at most.
pub(crate) fn winograd() -> Result<(), Failed> {
    let (text, inputs) = (convolution(), [numbers(SHAPE_OF_IMAGES)]);
    let [strict, default] = ["native,float=strict", "native"]
        .map(|target| run_on(&text, &inputs, &Target::parse(target)?));
    let (strict, default) = (floats(&strict?[0]), floats(&default?[0]));
    if strict == default {
        return Err("the algorithm is not used".into());
    }
    let largest = strict.iter().fold(0f32, |most, value| most.max(value.abs()));
    let off = strict.iter().zip(&default).map(|(a, b)| (a - b).abs()).fold(0f32, f32::max);
    match off <= 1e-5 * largest {
        true => Ok(()),
        false => Err(format!("an element is off by {off} of {largest}").into()),
    }
}

fn floats(tensor: &Tensor) -> Vec<f32> {
    let (floats, _) = tensor.bytes().as_chunks::<4>();
    floats.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect()
}
