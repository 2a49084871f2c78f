//! The function under construction: values, and the bindings that make them.
//!
//! A value is bound to a variable when it is first needed, under the name that it has by then: the name
//! of the node's output, or for what is between a node's inputs and outputs one derived from it. Constants
//! and numbers that are known from dimensions get into the function only when something reads them.

mod bodies;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use tenon_plugin_api::abi::tables::NONE;
use tenon_plugin_api::rule::import::Known;

use crate::border::{self, Call};
use crate::ir::op_names::{BIND_DIMS, EXPECT, SCALARS};
use crate::ir::{
    AttrValue, Attrs, Build, Bytes, Constant, Context, Cx, Dim, Expr, Function, Kind, NodeSource,
    OpDef, Symbol, Term, TermView, Terms, Transaction, Type, TypeView, View,
};

use super::error::{Problem, invalid, unsupported};
use super::evaluate::evaluate;
use super::names::Names;
use super::node::Node;
use super::tensor::check_rank;
use crate::ops::OpError;
use bodies::OpenBody;

pub(super) use bodies::{Body, Limit};

/// A value of the function under construction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Value(u32);

impl Value {
    /// As it crosses to rules.
    pub(super) fn into_number(self) -> u32 {
        self.0
    }

    /// An input as it crosses to rules.
    pub(super) fn number(input: Option<Self>) -> u32 {
        input.map_or(NONE, Self::into_number)
    }
}

#[derive(Debug)]
struct Entry {
    ty: Type,
    form: Form,
    /// Its elements, where they are known as dimensions.
    known: Option<Rc<Known>>,
}

#[derive(Debug)]
enum Form {
    /// Something that may stand wherever a value is read: a variable, a constant, a shape, a tuple.
    Ready(Expr),
    /// A call or an item of a tuple that is not bound yet, and what it is called after.
    Unbound(Expr, Symbol),
    /// Not in the function yet.
    Constant(Arc<Constant>),
    /// Not in the function yet; the elements are in `known`.
    Known,
    /// What a node without translation would make.
    Missing,
}

/// The function under construction.
pub(super) struct Builder {
    cx: Cx,
    /// What rules are asked from.
    asker: Arc<Call>,
    tx: Transaction,
    params: Vec<Expr>,
    /// The names of parameters that are given as a number.
    scalars: Vec<Term>,
    /// The body in work, and those around it, innermost last.
    body: OpenBody,
    around: Vec<OpenBody>,
    values: Vec<Entry>,
    /// The operators that were called, and what a result of theirs is called after.
    ops: HashMap<String, (Expr, Symbol)>,
    names: Names,
    /// Those of symbols.
    symbols: Rc<RefCell<Names>>,
    /// What the values of the node in work are named after.
    node_name: String,
    /// How many bytes of constants may still be computed.
    budget: usize,
    /// Whether a rule is asked to compute a tensor of dimensions.
    is_materializing: bool,
}

/// A short model can ask for long constants, once for each node. These many bytes are enough for all.
const LARGEST_CONSTANTS: usize = 1 << 26;

impl Builder {
    pub(super) fn new(cx: Cx, symbols: Rc<RefCell<Names>>) -> Self {
        Self {
            tx: Transaction::new(cx.clone()),
            asker: border::asker(&cx),
            cx,
            params: Vec::new(),
            scalars: Vec::new(),
            body: OpenBody::default(),
            around: Vec::new(),
            values: Vec::new(),
            ops: HashMap::new(),
            names: Names::default(),
            symbols,
            node_name: String::new(),
            budget: LARGEST_CONSTANTS,
            is_materializing: false,
        }
    }

    pub(super) fn cx(&self) -> &Cx {
        &self.cx
    }

    pub(super) fn terms(&self) -> Terms<'_> {
        self.cx.terms()
    }

    /// What rules are asked from.
    pub(super) fn asker(&self) -> &Arc<Call> {
        &self.asker
    }

    /// The value that a rule means by a number.
    pub(super) fn value(&self, number: u32) -> Result<Value, Problem> {
        match self.values.get(number as usize).map(|entry| &entry.form) {
            None | Some(Form::Missing) => {
                Err(Problem::Rule(format!("its rule names the value {number}, which is not there")))
            }
            Some(_) => Ok(Value(number)),
        }
    }

    /// Begins a node whose first output is called `name`, and from which comes what is built from here on.
    pub(super) fn begin_node(&mut self, name: &str, source: NodeSource) {
        self.node_name.clear();
        self.node_name.push_str(name);
        self.tx.set_source(source);
    }

    /// A parameter of the function.
    pub(super) fn param(&mut self, name: &str, ty: Type) -> Value {
        let name = self.names.fresh(name);
        let var = self.tx.var(&name, Some(ty));
        self.params.push(var);
        // Of no elements all are known.
        let empty = match self.cx.terms().static_tensor(ty) {
            Some((dtype, shape)) if shape[..] == [0] && Known::has_elements_of(dtype) => {
                Some(Rc::new(Known { dtype, shape: vec![0], elements: Vec::new() }))
            }
            _ => None,
        };
        self.add(ty, Form::Ready(var), empty)
    }

    /// A parameter that is a shape, given as a number where it is a scalar.
    pub(super) fn shape_param(&mut self, name: &str, dims: &[Dim], is_scalar: bool) {
        let name = self.names.fresh(name);
        let var = self.tx.var(&name, Some(self.cx.shape_type(Some(dims))));
        self.params.push(var);
        if is_scalar {
            self.scalars.push(self.cx.symbol(&name).into());
        }
    }

    /// A constant.
    pub(super) fn constant(&mut self, constant: Constant) -> Value {
        let known = Known::of_constant(&self.cx, constant.ty, &constant.data).map(Rc::new);
        self.add(constant.ty, Form::Constant(Arc::new(constant)), known)
    }

    /// Takes `bytes` of what constants that are computed may take together; false when there is not so
    /// much left.
    pub(super) fn spend(&mut self, bytes: usize) -> bool {
        let left = self.budget.checked_sub(bytes);
        self.budget = left.unwrap_or(0);
        left.is_some()
    }

    /// A tensor whose elements are known as dimensions.
    pub(super) fn known(&mut self, known: Known) -> Value {
        let ty = known.ty(&self.cx);
        self.add(ty, Form::Known, Some(Rc::new(known)))
    }

    /// A shape.
    pub(super) fn shape(&mut self, dims: &[Dim]) -> Value {
        let expr = self.tx.shape(dims);
        let ty = self.cx.shape_type(Some(dims));
        self.add(ty, Form::Ready(expr), None)
    }

    /// A tuple.
    pub(super) fn tuple(&mut self, fields: &[Value]) -> Result<Value, Problem> {
        let ty: Vec<Type> = fields.iter().map(|&field| self.ty(field)).collect();
        let ty = self.cx.tuple_type(&ty);
        let fields: Vec<Expr> =
            fields.iter().map(|&field| self.operand(field)).collect::<Result<_, _>>()?;
        let expr = self.tx.tuple(&fields);
        self.tx.set_type(expr, Some(ty));
        Ok(self.add(ty, Form::Ready(expr), None))
    }

    /// The fields of a tuple.
    pub(super) fn items(&mut self, tuple: Value) -> Result<Vec<Value>, Problem> {
        let fields = match self.cx.terms().ty(self.ty(tuple)) {
            TypeView::Tuple(fields) => fields.to_vec(),
            _ => return invalid("a tuple is expected"),
        };
        let (tuple, hint) = (self.operand(tuple)?, self.cx.symbol("item"));
        let items = fields.into_iter().zip(0..).map(|(ty, index)| {
            let item = self.tx.tuple_get_item(tuple, index);
            self.tx.set_type(item, Some(ty));
            self.add(ty, Form::Unbound(item, hint), None)
        });
        let items: Vec<Value> = items.collect();
        items.into_iter().map(|item| self.with_short_dims(item)).collect()
    }

    /// A call of operator `op`, whose type is inferred at once.
    pub(super) fn call(
        &mut self,
        op: &str,
        args: &[Value],
        attrs: Attrs,
    ) -> Result<Value, Problem> {
        let attrs = match op {
            BIND_DIMS => self.with_fresh_symbols(args, attrs)?,
            _ => attrs,
        };
        let problem = |error| match error {
            OpError::ShapeMismatch { .. }
            | OpError::Value(_)
            | OpError::BadAttr { .. }
            | OpError::WrongArg { .. } => Problem::Invalid(format!("as `{op}`, {error}")),
            _ => Problem::Operator(format!("`{op}`: {error}")),
        };
        let types: Vec<Type> = args.iter().map(|&arg| self.ty(arg)).collect();
        let def = self.cx.operators().get(op).map_err(problem)?;
        let ty = def.infer(&self.cx, &types, attrs).map_err(problem)?;
        self.check_rank(ty)?;
        if let Some(value) = self.evaluated(&def, args, attrs, ty) {
            return Ok(value);
        }
        let mut operands = Vec::with_capacity(args.len());
        for &arg in args {
            operands.push(self.operand(arg)?);
        }
        let (callee, hint) = self.callee(op);
        let call = self.tx.call(callee, &operands, attrs, Some(ty));
        let value = self.add(ty, Form::Unbound(call, hint), None);
        if [BIND_DIMS, EXPECT].contains(&op) {
            // Whoever reads its symbols, or counts on what it asks, does not read the value.
            self.operand(value)?;
        }
        self.with_short_dims(value)
    }

    /// The attributes of a call that binds dimensions, with symbols that stand for nothing yet: one for each element.
    fn with_fresh_symbols(&mut self, args: &[Value], attrs: Attrs) -> Result<Attrs, Problem> {
        let terms = self.cx.terms();
        let ty = args.first().map(|&counts| self.ty(counts));
        let count =
            match ty.and_then(|ty| terms.static_tensor(ty)).as_ref().map(|(_, dims)| &dims[..]) {
                Some(&[count]) => count,
                _ => return invalid("dimensions are bound to what is no list"),
            };
        let most = match terms.attrs(attrs).get("most") {
            Some(TermView::Type(most)) => Some(most),
            _ => None,
        };
        let mut names = self.symbols.borrow_mut();
        let symbol = |_| self.cx.dim_symbol(&names.fresh(&format!("{}_size", self.node_name)));
        let dims: Vec<Dim> = (0..count).map(symbol).collect();
        let ty = self.cx.shape_type(Some(&dims));
        self.body.found.extend(&dims);
        let mut entries = vec![("ty", AttrValue::Term(ty.into()))];
        entries.extend(most.map(|most| ("most", AttrValue::Term(most.into()))));
        Ok(self.cx.attrs(&entries))
    }

    fn callee(&mut self, op: &str) -> (Expr, Symbol) {
        if let Some(&known) = self.ops.get(op) {
            return known;
        }
        let hint = self.cx.symbol(op.rsplit('.').next().unwrap_or(op));
        let callee = (self.tx.op(op), hint);
        self.ops.insert(op.to_owned(), callee);
        callee
    }

    /// The value of a call on a few constants.
    fn evaluated(&mut self, op: &OpDef, args: &[Value], attrs: Attrs, ty: Type) -> Option<Value> {
        let mut constants = Vec::with_capacity(args.len());
        for &arg in args {
            match self.as_constant(arg) {
                Some(constant) => constants.push(constant),
                None => constants.extend(self.constants_of_tuple(arg)?),
            }
        }
        if constants.is_empty() {
            return None;
        }
        let constant = evaluate(&self.cx, op, &constants, attrs, ty)?;
        self.spend(constant.data.len()).then(|| self.constant(constant))
    }

    /// What a node without translation would make.
    pub(super) fn missing(&mut self) -> Value {
        self.add(Type(0), Form::Missing, None)
    }

    pub(super) fn is_missing(&self, value: Value) -> bool {
        matches!(self.entry(value).form, Form::Missing)
    }

    pub(super) fn ty(&self, value: Value) -> Type {
        self.entry(value).ty
    }

    /// The elements of a value, where they are known as dimensions.
    pub(super) fn elements(&self, value: Value) -> Option<Rc<Known>> {
        self.entry(value).known.clone()
    }

    /// The constant that a value is, if it is one.
    pub(super) fn as_constant(&self, value: Value) -> Option<Arc<Constant>> {
        match &self.entry(value).form {
            Form::Constant(constant) => Some(constant.clone()),
            Form::Ready(expr) => {
                let raw = self.tx.body().raw_node(*expr);
                let is_constant = raw.kind == Kind::CONSTANT.0;
                is_constant.then(|| self.tx.constants()[raw.data as usize].clone())
            }
            Form::Known => {
                let bytes = self.elements(value)?.bytes(self.terms())?;
                let (ty, name) = (self.ty(value), Symbol(0));
                Some(Arc::new(Constant { ty, name, data: Bytes::new(bytes) }))
            }
            Form::Unbound(..) | Form::Missing => None,
        }
    }

    /// The fields of a tuple of constants.
    fn constants_of_tuple(&self, value: Value) -> Option<Vec<Arc<Constant>>> {
        let Form::Ready(tuple) = self.entry(value).form else { return None };
        let body = self.tx.body();
        if body.raw_node(tuple).kind != Kind::TUPLE.0 {
            return None;
        }
        let constant = |field: Expr| {
            let raw = body.raw_node(field);
            let is_constant = raw.kind == Kind::CONSTANT.0;
            is_constant.then(|| self.tx.constants()[raw.data as usize].clone())
        };
        body.operands(tuple).iter().map(constant).collect()
    }

    /// Whether a value is a constant.
    pub(super) fn is_constant(&self, value: Value) -> bool {
        match &self.entry(value).form {
            Form::Constant(_) => true,
            Form::Known => self.elements(value).is_some_and(|known| {
                known.elements.iter().all(|&dim| self.terms().dim_value(dim).is_some())
            }),
            _ => self.as_constant(value).is_some(),
        }
    }

    /// Binds a value that needs a variable under a name of the model.
    pub(super) fn define(&mut self, value: Value, name: &str) {
        if let Form::Unbound(expr, _) = self.entry(value).form {
            let name = self.names.fresh(name);
            self.bind(value, expr, &name);
        }
    }

    /// The node that stands for a value where it is read.
    fn operand(&mut self, value: Value) -> Result<Expr, Problem> {
        let entry = &self.values[value.0 as usize];
        let expr = match &entry.form {
            Form::Ready(expr) => return Ok(*expr),
            &Form::Unbound(expr, hint) => {
                let hint = self.cx.terms().str(hint);
                let name = self.names.fresh(&format!("{}_{hint}", self.node_name));
                return Ok(self.bind(value, expr, &name));
            }
            Form::Constant(constant) => self.tx.shared_constant(constant.clone()),
            Form::Known => return self.materialize(value),
            Form::Missing => return invalid("it has no value"),
        };
        self.values[value.0 as usize].form = Form::Ready(expr);
        Ok(expr)
    }

    fn bind(&mut self, value: Value, expr: Expr, name: &str) -> Expr {
        let var = self.tx.var(name, Some(self.ty(value)));
        // It may be bound by a later node, which reads it.
        let source = self.tx.body().source(expr);
        self.tx.set_source_of(var, source);
        let is_flow = self.tx.body().kind(expr) != Kind::IF && !self.is_order(expr);
        match self.body.blocks.last_mut().filter(|(is_dataflow, _)| *is_dataflow == is_flow) {
            Some((_, bindings)) => bindings.push((var, expr)),
            None => self.body.blocks.push((is_flow, vec![(var, expr)])),
        }
        self.values[value.0 as usize].form = Form::Ready(var);
        var
    }

    /// Whether it counts where a call stands.
    fn is_order(&self, expr: Expr) -> bool {
        let body = self.tx.body();
        let counts = |op| [BIND_DIMS, EXPECT].contains(&op);
        matches!(body.view(expr), View::Call { callee, .. } if body.op_name(callee).is_some_and(counts))
    }

    /// Computes a tensor of dimensions at run time, or makes it a constant when all are numbers.
    fn materialize(&mut self, value: Value) -> Result<Expr, Problem> {
        let made = match self.as_constant(value) {
            Some(constant) => self.add(constant.ty, Form::Constant(constant), None),
            None => self.computed(value)?,
        };
        let expr = self.operand(made)?;
        self.values[value.0 as usize].form = Form::Ready(expr);
        if (value.0 as usize) < self.body.first {
            self.body.materialized.push(value);
        }
        Ok(expr)
    }

    /// The tensor of dimensions that `value` is, as a rule computes it at run time.
    fn computed(&mut self, value: Value) -> Result<Value, Problem> {
        const KEY: &str = "tenon::Dimensions";
        if std::mem::replace(&mut self.is_materializing, true) {
            return Err(Problem::Rule(format!("the rule for {KEY} reads what it is to compute")));
        }
        let rules = self.cx.operators().rules(super::FACET, KEY, 0);
        let outputs = rules
            .map_err(|error| Problem::Rule(error.to_string()))
            .and_then(|rules| Node::of_importer(self).ask(&rules, KEY, &[Some(value)]));
        self.is_materializing = false;
        let ty = self.ty(value);
        match outputs?.as_deref() {
            Some(&[made]) if made != value && self.ty(made) == ty => Ok(made),
            Some(_) => Err(Problem::Rule(format!("the rule for {KEY} answers something else"))),
            None => unsupported("a number computed from dimensions, without a rule for it"),
        }
    }

    /// The function, with what was bound and these results.
    pub(super) fn finish(mut self, outputs: &[Value]) -> Result<Arc<Function>, Problem> {
        self.tx.set_source(NodeSource::NONE);
        let result = match outputs {
            [output] => *output,
            outputs => self.tuple(outputs)?,
        };
        let ty = self.ty(result);
        let result = self.operand(result)?;
        let body = match self.body.blocks.is_empty() {
            true => result,
            false => self.tx.let_blocks(&self.body.blocks, result),
        };
        let attrs = match self.scalars.is_empty() {
            true => Attrs::NONE,
            false => self.cx.attrs(&[(SCALARS, AttrValue::from(self.cx.list(&self.scalars)))]),
        };
        let root = self.tx.function(&self.params, body, Some(ty), attrs);
        self.tx.set_root(root);
        self.tx.finish().map_err(|error| Problem::Invalid(error.to_string()))
    }

    fn add(&mut self, ty: Type, form: Form, known: Option<Rc<Known>>) -> Value {
        self.values.push(Entry { ty, form, known });
        Value(self.values.len() as u32 - 1)
    }

    fn entry(&self, value: Value) -> &Entry {
        &self.values[value.0 as usize]
    }

    /// Refuses tensors that have more dimensions than a model has a use for.
    fn check_rank(&self, ty: Type) -> Result<(), Problem> {
        match self.terms().ty(ty) {
            TypeView::Tensor { dims: Some(dims), .. } => check_rank(dims.len()).map_err(Into::into),
            _ => Ok(()),
        }
    }
}
