//! Why a model cannot be imported.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use super::scope::standard_domain;
use crate::io::quoted;
use crate::ir::Cx;
use crate::onnx::wire::WireError;
use crate::onnx::{ModelError, TensorError, TensorProblem};
use tenon_plugin_api::abi::tables::Failure;
use tenon_plugin_api::rule::import::Few;

/// A model that cannot be imported, and why.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum ImportError {
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error("`{}`: {cause}", path.display())]
    Tensor { path: PathBuf, cause: Box<TensorError> },
    /// The file is no graph.
    #[error("`{}` is not a valid model:{problems}", path.display())]
    Graph { path: PathBuf, problems: WrongList },
    /// What the caller asks for does not fit the model.
    #[error("`{}`: {problem}", path.display())]
    Options { path: PathBuf, problem: OptionProblem },
    /// Everything that has no translation, in one list.
    #[error("`{}` uses what is not supported:{list}", path.display())]
    Unsupported { path: PathBuf, list: UnsupportedList },
}

/// What is wrong with a graph.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum GraphProblem {
    #[error("{name} is defined twice, as {first} and as {second}")]
    DefinedTwice { name: String, first: String, second: String },
    #[error("{node} reads {name}, which is not defined before it{hint}")]
    NotDefined { node: String, name: String, hint: &'static str },
    #[error("the output {0} is not defined")]
    OutputNotDefined(String),
    #[error("it has no outputs")]
    NoOutputs,
    #[error("{place} is declared with dimension {dim}")]
    BadDimension { place: String, dim: i64 },
    #[error("the output {name} is declared as {declared}, but it is {found}")]
    WrongOutput { name: String, declared: String, found: String },
    #[error("{node}: {reason}")]
    Node { node: String, reason: String },
    #[error("the function {0} calls itself")]
    Cycle(String),
    #[error("the function {0} is defined twice")]
    FunctionTwice(String),
    #[error("its functions expand to more than {0} nodes")]
    TooManyNodes(usize),
    #[error("no version of the operators of {0} is given; its `opset_import` must say one")]
    NoOperatorSet(String),
    #[error(
        "{place} is in the operators of {domain} of version {first}, and in those of version {second}"
    )]
    TwoOperatorSets { place: String, domain: String, first: i64, second: i64 },
}

/// What is wrong with the options.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum OptionProblem {
    #[error("there is no dimension {name}; {}", known_text("the dimensions are", known))]
    UnknownDim { name: String, known: Vec<String> },
    #[error("dimension {name} cannot be {value}: it must not be negative")]
    BadDim { name: String, value: i64 },
    #[error("there is no input {name}; {}", known_text("the inputs are", known))]
    UnknownInput { name: String, known: Vec<String> },
    #[error("the input {name} is declared as {declared}, but its value is {found}")]
    WrongInput { name: String, declared: String, found: String },
}

fn known_text(what: &str, known: &[String]) -> String {
    match known {
        [] => "there are none".to_owned(),
        known => {
            let names: Vec<String> = known.iter().map(|name| quoted(name)).collect();
            format!("{what} {}", names.join(", "))
        }
    }
}

/// What ends an import.
#[derive(Debug)]
pub(super) enum Stop {
    Graph(WrongList),
    Options(OptionProblem),
    Tensor(Box<TensorError>),
    Unsupported(UnsupportedList),
    Wire(WireError),
}

impl Stop {
    /// The error, for the file at `path`.
    pub(super) fn into_error(self, path: &Path) -> ImportError {
        let path = path.to_owned();
        match self {
            Self::Graph(problems) => ImportError::Graph { path, problems },
            Self::Options(problem) => ImportError::Options { path, problem },
            Self::Tensor(cause) => ImportError::Tensor { path, cause },
            Self::Unsupported(list) => ImportError::Unsupported { path, list },
            Self::Wire(cause) => ModelError::Wire { path, cause }.into(),
        }
    }
}

impl From<GraphProblem> for Stop {
    fn from(problem: GraphProblem) -> Self {
        let mut wrong = WrongList::default();
        wrong.add(|| problem);
        Self::Graph(wrong)
    }
}

impl From<OptionProblem> for Stop {
    fn from(problem: OptionProblem) -> Self {
        Self::Options(problem)
    }
}

/// What stops the translation of one node.
#[derive(Debug)]
pub(super) enum Problem {
    /// ONNX allows it, we do not.
    Unsupported(String),
    /// An input must be known here, which ONNX does not ask for; which one, if it is one of the node.
    NotConstant { input: Option<usize>, text: String },
    /// Input `input` must be known here, and is one of few.
    Choice { input: usize, of: Few, text: String },
    /// ONNX does not allow it.
    Invalid(String),
    /// An operator does not take it, for either reason.
    Operator(String),
    /// A tensor in an attribute cannot be read.
    Tensor(Box<TensorError>),
    /// Not the node is wrong but its rule.
    Rule(String),
}

impl Problem {
    /// Its number at the border.
    pub(super) fn kind(&self) -> Failure {
        match self {
            Self::Unsupported(_) => Failure::UNSUPPORTED,
            Self::NotConstant { input, .. } => {
                Failure::NOT_CONSTANT.of_input(input.map_or(0, |input| input + 1))
            }
            &Self::Choice { input, of: Few::Axes, .. } => Failure::AXES.of_input(input),
            &Self::Choice { input, of: Few::Extents, .. } => Failure::EXTENTS.of_input(input),
            Self::Invalid(_) => Failure::INVALID,
            Self::Operator(_) => Failure::OPERATOR,
            Self::Tensor(_) => Failure::TENSOR,
            Self::Rule(_) => Failure::ERROR,
        }
    }

    /// What is wrong.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Unsupported(reason)
            | Self::NotConstant { text: reason, .. }
            | Self::Choice { text: reason, .. }
            | Self::Invalid(reason)
            | Self::Operator(reason)
            | Self::Rule(reason) => reason.clone(),
            Self::Tensor(error) => error.to_string(),
        }
    }
}

/// Says that something is not supported.
pub(super) fn unsupported<T>(reason: impl Into<String>) -> Result<T, Problem> {
    Err(Problem::Unsupported(reason.into()))
}

/// Says that the model is wrong.
pub(super) fn invalid<T>(reason: impl Into<String>) -> Result<T, Problem> {
    Err(Problem::Invalid(reason.into()))
}

/// The name of an element type that tensors cannot have here, when that is what is wrong.
pub(super) fn unsupported_tensor(error: &TensorError) -> Option<String> {
    match &error.problem {
        TensorProblem::ElementType { name, .. } => Some(format!("the element type {name}")),
        _ => None,
    }
}

/// What is wrong with a model.
#[derive(Debug, Default)]
pub struct WrongList {
    /// In the order in which it was found: the first that were, and there is always one.
    pub items: Vec<GraphProblem>,
    /// How many more there are.
    pub more: usize,
    /// What has no translation besides.
    pub unsupported: UnsupportedList,
}

impl WrongList {
    pub(super) fn add(&mut self, problem: impl FnOnce() -> GraphProblem) {
        const KEPT: usize = 20;
        match self.items.len() < KEPT {
            true => self.items.push(problem()),
            false => self.more += 1,
        }
    }
}

/// One behind the colon, several below it.
impl fmt::Display for WrongList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.items.as_slice() {
            [only] => write!(f, " {only}")?,
            all => all.iter().try_for_each(|problem| write!(f, "\n  {problem}"))?,
        }
        if self.more > 0 {
            write!(f, "\n  … and {} more", self.more)?;
        }
        match self.unsupported.items.is_empty() {
            true => Ok(()),
            false => write!(f, "\nand it uses what is not supported:{}", self.unsupported),
        }
    }
}

/// Everything in a model that has no translation.
#[derive(Debug, Default)]
pub struct UnsupportedList {
    /// In the order in which they were found first.
    pub items: Vec<Unsupported>,
    /// Who would have rules for what has none, and where rules were looked for.
    pub notes: Vec<String>,
}

/// One thing without translation, and where it occurs.
#[derive(Debug, Clone)]
pub struct Unsupported {
    /// The operator, empty where it is not about one.
    pub op_type: String,
    /// Its domain; that of the standard operators is `ai.onnx`.
    pub domain: String,
    /// The version of the domain's operators.
    pub version: i64,
    /// What about it is not supported; `None` for the operator altogether.
    pub reason: Option<String>,
    /// How often it occurs.
    pub count: usize,
    /// The first few places.
    pub nodes: Vec<String>,
}

impl UnsupportedList {
    /// Whether a whole operator of this type is in the list.
    pub fn has_operator(&self, op_type: &str) -> bool {
        self.items.iter().any(|item| item.op_type == op_type && item.reason.is_none())
    }
}

impl fmt::Display for UnsupportedList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 50;
        for item in self.items.iter().take(SHOWN) {
            write!(f, "\n  {item}")?;
        }
        match self.items.len().saturating_sub(SHOWN) {
            0 => {}
            more => write!(f, "\n  … and {more} more")?,
        }
        self.notes.iter().take(SHOWN).try_for_each(|note| write!(f, "\n{note}"))
    }
}

impl UnsupportedList {
    /// The list with what the context knows of what is missing.
    pub(super) fn with_notes(mut self, cx: &Cx) -> Self {
        let operators = cx.operators();
        let whole = self.items.iter().filter(|item| item.reason.is_none());
        let mut domains = BTreeSet::new();
        for item in whole {
            let domain = standard_domain(&item.domain);
            domains.extend((!domain.is_empty()).then_some(domain));
            let key = super::rules::key(domain, &item.op_type);
            let told = operators.missing_rule(super::FACET, &key);
            let name = printable(&item.op_type);
            self.notes.extend(told.into_iter().map(|who| format!("{name}: {who}")));
        }
        let searched = operators.searched();
        self.notes.extend(domains.iter().map(|domain| domain_note(domain)));
        if !domains.is_empty() && !searched.is_empty() {
            let folders: Vec<String> = searched.iter().map(|it| it.display().to_string()).collect();
            self.notes.push(format!(
                "plugins with rules for other domains were looked for in {}",
                folders.join(", ")
            ));
        }
        self
    }
}

/// What is known of a domain of which an operator has no rule.
fn domain_note(domain: &str) -> String {
    let what = match domain {
        "ai.onnx.ml" => {
            "of classical machine learning the operators of the standard that work on numbers are supported (trees, linear models, \
             support vectors, encoders); export the model with these, or use a plugin with rules of import for this domain"
        }
        "ai.onnx.training" | "ai.onnx.preview.training" => {
            "these are operators of training; export the model for inference"
        }
        _ => {
            "these are no operators of the standard; export the model without them, or use a plugin with rules of import for \
             this domain"
        }
    };
    format!("{}: {what}", printable(domain))
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.op_type.is_empty() {
            let (op, domain) = (printable(&self.op_type), printable(&self.domain));
            write!(f, "{op} ({domain} {})", self.version)?;
        }
        if let Some(reason) = &self.reason {
            write!(f, "{}{reason}", if self.op_type.is_empty() { "" } else { ": " })?;
        }
        if self.nodes.is_empty() {
            return Ok(());
        }
        let times = match self.count {
            1 => "once".to_owned(),
            count => format!("{count} times"),
        };
        let more = if self.count > self.nodes.len() { ", …" } else { "" };
        write!(f, " — {times}: {}{more}", self.nodes.join(", "))
    }
}

/// A name from the file, without the quotation marks where it needs none.
pub(super) fn printable(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    match name.len() <= 64 && name.chars().all(is_plain) {
        true => name.to_owned(),
        false => quoted(name),
    }
}
