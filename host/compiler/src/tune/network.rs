//! A whole model with what was found, beside what the rules choose.

use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Instant;

use crate::plan::default_function;
use crate::runtime::dlpack::{TensorBuffer, TensorRef};
use crate::runtime::model::Model as Compiled;
use crate::runtime::parallel::ThreadPool;
use crate::session::{Model, Options, Session};
use crate::target::Target;
use crate::validate::Unjudged;

/// Rounds, in each of which both run by turns.
const ROUNDS: usize = 12;
/// What a round of one takes at least, in seconds.
const ROUND: f64 = 0.03;

/// Milliseconds of a run of a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NetworkTimes {
    /// With what the rules choose.
    pub default: f64,
    /// With what is in a database.
    pub tuned: f64,
}

/// Runs a model by turns with and without what is in a database, on random inputs.
///
/// # Errors
/// When it cannot be run on such inputs: a text says why.
pub fn compare_network(
    session: &Session,
    model: &Model,
    target: &Target,
    options: &Options,
    threads: NonZeroUsize,
    database: &Path,
) -> Result<NetworkTimes, String> {
    let pool = ThreadPool::new(threads).map_err(|error| error.to_string())?;
    let name = default_function(&model.module).map_err(|error| error.to_string())?;
    let function = model.module.get_str(&name).ok_or("there is no such function")?;
    let compile = |tune_db| {
        let mut options = Options { tune_db, measures: false, ..options.clone() };
        options.code.function = Some(name.clone());
        let executable = session.compile(model, target, &options);
        let executable = executable.map_err(|error| error.to_string())?;
        executable.jit().map_err(|error| error.to_string())
    };
    let models = [compile(None)?, compile(Some(database.to_owned()))?];
    let unjudged = Unjudged::new(function, &name, 0, &options.code.ranges)?;
    let case = unjudged.computed_by(&models[0]).map_err(|error| error.to_string())?;
    if let Err(mismatch) = case.check(&models[1]).map_err(|error| error.to_string())? {
        return Err(format!("the tuned model computes something else: {mismatch}"));
    }
    let inputs = case.inputs(&models[0]).map_err(|error| error.to_string())?;
    let mut times: [Vec<f64>; 2] = Default::default();
    for _ in 0..ROUNDS {
        for (model, times) in models.iter().zip(&mut times) {
            times.push(of_a_round(model, &inputs, &pool)?);
        }
    }
    let [default, tuned] = times.map(median);
    Ok(NetworkTimes { default, tuned })
}

/// Milliseconds of the fastest run of a round.
fn of_a_round(model: &Compiled, inputs: &[TensorBuffer], pool: &ThreadPool) -> Result<f64, String> {
    let inputs: Vec<TensorRef<'_>> = inputs.iter().map(TensorBuffer::as_ref).collect();
    let mut context = model.context().map_err(|error| error.to_string())?;
    let mut run = || {
        let before = Instant::now();
        context.run(&inputs, Some(pool)).map_err(|error| error.to_string())?;
        Ok::<f64, String>(before.elapsed().as_secs_f64())
    };
    // The first brings its memory.
    run()?;
    let start = Instant::now();
    let mut least = run()?;
    while start.elapsed().as_secs_f64() < ROUND {
        least = least.min(run()?);
    }
    Ok(least * 1e3)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
