//! What a core computes at most: multiply-adds of vectors that wait for nothing.

use std::time::Instant;

use super::output::Failure;
use tenon_compiler::diagnostics::Source;
use tenon_compiler::executable::{CompileOptions, Executable};
use tenon_compiler::ir::Cx;
use tenon_compiler::runtime::dlpack::{DataType, TensorBuffer};
use tenon_compiler::target::Target;
use tenon_compiler::text::{NoWeights, parse_module};

/// Steps of each sum; all of them together take some milliseconds.
const STEPS: usize = 200_000;
/// The best of so many runs is what the machine can.
const RUNS: usize = 5;

/// Operations a second on elements of 32 bits that one thread does at most, measured now; a multiply-add is two.
pub(super) fn operations_per_second(target: &Target) -> Result<f64, Failure> {
    let lanes = target.lanes(4) as usize;
    // As many as stay in registers beside what they are made of: more than any core has in flight.
    let sums = target.vector_registers().saturating_sub(4).clamp(4, 20) as usize;
    let source = Source::new("peak", text(lanes, sums));
    let module = parse_module(&Cx::default(), &source, &mut NoWeights);
    let module = module.map_err(Failure::from_diagnostics)?;
    let executable = Executable::compile(&module, target, &CompileOptions::default())?;
    let model = executable.jit()?;
    let mut context = model.context()?;
    let halves = 0.5f32.to_le_bytes().repeat(lanes);
    let input = TensorBuffer::from_bytes(&halves, &[lanes as i64], DataType::F32)?;
    let mut best = f64::INFINITY;
    for _ in 0..RUNS {
        let start = Instant::now();
        context.run(&[input.as_ref()], None)?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok((2 * sums * lanes * STEPS) as f64 / best)
}

/// A module of `sums` sums of `lanes` lanes each.
fn text(lanes: usize, sums: usize) -> String {
    let row = |sum: usize| format!("%s[ramp({}, 1, {lanes})]", sum * lanes);
    let x = format!("%x[ramp(0, 1, {lanes})]");
    let start: String = (0..sums).map(|sum| format!("  {} = {x}\n", row(sum))).collect();
    let step = |sum: usize| format!("    {} = {} * {x} + {x}\n", row(sum), row(sum));
    let steps: String = (0..sums).map(step).collect();
    let rows: Vec<String> = (0..sums).map(row).collect();
    format!(
        "fn @main(%x: f32[{lanes}]) {{
  %y = call_tir(@peak, %x) {{ out = f32[{lanes}] }}
  ret %y
}}

prim @peak(%x: f32[{lanes}], out %y: f32[{lanes}]) {{
  alloc %s: f32[{}] \"local\"
{start}  for %t in 0..{STEPS} {{
{steps}  }}
  %y[ramp(0, 1, {lanes})] = {}
}}
",
        sums * lanes,
        rows.join(" + ")
    )
}
