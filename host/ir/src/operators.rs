//! How a context knows operators: by name, in a book that whoever makes the context brings.
//!
//! The parser, the checker, inference and the evaluator look operators up here, so none of them knows where operators come
//! from.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tenon_plugin_api::op::{InferCx, OpAttrs, OpError, OpSchema, Tensor};

use super::{Attrs, Context, Cx, DType, Fit, Type};

/// An operator: what it says of itself, and its code.
#[derive(Clone)]
pub struct OpDef {
    schema: &'static OpSchema,
    code: OpCode,
}

/// Where an operator's code is.
#[derive(Clone)]
pub enum OpCode {
    /// In the host, whose own run-time executes it.
    Runtime(fn(&Cx, &InferCx<'_>) -> Result<Type, OpError>),
    /// In a plugin.
    Plugin(Arc<dyn Evaluation>),
}

/// The code of an operator that has a reference evaluation.
pub trait Evaluation: Send + Sync {
    /// The type of a call, whose attributes and number of arguments are right.
    fn infer(&self, cx: &Cx, args: &[Type], attrs: Attrs) -> Result<Type, OpError>;

    /// What the type of such a call takes for granted of dimensions, each once.
    fn fits(&self, _cx: &Cx, _args: &[Type], _attrs: Attrs) -> Result<Vec<Fit>, OpError> {
        Ok(Vec::new())
    }

    /// The tensors of the result of a call, of these types and shapes.
    fn evaluate(
        &self,
        cx: &Cx,
        args: &[Tensor],
        attrs: Attrs,
        outs: &[(DType, Vec<usize>)],
    ) -> Result<Vec<Tensor>, OpError>;
}

impl OpDef {
    /// An operator.
    pub fn new(schema: &'static OpSchema, code: OpCode) -> Self {
        Self { schema, code }
    }

    /// What it says of itself.
    pub fn schema(&self) -> &'static OpSchema {
        self.schema
    }

    /// Its reference evaluation; `None` of one that the host's own run-time executes.
    pub fn evaluation(&self) -> Option<&dyn Evaluation> {
        match &self.code {
            OpCode::Runtime(_) => None,
            OpCode::Plugin(code) => Some(&**code),
        }
    }

    /// The attributes of a call, checked.
    pub fn attrs<'a>(&self, cx: &'a Cx, attrs: Attrs) -> Result<OpAttrs<'a>, OpError> {
        let terms = cx.terms();
        OpAttrs::new(self.schema, terms.attrs(attrs), terms)
    }

    /// The type of a call, after a look at the number of arguments and the attributes. `Type(0)` stands for an argument
    /// without a type.
    pub fn infer(&self, cx: &Cx, args: &[Type], attrs: Attrs) -> Result<Type, OpError> {
        if !self.args.accepts(args.len()) {
            return Err(OpError::WrongArity { expected: self.args, found: args.len() });
        }
        let checked = self.attrs(cx, attrs)?;
        match &self.code {
            OpCode::Runtime(infer) => {
                infer(cx, &InferCx { cx, op: self.schema, args, attrs: checked })
            }
            OpCode::Plugin(code) => code.infer(cx, args, attrs),
        }
    }

    /// What the type of a call takes for granted of dimensions and only a run can refute, each once.
    pub fn fits(&self, cx: &Cx, args: &[Type], attrs: Attrs) -> Result<Vec<Fit>, OpError> {
        match &self.code {
            OpCode::Runtime(_) => Ok(Vec::new()),
            OpCode::Plugin(code) => code.fits(cx, args, attrs),
        }
    }
}

impl Deref for OpDef {
    type Target = OpSchema;

    fn deref(&self) -> &OpSchema {
        self.schema
    }
}

impl fmt::Debug for OpDef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpDef({})", self.name)
    }
}

/// The code of a rule.
pub trait RuleCode: Send + Sync {
    /// Asks it. `None` when it declines.
    fn ask(&self, question: &RuleQuestion<'_>) -> Result<Option<RuleReply>, OpError>;
}

/// A rule of some plugin.
#[derive(Clone)]
pub struct Rule {
    /// The id of its plugin.
    pub provider: Arc<str>,
    /// Its code.
    pub code: Arc<dyn RuleCode>,
}

/// What a rule is asked. What nodes and data mean says its facet.
pub struct RuleQuestion<'a> {
    /// The context of the terms.
    pub cx: &'a Cx,
    /// The nodes that it is about.
    pub nodes: &'a [u32],
    /// What else it is about, a term.
    pub data: u32,
    /// Where the nodes stand and what the host does meanwhile, as the border knows it.
    pub site: &'a dyn Any,
}

/// What a rule answers.
#[derive(Clone, Debug, Default)]
pub struct RuleReply {
    /// Nodes.
    pub nodes: Vec<u32>,
    /// A term.
    pub data: u32,
}

/// Where operators are looked up, and what is known of them besides.
pub trait OpBook: Send + Sync {
    /// The operator called `name`. The error says what there is, and where was looked.
    fn get(&self, name: &str) -> Result<Arc<OpDef>, OpError>;

    /// The operator called `name`, if there is one that can be used.
    fn find(&self, name: &str) -> Option<Arc<OpDef>> {
        self.get(name).ok()
    }

    /// The name of the operator that has this one as another name.
    fn canonical(&self, alias: &str) -> Option<String> {
        let _ = alias;
        None
    }

    /// The names of all operators, in ascending order.
    fn names(&self) -> Vec<String>;

    /// The rules of a facet for a key that hold in a version, the one that is asked first in front. The error says why it is
    /// not clear which that is, or why one of them cannot be used.
    fn rules(&self, facet: &str, key: &str, version: u64) -> Result<Arc<[Rule]>, OpError> {
        let _ = (facet, key, version);
        Ok(Arc::new([]))
    }

    /// Why there is no rule of a facet for a key, where somebody would have one: who, and what keeps it from being asked.
    fn missing_rule(&self, facet: &str, key: &str) -> Vec<String> {
        let _ = (facet, key);
        Vec::new()
    }

    /// The folders that plugins are looked for in.
    fn searched(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Why no code can be made for what a target is called. There is no reason where nobody makes code.
    fn target_problem(&self, target: &str) -> Option<String> {
        let _ = target;
        None
    }

    /// Where operators and rules are from, for a process that is to know the same ones.
    fn origin(&self) -> Origin {
        Origin::default()
    }
}

/// Where the operators and the rules of a book are from.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Origin {
    /// Files of libraries, and whether their rules for operators of others take part.
    pub libraries: Vec<(PathBuf, bool)>,
    /// By `facet:key`, the plugin whose rules are asked first.
    pub choices: BTreeMap<String, String>,
}

/// A book without operators.
#[derive(Debug)]
pub struct NoOperators;

impl OpBook for NoOperators {
    fn get(&self, name: &str) -> Result<Arc<OpDef>, OpError> {
        let (nearest, searched) = (Vec::new(), Vec::new());
        Err(OpError::UnknownOp { name: name.to_owned(), nearest, searched })
    }

    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}
