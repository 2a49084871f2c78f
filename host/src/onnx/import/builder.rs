//! The function under construction: values, and the bindings that make them.
//!
//! A value is bound to a variable when it is first needed, under the name that it has by then: the name
//! of the node's output, or for what is between a node's inputs and outputs one derived from it. Constants
//! and numbers that are known from dimensions get into the function only when something reads them.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use crate::ir::{
    AttrValue, Attrs, Build, Bytes, Constant, Context, Cx, DType, Dim, Expr, Function, Kind, OpDef,
    Symbol, Terms, Transaction, Type, TypeView,
};

use super::dim_math::is_small;
use super::error::{Problem, invalid, unsupported};
use super::evaluate::evaluate;
use super::known::Known;
use super::names::Names;
use super::tensor::check_rank;

/// A value of the function under construction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Value(u32);

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
    Unbound(Expr, &'static str),
    /// Not in the function yet.
    Constant(Arc<Constant>),
    /// Not in the function yet; the elements are in `known`.
    Known,
    /// What a node without translation would make.
    Missing,
}

/// The function under construction.
#[derive(Debug)]
pub(super) struct Builder {
    cx: Cx,
    tx: Transaction,
    params: Vec<Expr>,
    bindings: Vec<(Expr, Expr)>,
    values: Vec<Entry>,
    ops: HashMap<&'static str, Expr>,
    names: Names,
    /// What the values of the node in work are named after.
    node_name: String,
    /// How many bytes of constants may still be computed.
    budget: usize,
}

/// A short model can ask for long constants, once for each node. These many bytes are enough for all.
const LARGEST_CONSTANTS: usize = 1 << 26;

impl Builder {
    pub(super) fn new(cx: Cx) -> Self {
        Self {
            tx: Transaction::new(cx.clone()),
            cx,
            params: Vec::new(),
            bindings: Vec::new(),
            values: Vec::new(),
            ops: HashMap::new(),
            names: Names::default(),
            node_name: String::new(),
            budget: LARGEST_CONSTANTS,
        }
    }

    pub(super) fn cx(&self) -> &Cx {
        &self.cx
    }

    pub(super) fn terms(&self) -> Terms<'_> {
        self.cx.terms()
    }

    /// Begins a node whose first output is called `name`.
    pub(super) fn begin_node(&mut self, name: &str) {
        self.node_name.clear();
        self.node_name.push_str(name);
    }

    /// A parameter of the function.
    pub(super) fn param(&mut self, name: &str, ty: Type) -> Value {
        let name = self.names.fresh(name);
        let var = self.tx.var(&name, Some(ty));
        self.params.push(var);
        self.add(ty, Form::Ready(var), None)
    }

    /// A constant.
    pub(super) fn constant(&mut self, constant: Constant) -> Value {
        let known = Known::of_constant(&self.cx, &constant).map(Rc::new);
        self.add(constant.ty, Form::Constant(Arc::new(constant)), known)
    }

    /// Takes `bytes` of what constants that are computed may take together; false when there is not so
    /// much left.
    pub(super) fn spend(&mut self, bytes: usize) -> bool {
        let left = self.budget.checked_sub(bytes);
        self.budget = left.unwrap_or(0);
        left.is_some()
    }

    /// A constant of bytes that are computed here.
    pub(super) fn constant_of(&mut self, dtype: DType, shape: &[i64], bytes: Vec<u8>) -> Value {
        let ty = self.cx.static_tensor_type(dtype, shape);
        let name = Symbol(0);
        self.constant(Constant { ty, name, data: Bytes::new(bytes) })
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
        let tuple = self.operand(tuple)?;
        let items = fields.into_iter().zip(0..).map(|(ty, index)| {
            let item = self.tx.tuple_get_item(tuple, index);
            self.tx.set_type(item, Some(ty));
            self.add(ty, Form::Unbound(item, "item"), None)
        });
        Ok(items.collect())
    }

    /// A call of operator `op`, whose type is inferred at once.
    pub(super) fn call(
        &mut self,
        op: &'static str,
        args: &[Value],
        attrs: &[(&str, AttrValue)],
    ) -> Result<Value, Problem> {
        let problem = |error| Problem::Op { op, error };
        let attrs = self.cx.attrs(attrs);
        let types: Vec<Type> = args.iter().map(|&arg| self.ty(arg)).collect();
        let def = self.cx.operators().get(op).map_err(problem)?;
        let ty = def.infer(&self.cx, &types, attrs).map_err(problem)?;
        self.check_size(ty)?;
        if let Some(value) = self.evaluated(&def, args, attrs, ty) {
            return Ok(value);
        }
        let mut operands = Vec::with_capacity(args.len());
        for &arg in args {
            operands.push(self.operand(arg)?);
        }
        let tx = &mut self.tx;
        let callee = *self.ops.entry(op).or_insert_with(|| tx.op(op));
        let call = tx.call(callee, &operands, attrs, Some(ty));
        let hint = op.rsplit('.').next().unwrap_or(op);
        Ok(self.add(ty, Form::Unbound(call, hint), None))
    }

    /// The value of a call on a few constants.
    fn evaluated(&mut self, op: &OpDef, args: &[Value], attrs: Attrs, ty: Type) -> Option<Value> {
        let args: Vec<Arc<Constant>> =
            args.iter().map(|&arg| self.as_constant(arg)).collect::<Option<_>>()?;
        if args.is_empty() {
            return None;
        }
        let constant = evaluate(&self.cx, op, &args, attrs, ty)?;
        self.spend(constant.data.len()).then(|| self.constant(constant))
    }

    /// A call without attributes.
    pub(super) fn apply(&mut self, op: &'static str, args: &[Value]) -> Result<Value, Problem> {
        self.call(op, args, &[])
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

    pub(super) fn dtype(&self, value: Value) -> Result<DType, Problem> {
        match self.terms().ty(self.ty(value)) {
            TypeView::Tensor { dtype, .. } => Ok(dtype),
            _ => invalid("a tensor is expected"),
        }
    }

    /// The dimensions of a value whose rank is known.
    pub(super) fn dims(&self, value: Value) -> Result<Vec<Dim>, Problem> {
        match self.terms().ty(self.ty(value)) {
            TypeView::Tensor { dims: Some(dims), .. } => Ok(dims.to_vec()),
            TypeView::Tensor { .. } => unsupported("a tensor of unknown rank"),
            _ => invalid("a tensor is expected"),
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
                let name = self.names.fresh(&format!("{}_{hint}", self.node_name));
                return Ok(self.bind(value, expr, &name));
            }
            Form::Constant(constant) => self.tx.shared_constant(constant.clone()),
            Form::Known => {
                let Some(known) = entry.known.clone() else { return invalid("it has no elements") };
                return self.materialize(value, &known);
            }
            Form::Missing => return invalid("it has no value"),
        };
        self.values[value.0 as usize].form = Form::Ready(expr);
        Ok(expr)
    }

    fn bind(&mut self, value: Value, expr: Expr, name: &str) -> Expr {
        let var = self.tx.var(name, Some(self.ty(value)));
        self.bindings.push((var, expr));
        self.values[value.0 as usize].form = Form::Ready(var);
        var
    }

    /// Computes a tensor of dimensions at run time, or makes it a constant when all are numbers.
    fn materialize(&mut self, value: Value, known: &Known) -> Result<Expr, Problem> {
        let made = match self.as_constant(value) {
            Some(constant) => self.add(constant.ty, Form::Constant(constant), None),
            None => {
                if !known.is_shape(self.terms()) {
                    return unsupported("a number computed from dimensions that may be negative");
                }
                let shape = self.shape(&known.elements);
                let mut made = self.apply("shape_to_tensor", &[shape])?;
                if known.shape.len() != 1 {
                    let dims: Vec<Dim> =
                        known.shape.iter().map(|&dim| self.cx.dim(dim as i64)).collect();
                    let shape = self.shape(&dims);
                    made = self.apply("reshape", &[made, shape])?;
                }
                if known.dtype != DType::I64 {
                    let dtype = known.dtype.to_string();
                    made = self.call("cast", &[made], &[("dtype", dtype.into())])?;
                }
                made
            }
        };
        let expr = self.operand(made)?;
        self.values[value.0 as usize].form = Form::Ready(expr);
        Ok(expr)
    }

    /// The function, with what was bound and these results.
    pub(super) fn finish(mut self, outputs: &[Value]) -> Result<Arc<Function>, Problem> {
        let result = match outputs {
            [output] => *output,
            outputs => self.tuple(outputs)?,
        };
        let ty = self.ty(result);
        let result = self.operand(result)?;
        let body = match self.bindings.is_empty() {
            true => result,
            false => self.tx.let_blocks(&[(true, self.bindings)], result),
        };
        let root = self.tx.function(&self.params, body, Some(ty), Attrs::NONE);
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

    /// Refuses types that are beyond what a model has a use for.
    fn check_size(&self, ty: Type) -> Result<(), Problem> {
        let terms = self.terms();
        let TypeView::Tensor { dims: Some(dims), .. } = terms.ty(ty) else { return Ok(()) };
        check_rank(dims.len()).map_err(Problem::Unsupported)?;
        match dims.iter().all(|&dim| is_small(terms, dim)) {
            true => Ok(()),
            false => invalid("its dimensions are too complicated"),
        }
    }
}
