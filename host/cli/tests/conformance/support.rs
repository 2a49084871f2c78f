//! What the cases share: modules, passes from closures, and instruments that write down what they are told.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use tenon_compiler::diagnostics::{Diagnostic, Source};
use tenon_compiler::infer::infer_module;
use tenon_compiler::ir::{Build, Expr, Function, Kind, Module, Transaction, View};
use tenon_compiler::passes::{
    Instrument, Pass, PassContext, PassError, Plan, PlanError, Settings, StepInfo, StepOutcome, run,
};
use tenon_compiler::registry::{Config, PassFailure, Registry};
use tenon_compiler::text::{NoWeights, WeightsPolicy, parse_module, print_module};

/// One function, `test.double` of its parameter.
pub(crate) const SMALL: &str =
    "fn @main(%x: f32[4]) -> f32[4] {\n  %a = test.double(%x)\n  ret %a\n}\n";

pub(crate) fn module(text: &str) -> Module {
    let module =
        parse_module(&tenon_compiler::testing::cx(), &Source::new("small", text), &mut NoWeights);
    infer_module(&module.expect("it parses")).expect("it has types")
}

pub(crate) fn text(module: &Module) -> String {
    print_module(module, &mut WeightsPolicy::inline())
}

/// A registry without plugins.
pub(crate) fn no_plugins() -> Registry {
    Registry::from_config(Config::default())
}

/// A folder with `registry.toml` and the example plugins.
pub(crate) struct House(tempfile::TempDir);

impl House {
    pub(crate) fn new(rest: &str) -> Self {
        let house = Self(tempfile::tempdir().expect("a folder"));
        let program = std::env::current_exe().expect("this test's file");
        let profile = program.ancestors().nth(2).expect("target/<profile>/deps/<test>");
        for library in ["libfaulty.so", "libwrong.so"] {
            let path = profile.join("examples").join(library);
            fs::copy(path, house.path(library)).expect("cargo builds examples");
        }
        let head = "schema = 1\n[[plugins.dir]]\npath = \".\"\nenable = \"all\"\n";
        fs::write(house.path("registry.toml"), format!("{head}{rest}")).expect("written");
        house
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn registry(&self) -> Registry {
        Registry::open(&self.path("registry.toml")).expect("the registry is readable")
    }
}

/// The plan of a pass as it is called.
pub(crate) fn plan_of(pass: &Pass) -> Result<Plan, PlanError> {
    Plan::of(&no_plugins(), pass, &Settings::default())
}

/// Calls a pass.
pub(crate) fn call(
    pass: &Pass,
    module: &Module,
    cx: &mut PassContext,
) -> Result<Module, PassError> {
    run(&no_plugins(), &plan_of(pass)?, module, cx)
}

/// What passes did, in order.
pub(crate) type Log = Arc<Mutex<Vec<String>>>;

pub(crate) fn told(log: &Log) -> Vec<String> {
    std::mem::take(&mut *log.lock().expect("nothing panics while it is held"))
}

/// A module pass that writes its name down, and changes nothing.
pub(crate) fn logs(name: &str, log: &Log) -> Pass {
    let (own, log) = (name.to_owned(), log.clone());
    Pass::module(name, move |module, _| {
        log.lock().expect("nothing panics while it is held").push(own.clone());
        Ok(module.clone())
    })
}

/// A module pass that writes its name down, and changes the module.
pub(crate) fn changes(name: &str, log: &Log) -> Pass {
    let (own, log) = (name.to_owned(), log.clone());
    Pass::module(name, move |module, _| {
        log.lock().expect("nothing panics while it is held").push(own.clone());
        let mut after = module.clone();
        let (name, function) = module.iter().next().expect("it has a function");
        after.insert(name, twice(function)?);
        Ok(after)
    })
}

/// A module pass that fails.
pub(crate) fn fails(name: &str) -> Pass {
    Pass::module(name, |_, _| Err(PassFailure::error("this is not to my taste")))
}

/// The function with its result added to itself.
pub(crate) fn twice(function: &Arc<Function>) -> Result<Arc<Function>, PassFailure> {
    let mut edit = Transaction::edit(function);
    let body = edit.body();
    let View::Function { body: value, .. } = body.view(body.root()) else {
        return Err(PassFailure::error("a graph function was expected"));
    };
    let result = match body.view(value) {
        View::Let(bindings) => bindings.result(),
        _ => value,
    };
    let sum = edit.call_op("test.total", &[result, result], tenon_compiler::ir::Attrs::NONE);
    edit.replace(result, sum);
    edit.finish().map_err(|error| PassFailure::error(error.to_string()))
}

/// The function with every call of an operator turned into a call of another one.
pub(crate) fn renamed(
    function: &Arc<Function>,
    from: &str,
    to: &str,
) -> Result<Arc<Function>, PassFailure> {
    let mut edit = Transaction::edit(function);
    for (expr, args) in calls(function, from) {
        let new = edit.call_op(to, &args, tenon_compiler::ir::Attrs::NONE);
        edit.replace(expr, new);
    }
    edit.finish().map_err(|error| PassFailure::error(error.to_string()))
}

/// The calls of an operator, with their arguments.
pub(crate) fn calls(function: &Function, op: &str) -> Vec<(Expr, Vec<Expr>)> {
    let body = function.view();
    let call = |expr: Expr| match body.view(expr) {
        View::Call { callee, args, .. } if body.op_name(callee) == Some(op) => {
            Some((expr, args.to_vec()))
        }
        _ => None,
    };
    body.post_order().filter(|&expr| body.kind(expr) == Kind::CALL).filter_map(call).collect()
}

/// A function pass that turns calls of an operator into calls of another one.
pub(crate) fn renames(name: &str, from: &'static str, to: &'static str) -> Pass {
    Pass::function(name, move |function, _, _| renamed(function, from, to))
}

/// Writes down what it is told, and fails or refuses where it is said so.
pub(crate) struct Spy {
    pub(crate) name: &'static str,
    pub(crate) log: Log,
    /// The event at which it fails.
    pub(crate) fails_at: Option<&'static str>,
    /// The pass that it refuses.
    pub(crate) refuses: Option<&'static str>,
}

impl Spy {
    fn event(&self, what: String) -> Result<(), Box<Diagnostic>> {
        let fails = self.fails_at.is_some_and(|event| what.starts_with(event));
        self.log
            .lock()
            .expect("nothing panics while it is held")
            .push(format!("{} {what}", self.name));
        match fails {
            true => Err(Box::new(Diagnostic::error(format!("{} fails to {what}", self.name)))),
            false => Ok(()),
        }
    }
}

impl Instrument for Spy {
    fn enter(&mut self) -> Result<(), Box<Diagnostic>> {
        self.event("enter".to_owned())
    }

    fn should_run(&mut self, step: StepInfo<'_>, _: &Module) -> Result<bool, Box<Diagnostic>> {
        self.event(format!("ask {}", step.step.name))?;
        Ok(self.refuses.is_none_or(|name| name != step.step.name))
    }

    fn before(&mut self, step: StepInfo<'_>, _: &Module) -> Result<(), Box<Diagnostic>> {
        self.event(format!("before {}", step.step.name))
    }

    fn after(
        &mut self,
        step: StepInfo<'_>,
        outcome: StepOutcome<'_>,
    ) -> Result<(), Box<Diagnostic>> {
        let how = match outcome {
            StepOutcome::Ran { .. } => "after",
            StepOutcome::Skipped(_) => "skipped",
            StepOutcome::Failed => "failed",
        };
        self.event(format!("{how} {}", step.step.name))
    }

    fn exit(&mut self) -> Result<(), Box<Diagnostic>> {
        self.event("exit".to_owned())
    }
}

/// A context with spies, and what they will have been told.
#[derive(Default)]
pub(crate) struct Watched {
    pub(crate) cx: PassContext,
    pub(crate) log: Log,
}

impl Watched {
    pub(crate) fn by(names: &[&'static str]) -> Self {
        let mut watched = Self::default();
        for name in names {
            watched.add(name, None, None);
        }
        watched
    }

    pub(crate) fn add(
        &mut self,
        name: &'static str,
        fails_at: Option<&'static str>,
        refuses: Option<&'static str>,
    ) {
        self.cx.instruments.push(self.spy(name, fails_at, refuses));
    }

    pub(crate) fn spy(
        &self,
        name: &'static str,
        fails_at: Option<&'static str>,
        refuses: Option<&'static str>,
    ) -> Box<dyn Instrument> {
        Box::new(Spy { name, log: self.log.clone(), fails_at, refuses })
    }

    /// A pass that writes down that it runs.
    pub(crate) fn pass(&self, name: &str) -> Pass {
        logs(name, &self.log)
    }

    /// Calls a pass over a small module.
    pub(crate) fn call(&mut self, pass: &Pass) -> Result<Module, PassError> {
        call(pass, &module(SMALL), &mut self.cx)
    }

    #[track_caller]
    pub(crate) fn assert_told(&self, expected: &[&str]) {
        assert_eq!(told(&self.log), expected);
    }
}
