//! Has schedules of tensor programs measured, and tells the programs which are the fastest.
//!
//! ```ir
//! prim @fused_dense_add(…) { op_name = "dense_add" } { … }
//!   => prim @fused_dense_add(…) { op_name = "dense_add", tuned = { because = "0.91 ms, where the rules choose 1.02", knobs = {rows = 6, vectors = 2}, rule = "…", trace = "…" } } { … }
//! ```
//!
//! It is `tenon tune` as a pass: the host measures the programs at hand on this machine, each with what it is called with in the model, and
//! appends what it finds to the file `tune_db`, from which the programs are told as `tune.ApplyDatabase` tells them. So it stands where that does,
//! behind fusion and before schedules are applied, and goes on where the last run has stopped. With `trials = 0` nothing is measured, and the file is
//! not written.
//!
//! Programs with a schedule or knobs of their own, those of a function that is for another target, and those whose shapes are not known are
//! left alone. In the compile of a candidate the pass does nothing. When the run is stopped it is the run that fails; what was found
//! until then is in the file.

use std::path::Path;

use tenon_plugin_api::prelude::*;

use crate::apply_database;
use crate::mark_tasks::marked;

/// Has schedules of tensor programs measured, and tells the programs which are the fastest.
#[pass(
    name = "tune.TunePrograms",
    aliases = [
        "relax.MetaScheduleTuneIRMod",
        "relax.MetaScheduleTuneTIR",
        "relax.transform.MetaScheduleTuneIRMod",
        "relax.transform.MetaScheduleTuneTIR"
    ],
    phase = "fuse"
)]
fn tune_programs(mut module: Module, cx: &PassContext, options: Options) -> Result<Module> {
    if options.tune_db.is_empty() {
        return Err(PassError::new(
            "its option `tune_db` names no file in which what is measured is kept",
        ));
    }
    if options.trials > 0 {
        let programs = mark(&mut module, cx)?;
        if programs.is_empty() {
            cx.note("there is no program whose schedules could be measured");
            return Ok(module);
        }
        let answer = cx.measure_schedules(&module, options.dict(cx))?;
        programs.iter().for_each(|(name, program)| module.insert(*name, program));
        match answer {
            Some(answer) => tell(answer, cx),
            None => return Ok(module),
        }
    }
    let path = Path::new(&options.tune_db);
    match path.exists() {
        true => apply_database::apply(module, path, cx),
        false => Ok(module),
    }
}

#[derive(Options)]
struct Options {
    /// the file in which what is measured is kept; what stands there already is taken up
    #[option(default = "")]
    tune_db: String,
    /// schedules that are measured, of all programs together
    #[option(default = 64, min = 0)]
    trials: i64,
    /// seconds that are measured at most; 0 is without a limit
    #[option(default = 0, min = 0)]
    seconds: i64,
    /// threads that work on a run; 0 is one for each core
    #[option(default = 0, min = 0)]
    threads: i64,
    /// measure what is drawn, rather than what rules predict to be fast
    #[option(default = false)]
    random: bool,
    /// another one draws other candidates
    #[option(default = 0, min = 0)]
    seed: i64,
    /// the programs alone that are known by these keys
    #[option(default = [])]
    only: Vec<String>,
}

impl Options {
    /// As the host reads them.
    fn dict(&self, cx: &PassContext) -> Attrs {
        let only: Vec<Term> = self.only.iter().map(|key| cx.symbol(key).into()).collect();
        cx.attrs(&[
            ("tune_db", self.tune_db.as_str().into()),
            ("trials", self.trials.into()),
            ("seconds", self.seconds.into()),
            ("threads", self.threads.into()),
            ("random", self.random.into()),
            ("seed", self.seed.into()),
            ("only", AttrValue::Term(cx.list(&only))),
        ])
    }
}

/// Has programs that may be measured say what they are known by. Gives them as they were.
fn mark(module: &mut Module, cx: &PassContext) -> Result<Vec<(Symbol, Function)>> {
    let mut programs = Vec::new();
    for (name, func) in module.functions() {
        let attrs = cx.terms().attrs(func.attrs());
        let is_decided =
            ["schedule", "trace", "knobs"].into_iter().any(|key| attrs.get(key).is_some());
        if !func.is_prim() || is_decided || cx.target_of(&func) != cx.target_attrs() {
            continue;
        }
        let program = PrimFunc(func);
        if let Some(task) = marked(&program, cx.target(), cx)? {
            module.insert(name, &task);
            programs.push((name, program.0));
        }
    }
    Ok(programs)
}

/// Says what came of it.
fn tell(answer: Attrs, cx: &PassContext) {
    let answer = cx.terms().attrs(answer);
    let count = |key| answer.int(key).unwrap_or(0);
    let ms = |key| answer.float(key).unwrap_or(0.0);
    cx.note(&format!(
        "schedules measured: {}, of programs: {}, of which got faster: {}; {:.4} => {:.4} ms",
        count("trials"),
        count("programs"),
        count("faster"),
        ms("before_ms"),
        ms("now_ms")
    ));
    if let Some(TermView::List(left_out)) = answer.get("left_out") {
        left_out.iter().for_each(|&text| cx.note(&format!("not {}", cx.terms().str(text))));
    }
}
