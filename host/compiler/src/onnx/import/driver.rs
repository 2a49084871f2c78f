//! The import of a model as a whole.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use crate::eval::Tensor;
use crate::infer::infer;
use crate::io::{Mapping, quoted};
use crate::ir::{AttrValue, Attrs, Context, Cx, Module, Term};
use crate::onnx::proto::{FunctionProto, ModelProto, NodeProto, OperatorSet};
use crate::onnx::{TensorReader, decode_model, open_model};
use tenon_plugin_api::rule::import::Few;

use super::builder::{Builder, Value};
use super::cases::Cases;
use super::declared::Declared;
use super::dims::Dims;
use super::error::{Problem, Stop};
use super::graphs::Graphs;
use super::order::put_in_order;
use super::problems::Problems;
use super::ranks::{Ranks, import_with_ranks};
use super::scope::{Values, standard_domain};
use super::sizes::WantedSizes;
use super::stand_ins::StandIns;
use super::sweep::LARGEST_EXPANSION;
use super::{GraphProblem, ImportError, UnsupportedList};

/// What a model is imported with.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// Values of named dimensions.
    pub dims: BTreeMap<String, i64>,
    /// Values of inputs. These become constants; they are no parameters any more.
    pub inputs: BTreeMap<String, Tensor>,
}

/// What became of a model.
#[derive(Debug)]
pub struct Imported {
    /// Its program.
    pub module: Module,
    /// The files beside it that its weights lie in.
    pub files: Vec<PathBuf>,
    /// What is to be told of it: where it contradicts itself, and that does no harm.
    pub notes: Vec<String>,
}

/// Imports a model file, into a context that knows the operators.
pub fn import(cx: &Cx, path: &Path, options: &ImportOptions) -> Result<Imported, ImportError> {
    import_mapping(cx, &open_model(path)?, options)
}

/// Imports a mapped model file.
pub fn import_mapping(
    cx: &Cx,
    file: &Mapping,
    options: &ImportOptions,
) -> Result<Imported, ImportError> {
    let mut model = decode_model(file)?;
    let imported = Graphs::of(&model).map_err(Stop::Wire).and_then(|mut graphs| {
        put_in_order(&mut model, &mut graphs);
        let model = &model;
        let (wanted, choices) = (RefCell::default(), RefCell::default());
        let findable = RefCell::default();
        let import = |options: &ImportOptions, cases: Option<&Cases>, found: Option<&Found>| {
            import_with_ranks(&|ranks: &Ranks| {
                let import = |sizes: &WantedSizes| {
                    let (wanted, choices, findable) = (&wanted, &choices, &findable);
                    let asked = Asked { sizes, wanted, choices, cases, found, findable, ranks };
                    Importer::new(cx.clone(), model, &graphs, file, options, asked).run()
                };
                import_with_sizes(&import, &wanted)
            })
        };
        let stop = match import(options, None, None) {
            Err(stop @ Stop::Unsupported(_)) => stop,
            other => return other,
        };
        // Values with which the model contradicts itself are none that it is for.
        let with_values = |options: &ImportOptions| {
            let imported = import(options, None, None).ok()?;
            imported.notes.is_empty().then_some(imported.module)
        };
        match Cases::find(model, &choices.take(), options, &with_values) {
            Some(cases) => import(options, Some(&cases), None),
            None => import_with_found(&|found| import(options, None, Some(found)), &findable, stop),
        }
    });
    imported.map_err(|stop| stop.into_error(file.path()))
}

/// What is known of inputs that rules have asked for.
#[derive(Clone, Copy)]
struct Asked<'m> {
    sizes: &'m WantedSizes,
    wanted: &'m RefCell<WantedSizes>,
    choices: &'m RefCell<BTreeMap<String, Few>>,
    cases: Option<&'m Cases>,
    found: Option<&'m Found>,
    findable: &'m RefCell<Found>,
    ranks: &'m Ranks,
}

/// The values that sizes are found in, by what they are called in the graph or an expanded function.
pub(super) type Found = BTreeSet<String>;

/// Imports a model, whose rules want to know elements that follow from no input: each time with more values of which a call
/// finds the elements. What stays is what is told then: nothing of what could be found. If all that helps against nothing, the model
/// has the problem that it had before.
fn import_with_found<T>(
    import: &dyn Fn(&Found) -> Result<T, Stop>,
    findable: &RefCell<Found>,
    before: Stop,
) -> Result<T, Stop> {
    let mut found = Found::new();
    loop {
        let known = found.len();
        let stop = match import(&found) {
            Err(stop @ Stop::Unsupported(_)) => stop,
            Err(_) => return Err(before),
            imported => return imported,
        };
        found.extend(findable.take());
        if found.len() == known {
            let helps = known > 0 || !has_all_of(&stop, &before);
            return Err(if helps { stop } else { before });
        }
    }
}

/// Whether all that is not supported by one import is not by another one.
fn has_all_of(stop: &Stop, before: &Stop) -> bool {
    let (Stop::Unsupported(now), Stop::Unsupported(before)) = (stop, before) else { return true };
    before.items.iter().all(|item| {
        now.items.iter().any(|it| (it.op_type == item.op_type) && it.reason == item.reason)
    })
}

/// Imports a model, whose rules want to know elements of some inputs: where these are sizes, which the function then takes as
/// such, it may be possible to say with them what the model computes. If not, the model has the problem that it had before.
fn import_with_sizes<T>(
    import: &dyn Fn(&WantedSizes) -> Result<T, Stop>,
    wanted: &RefCell<WantedSizes>,
) -> Result<T, Stop> {
    let mut sizes = WantedSizes::new();
    let mut first = None;
    loop {
        let stop = match import(&sizes) {
            Ok(imported) => return Ok(imported),
            Err(stop) => stop,
        };
        let known = sizes.len();
        if let Stop::Unsupported(_) = stop {
            for (name, may_be_rest) in wanted.take() {
                *sizes.entry(name).or_default() |= may_be_rest;
            }
        }
        let first = first.get_or_insert(stop);
        if sizes.len() == known {
            return Err(std::mem::replace(first, Stop::Unsupported(UnsupportedList::default())));
        }
    }
}

/// An output that cannot be made.
pub(super) struct Absent<'m> {
    pub(super) node: &'m NodeProto<'m>,
    pub(super) version: i64,
    /// Which of the node's outputs it is.
    pub(super) output: usize,
}

/// The import of one model.
pub(super) struct Importer<'m> {
    pub(super) model: &'m ModelProto<'m>,
    pub(super) graphs: &'m Graphs<'m>,
    pub(super) options: &'m ImportOptions,
    /// The inputs whose elements are sizes.
    pub(super) sizes: &'m WantedSizes,
    /// The inputs whose elements rules want to know.
    pub(super) wanted: &'m RefCell<WantedSizes>,
    /// The inputs that are one of few.
    pub(super) choices: &'m RefCell<BTreeMap<String, Few>>,
    /// What is computed by the values of inputs.
    pub(super) cases: Option<&'m Cases>,
    /// The values that sizes are found in; none where nothing is found yet.
    pub(super) found: Option<&'m Found>,
    /// Those that they could be found in besides.
    pub(super) findable: &'m RefCell<Found>,
    pub(super) ranks: &'m Ranks,
    /// The parameters for these inputs.
    pub(super) case_params: HashMap<String, Value>,
    pub(super) cx: Cx,
    pub(super) builder: Builder,
    pub(super) tensors: TensorReader<'m>,
    pub(super) dims: Dims<'m>,
    pub(super) problems: Problems,
    pub(super) declared: Declared<'m>,
    pub(super) stand_ins: StandIns,
    /// What is to be told.
    pub(super) notes: Vec<String>,
    /// Outputs that cannot be made; that is a problem as soon as something reads them.
    pub(super) absent: HashMap<Value, Absent<'m>>,
    pub(super) functions: HashMap<(&'m str, &'m str, &'m str), &'m FunctionProto<'m>>,
    /// Functions that were looked at without being expanded.
    pub(super) surveyed: HashSet<*const FunctionProto<'m>>,
    /// The domains of nodes of which no version is given.
    pub(super) unversioned: HashSet<&'m str>,
    /// How many more nodes functions may expand to.
    pub(super) budget: usize,
}

impl<'m> Importer<'m> {
    fn new(
        cx: Cx,
        model: &'m ModelProto<'m>,
        graphs: &'m Graphs<'m>,
        file: &'m Mapping,
        options: &'m ImportOptions,
        Asked { sizes, wanted, choices, cases, found, findable, ranks }: Asked<'m>,
    ) -> Self {
        let dims = Dims::new(cx.clone(), &options.dims);
        Self {
            model,
            graphs,
            options,
            sizes,
            wanted,
            choices,
            cases,
            found,
            findable,
            ranks,
            case_params: HashMap::new(),
            builder: Builder::new(cx.clone(), dims.symbols()),
            tensors: TensorReader::new(file),
            dims,
            problems: Problems::default(),
            declared: Declared::of(&model.graph),
            stand_ins: StandIns::default(),
            notes: Vec::new(),
            absent: HashMap::new(),
            functions: HashMap::new(),
            surveyed: HashSet::new(),
            unversioned: HashSet::new(),
            budget: LARGEST_EXPANSION,
            cx,
        }
    }

    fn run(mut self) -> Result<Imported, Stop> {
        self.survey()?;
        let mut values = Values::default();
        self.weights(&self.model.graph, &mut values)?;
        let inputs = self.inputs(&mut values)?;
        self.dims.check()?;
        let (names, outputs) = match self.cases {
            None => self.graph(values)?,
            Some(cases) => self.cases(cases, &values)?,
        };

        let broken = |reason: String| GraphProblem::Node { node: "its graph".into(), reason };
        let func = match self.builder.finish(&outputs) {
            Ok(func) => func,
            Err(Problem::Unsupported(reason)) => {
                self.problems.add(format!("an output that is {reason}"));
                return Err(Stop::Unsupported(self.problems.finish().unwrap_or_default()));
            }
            Err(problem) => return Err(broken(problem.text()).into()),
        };
        let func = infer(&func, &|_| None).map_err(|errors| {
            broken(errors.first().map(ToString::to_string).unwrap_or_default())
        })?;
        let mut module = Module::new(self.cx.clone());
        module.insert(self.cx.symbol("main"), func);
        module.attrs = module_attrs(&self.cx, &inputs, &names);
        let files = self.tensors.external_files().map(Path::to_owned).collect();
        Ok(Imported { module, files, notes: self.notes })
    }

    /// The names and values of the outputs, once all nodes are translated.
    pub(super) fn graph(&mut self, values: Values<'m>) -> Result<(Vec<String>, Vec<Value>), Stop> {
        let values = self.nodes(values)?;
        for output in &self.model.graph.output {
            match values.get(output.name) {
                Some(value) => self.report_absent(value),
                None => {
                    let name = quoted(output.name);
                    self.problems.add_wrong(|| GraphProblem::OutputNotDefined(name));
                }
            }
        }
        if let Some(mut wrong) = self.problems.take_wrong() {
            wrong.unsupported = wrong.unsupported.with_notes(&self.cx);
            return Err(Stop::Graph(wrong));
        }
        if let Some(list) = std::mem::take(&mut self.problems).finish() {
            return Err(Stop::Unsupported(list.with_notes(&self.cx)));
        }
        self.outputs(&values)
    }

    /// What can be told about the model as a whole.
    fn survey(&mut self) -> Result<(), Stop> {
        check_operator_sets(&self.model.opset_import, || "the model".to_owned())?;
        for function in &self.model.functions {
            let place = || format!("the function {}", quoted(function.name));
            check_operator_sets(&function.opset_import, place)?;
            let key = (standard_domain(function.domain), function.name, function.overload);
            if self.functions.insert(key, function).is_some() {
                return Err(GraphProblem::FunctionTwice(quoted(function.name)).into());
            }
        }
        let graph = &self.model.graph;
        if self.model.has_training_info {
            self.problems.add("training information".into());
        }
        if graph.output.is_empty() {
            return Err(GraphProblem::NoOutputs.into());
        }
        Ok(())
    }
}

/// A domain has one version; exporters do say the same one twice.
fn check_operator_sets(
    sets: &[OperatorSet<'_>],
    place: impl FnOnce() -> String,
) -> Result<(), GraphProblem> {
    let mut versions = HashMap::new();
    for set in sets {
        let domain = standard_domain(set.domain);
        let first = *versions.entry(domain).or_insert(set.version);
        if first != set.version {
            let domain = quoted(if domain.is_empty() { "ai.onnx" } else { domain });
            let second = set.version;
            return Err(GraphProblem::TwoOperatorSets { place: place(), domain, first, second });
        }
    }
    Ok(())
}

/// The names of parameters and results in the model.
fn module_attrs(cx: &Cx, inputs: &[String], outputs: &[String]) -> Attrs {
    let list = |names: &mut dyn Iterator<Item = &str>| {
        let names: Vec<Term> = names.map(|name| cx.symbol(name).into()).collect();
        AttrValue::from(cx.list(&names))
    };
    let inputs = list(&mut inputs.iter().map(String::as_str));
    let outputs = list(&mut outputs.iter().map(String::as_str));
    cx.attrs(&[("onnx.inputs", inputs), ("onnx.outputs", outputs)])
}
