//! `run` for a target with threads of its own.

use super::output::Failure;
use super::run::{Ran, RunArgs};
use tenon_compiler::executable::DeviceProgram;

/// Runs a program on the first device.
#[cfg(feature = "cuda")]
pub(super) fn on_device(args: &RunArgs, program: &DeviceProgram) -> Result<Ran, Failure> {
    use std::time::Instant;

    use super::kernel_times::{KernelTimes, Speed};
    use super::run::inputs_for;
    use tenon_compiler::device::Cuda;
    use tenon_compiler::runtime::model::ModelError;
    use tenon_compiler::runtime::profile::Profile;
    use tenon_compiler::runtime::to_array;

    let failed = |error| {
        Failure::new(format!("{error}"))
            .help("`tenon compile --emit ptx` writes what would run on one")
    };
    let device = Cuda::open().map_err(failed)?;
    let mut loaded = device.load(program).map_err(failed)?;
    let inputs = inputs_for(args, loaded.inputs())?;
    let (mut results, mut times) = (Vec::new(), Vec::with_capacity(args.repeat as usize));
    for _ in 0..args.repeat {
        let start = Instant::now();
        results = loaded.run(&inputs).map_err(failed)?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    let outputs = loaded.outputs().iter().zip(&results);
    let outputs = outputs.map(|(spec, tensor)| Ok((spec.name.clone(), to_array(tensor, spec)?)));
    let outputs = outputs.collect::<Result<_, ModelError>>()?;
    Ok(Ran {
        outputs,
        times,
        threads: 0,
        memory: None,
        kernels: KernelTimes::of(Vec::new(), &Profile::default(), Speed::default()),
    })
}

/// There is no way to a device.
#[cfg(not(feature = "cuda"))]
pub(super) fn on_device(_: &RunArgs, _: &DeviceProgram) -> Result<Ran, Failure> {
    Err(Failure::new("this program was built without a way to devices")
        .help("`tenon compile --emit ptx` writes what would run on one"))
}
