//! What is tuned: the different programs of a model.

use std::collections::{BTreeMap, HashMap};

use tenon_plugin_api::ir::{Args, AttrsView, BodyView, Kind, TermView, View};
use tenon_tuning::Keys;

use crate::ir::{Context, Function, Module};
use crate::text::{WeightsPolicy, print_function};

/// The attribute that says what a program is known by.
const TASK: &str = "task";

/// A program of a model.
#[derive(Clone, Debug)]
pub(super) struct Task {
    /// Its name in the model.
    pub(super) name: String,
    /// What it computes.
    pub(super) op: String,
    pub(super) keys: Keys,
    /// What the target is known by.
    pub(super) target: String,
    /// The program, public, as the only function of a module.
    pub(super) text: String,
    /// How often the model calls it, and programs like it.
    pub(super) weight: usize,
    /// Which of its inputs are constants of the model, wherever it is called.
    pub(super) constants: Vec<usize>,
    /// Bytes of all constants of the model.
    pub(super) bytes: usize,
}

/// What the programs of a module are, as far as they can be tuned, and the others with the reason why not.
pub(super) struct Tasks {
    pub(super) tasks: Vec<Task>,
    pub(super) skipped: Vec<(String, &'static str)>,
}

impl Tasks {
    /// Those of a module whose programs say what they are known by.
    pub(super) fn of(module: &Module) -> Tasks {
        let calls = Calls::of(module);
        let mut found = Tasks { tasks: Vec::new(), skipped: Vec::new() };
        let mut known: HashMap<(String, String), usize> = HashMap::new();
        for (name, function) in module.iter().filter(|(_, function)| function.is_prim()) {
            let name = module.cx().terms().str(name);
            let Some((keys, target)) = keys_of(function) else { continue };
            if !has_known_shapes(function) {
                let why = "its shapes are not known: -D binds dimensions";
                found.skipped.push((name.to_owned(), why));
                continue;
            }
            let (weight, constants) = calls.of_program(name);
            match known.get(&(keys.program.clone(), target.clone())) {
                Some(&at) => {
                    let task: &mut Task = &mut found.tasks[at];
                    task.weight += weight;
                    task.constants.retain(|input| constants.contains(input));
                }
                None => {
                    known.insert((keys.program.clone(), target.clone()), found.tasks.len());
                    let text = text_of(name, function);
                    let op = attrs(function).str("op_name").unwrap_or("a program").to_owned();
                    let (name, bytes) = (name.to_owned(), calls.bytes);
                    let task = Task { name, op, keys, target, text, weight, constants, bytes };
                    found.tasks.push(task);
                }
            }
        }
        found
    }
}

fn attrs(program: &Function) -> AttrsView<'_> {
    let body = program.view();
    program.cx().terms().attrs(body.attrs(body.root()))
}

fn keys_of(program: &Function) -> Option<(Keys, String)> {
    let Some(TermView::Dict(task)) = attrs(program).get(TASK) else { return None };
    let text = |key: &str| task.str(key).map(str::to_owned);
    let keys = Keys { program: text("program")?, anchor: text("anchor")?, sizes: text("sizes")? };
    Some((keys, text("target")?))
}

/// Whether code of it can be run by itself.
fn has_known_shapes(program: &Function) -> bool {
    let (body, terms) = (program.view(), program.cx().terms());
    let View::PrimFunc { params, .. } = body.view(body.root()) else { return false };
    params.iter().all(|param| body.ty(param).is_some_and(|ty| terms.static_tensor(ty).is_some()))
}

fn text_of(name: &str, program: &Function) -> String {
    let text = print_function(name, program, &mut WeightsPolicy::inline());
    text.strip_prefix("private ").map_or(text.clone(), str::to_owned)
}

/// How often programs are called, and with which constants.
#[derive(Default)]
struct Calls {
    by_program: BTreeMap<String, (usize, Vec<usize>)>,
    /// Bytes of all constants.
    bytes: usize,
}

impl Calls {
    fn of(module: &Module) -> Calls {
        let mut calls = Calls::default();
        for (_, function) in module.iter().filter(|(_, function)| !function.is_prim()) {
            let body = function.view();
            for expr in body.post_order() {
                match body.view(expr) {
                    View::Constant(constant) => calls.bytes += constant.bytes.len(),
                    View::Call { args, .. } => calls.add(module, body, args),
                    _ => {}
                }
            }
        }
        calls
    }

    fn add(&mut self, module: &Module, body: BodyView<'_>, args: Args<'_>) {
        let mut args = args.iter();
        // `call_tir` names its program first.
        let Some(View::Global { name }) = args.next().map(|first| body.view(first)) else {
            return;
        };
        let is_constant = |&(_, arg): &(usize, _)| body.kind(arg) == Kind::CONSTANT;
        let constants: Vec<usize> =
            args.enumerate().filter(is_constant).map(|(at, _)| at).collect();
        let name = module.cx().terms().str(name).to_owned();
        let (count, known) = self.by_program.entry(name).or_insert_with(|| (0, constants.clone()));
        *count += 1;
        known.retain(|input| constants.contains(input));
    }

    /// One that nobody calls counts once: it is a function of the library.
    fn of_program(&self, name: &str) -> (usize, Vec<usize>) {
        self.by_program.get(name).cloned().unwrap_or((1, Vec::new()))
    }
}
