//! The process that takes times: it schedules, compiles, compares, and only then measures.
//!
//! Whatever a candidate does to it, whoever asked is another process. A time counts when the result is the judge's: the evaluator's, or
//! where that would take too long, what the program computes as it is written, compiled without a schedule and run on one thread.

use std::collections::HashMap;
use std::io::{self, BufRead, Write};
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use super::message::{Answer, Candidate, Looked, Request};
use crate::eval::Limits;
use crate::executable::Scheduled;
use crate::ir::{Context, Function, Module};
use crate::plan::DimRanges;
use crate::registry::begin_child;
use crate::runtime::dlpack::{TensorBuffer, TensorRef};
use crate::runtime::model::{Model, RunContext};
use crate::runtime::parallel::ThreadPool;
use crate::session::{self, Options, Pipeline, Session, Watch};
use crate::target::Target;
use crate::validate::{Case, Unjudged};

/// Steps of the evaluator for a judgement: some seconds.
const JUDGED_STEPS: u64 = 1 << 26;
/// The level at which nothing is scheduled.
const PLAIN: u8 = 0;
/// What all copies of constants take at most: more than stays in a cache. In a model others lie between two calls, so copies are as
/// much as all of these; those of a small model stay in a cache there too.
const COPIES: usize = 48 << 20;
const MAX_COPIES: usize = 256;
/// How long a schedule is measured, and how often at least.
const MEASURED: Duration = Duration::from_millis(40);
const LEAST_RUNS: usize = 5;
/// Rounds in which two are measured by turns, and how long each is measured in a round.
const ROUNDS: usize = 9;
const TURN: Duration = Duration::from_millis(8);

/// A program that was told of.
struct Prepared {
    text: String,
    function: String,
    constants: Vec<usize>,
    /// Bytes of all constants of the model.
    bytes: usize,
    case: Case,
}

/// What happens to a candidate: an answer in any case.
type Answered = Result<Answer, Answer>;

struct Trials<'s> {
    session: &'s Session,
    target: Target,
    pool: ThreadPool,
    programs: HashMap<usize, Prepared>,
}

/// Answers what is asked at the standard input, until it ends.
///
/// # Errors
/// When the process cannot begin.
pub fn serve_trials(session: &Session, target: &Target, threads: NonZeroUsize) -> ExitCode {
    let Ok(mut lines) = begin_child() else { return ExitCode::FAILURE };
    let Ok(pool) = ThreadPool::new(threads) else { return ExitCode::FAILURE };
    let mut trials = Trials { session, target: target.clone(), pool, programs: HashMap::new() };
    for line in io::stdin().lock().lines() {
        let Ok(request) =
            line.map_err(drop).and_then(|line| serde_json::from_str(&line).map_err(drop))
        else {
            return ExitCode::FAILURE;
        };
        let answer = trials.answer(request);
        let text = serde_json::to_string(&answer).unwrap_or_default();
        if writeln!(lines, "{text}").is_err() {
            break;
        }
    }
    ExitCode::SUCCESS
}

impl Trials<'_> {
    fn answer(&mut self, request: Request) -> Answer {
        let answered = match request {
            Request::Prepare { task, text, function, constants, bytes } => {
                self.prepare(task, text, function, (constants, bytes))
            }
            Request::Look { task, candidate } => self.look(task, &candidate),
            Request::Measure { task, trace } => self.measure(task, &trace),
            Request::Pair { task, first, second } => self.pair(task, [&first, &second]),
        };
        answered.unwrap_or_else(|answer| answer)
    }

    fn prepare(
        &mut self,
        task: usize,
        text: String,
        function: String,
        (constants, bytes): (Vec<usize>, usize),
    ) -> Answered {
        let module = self.parse(&text)?;
        let program =
            module.get_str(&function).ok_or_else(|| failed("there is no such program"))?;
        let unjudged = Unjudged::new(program, &function, 0, &DimRanges::new()).map_err(failed)?;
        let limits = Limits { steps: JUDGED_STEPS, ..Limits::default() };
        let (judge, case) = match unjudged.evaluated(&module, &function, limits) {
            Ok(case) => ("evaluator", case),
            Err(unjudged) => {
                let plain = self.compile(module.clone(), &function, PLAIN)?;
                ("plain code", unjudged.computed_by(&plain).map_err(failed)?)
            }
        };
        // One program at a time: weights are large.
        self.programs.clear();
        self.programs.insert(task, Prepared { text, function, constants, bytes, case });
        Ok(Answer::Prepared { judge: judge.to_owned() })
    }

    fn look(&self, task: usize, candidate: &Candidate) -> Answered {
        let program = self.program(task)?;
        let (attrs, pipeline) = match candidate {
            Candidate::Default => (String::new(), "candidate".to_owned()),
            Candidate::Knobs(knobs) => {
                let knobs = knobs.iter().map(|(name, value)| format!("{name} = {value}"));
                let knobs = knobs.collect::<Vec<_>>().join(", ");
                (format!("knobs = {{ {knobs} }}, "), "candidate".to_owned())
            }
            Candidate::Mutant { trace, seed } => {
                let seed = seed >> 1;
                (format!("mutation = {seed}, schedule = {trace:?}, "), "mutant".to_owned())
            }
        };
        let module = self.parse(&with_attrs(&program.text, &attrs))?;
        let lowered = self.lower(module, pipeline).map_err(|why| Answer::Refused { why })?;
        let function = lowered.get_str(&program.function);
        let function = function.ok_or_else(|| failed("the program is gone"))?;
        Ok(Answer::Looked(looked(function)))
    }

    fn measure(&self, task: usize, trace: &str) -> Answered {
        let program = self.program(task)?;
        let model = self.judged(program, trace)?;
        let mut timed = Timed::new(&model, program)?;
        let times = timed.times(MEASURED, &self.pool)?;
        Ok(Answer::Measured { ms: typical(times) })
    }

    fn pair(&self, task: usize, traces: [&str; 2]) -> Answered {
        let program = self.program(task)?;
        let models = [self.judged(program, traces[0])?, self.judged(program, traces[1])?];
        let mut timed = [Timed::new(&models[0], program)?, Timed::new(&models[1], program)?];
        let mut times: [Vec<f64>; 2] = Default::default();
        for _ in 0..ROUNDS {
            for (timed, times) in timed.iter_mut().zip(&mut times) {
                times.push(typical(timed.times(TURN, &self.pool)?));
            }
        }
        let [first, second] = times.map(typical);
        Ok(Answer::Paired { first, second })
    }

    fn program(&self, task: usize) -> Result<&Prepared, Answer> {
        self.programs.get(&task).ok_or_else(|| failed("the program was not told of"))
    }

    /// Code of a program with a schedule, which computes what the judge says.
    fn judged(&self, program: &Prepared, trace: &str) -> Result<Model, Answer> {
        let attrs = match trace.is_empty() {
            true => String::new(),
            false => format!("schedule = {trace:?}, "),
        };
        let module = self.parse(&with_attrs(&program.text, &attrs))?;
        let model = self.compile(module, &program.function, Options::default().opt_level)?;
        match program.case.check(&model).map_err(failed)? {
            Ok(()) => Ok(model),
            Err(mismatch) => Err(failed(format!("it computes something else: {mismatch}"))),
        }
    }

    fn parse(&self, text: &str) -> Result<Module, Answer> {
        let model = self.session.parse("a task", text).map_err(failed)?;
        Ok(model.module)
    }

    fn lower(&self, module: Module, pipeline: String) -> Result<Module, String> {
        let pipeline = Pipeline::Text(pipeline);
        let options = Options { pipeline, measures: false, ..Options::default() };
        let mut watch = Watch::default();
        let lowered = self.session.lower(&module.into(), &self.target, &options, &mut watch);
        lowered.map_err(|error| error.to_string())
    }

    fn compile(&self, module: Module, function: &str, opt_level: u8) -> Result<Model, Answer> {
        let mut options = Options { opt_level, measures: false, ..Options::default() };
        options.code.function = Some(function.to_owned());
        options.code.threads = 1;
        let model: session::Model = module.into();
        let executable = self.session.compile(&model, &self.target, &options).map_err(failed)?;
        executable.jit().map_err(failed)
    }
}

/// Code with its inputs, several times over where they are constants.
struct Timed<'m> {
    context: RunContext<&'m Model>,
    inputs: Vec<TensorBuffer>,
    /// Constants by the numbers of their inputs.
    copies: Vec<Vec<(usize, TensorBuffer)>>,
    turn: usize,
}

impl<'m> Timed<'m> {
    fn new(model: &'m Model, program: &Prepared) -> Result<Self, Answer> {
        let inputs = program.case.inputs(model).map_err(failed)?;
        let constants = program.constants.iter().filter_map(|&at| Some((at, inputs.get(at)?)));
        let bytes: usize = constants.clone().map(|(_, constant)| constant.bytes().len()).sum();
        let copy = || -> Result<Vec<_>, Answer> {
            let copy = |(at, it): (usize, &TensorBuffer)| {
                let copy = TensorBuffer::from_bytes(it.bytes(), it.shape(), it.dtype());
                Ok((at, copy.map_err(failed)?))
            };
            constants.clone().map(copy).collect()
        };
        let count = COPIES.min(program.bytes).checked_div(bytes);
        let count = count.map_or(0, |count| count.clamp(1, MAX_COPIES));
        let copies = (0..count).map(|_| copy()).collect::<Result<_, _>>()?;
        Ok(Timed { context: model.context().map_err(failed)?, inputs, copies, turn: 0 })
    }

    /// Milliseconds of runs, for so long.
    fn times(&mut self, long: Duration, pool: &ThreadPool) -> Result<Vec<f64>, Answer> {
        let start = Instant::now();
        let mut times = Vec::new();
        while times.len() < LEAST_RUNS || start.elapsed() < long {
            // What is computed from is warm, constants are not.
            let mut inputs: Vec<TensorRef<'_>> =
                self.inputs.iter().map(TensorBuffer::as_ref).collect();
            if !self.copies.is_empty() {
                let constants = &self.copies[self.turn % self.copies.len()];
                constants.iter().for_each(|(at, constant)| inputs[*at] = constant.as_ref());
                self.turn += 1;
            }
            let before = Instant::now();
            self.context.run(&inputs, Some(pool)).map_err(failed)?;
            times.push(before.elapsed().as_secs_f64() * 1e3);
        }
        Ok(times)
    }
}

/// The time that a quarter is below: what disturbs a run makes it longer, never shorter.
fn typical(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 4]
}

/// The text of a program with more attributes.
fn with_attrs(text: &str, attrs: &str) -> String {
    text.replacen("task = {", &format!("{attrs}task = {{"), 1)
}

fn looked(program: &Function) -> Looked {
    let body = program.view();
    let attrs = program.cx().terms().attrs(body.attrs(body.root()));
    let told = Scheduled::of(program).unwrap_or_default();
    Looked {
        trace: attrs.str("trace").unwrap_or_default().to_owned(),
        rule: told.rule,
        knobs: told.knobs.into_iter().collect(),
        cycles: told.cycles,
    }
}

fn failed(why: impl ToString) -> Answer {
    Answer::Failed { why: why.to_string() }
}
