//! Functions that Python reads node by node, builds and edits.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use tenon_compiler::diagnostics::Source;
use tenon_compiler::eval::fold;
use tenon_compiler::infer::{infer, infer_node, signature};
use tenon_compiler::ir::{
    Attrs, Build, Context, Cx, Expr, Kind, Symbol, Transaction, Type, TypeView, View,
};
use tenon_compiler::runtime::signature::data_type;
use tenon_compiler::text::parse_checked_module;

use crate::arrays::Array;
use crate::errors::{exception, failure};
use crate::module::{Function, Module};
use crate::terms;

/// A function that is being edited, or built. Nodes are numbers; operands have smaller ones where the function was
/// published.
#[pyclass(frozen, module = "tenon._core")]
pub(crate) struct Edit {
    cx: Cx,
    transaction: Mutex<Transaction>,
    /// Whether the root is one that was built here.
    is_new: bool,
}

/// Kind, operands, type, name, number, attributes as JSON.
type Node = (&'static str, Vec<u32>, Option<String>, Option<String>, u32, String);

#[pymethods]
impl Edit {
    /// Edits a function.
    #[staticmethod]
    fn of(function: &Function) -> Edit {
        let transaction = Transaction::edit(&function.function);
        let cx = function.function.cx().clone();
        Edit { cx, transaction: Mutex::new(transaction), is_new: false }
    }

    /// Builds one of a module's context.
    #[staticmethod]
    fn within(module: &Module) -> Edit {
        let cx = module.model.module.cx().clone();
        Edit { transaction: Mutex::new(Transaction::new(cx.clone())), cx, is_new: true }
    }

    /// How many nodes there are.
    fn __len__(&self) -> usize {
        self.lock().body().len()
    }

    /// The function or the program itself.
    fn root(&self) -> u32 {
        self.lock().body().root().0
    }

    /// What a node is, with the replacements made so far.
    fn node(&self, node: u32) -> PyResult<Node> {
        let edit = self.lock();
        let expr = known(&edit, node)?;
        let body = edit.body();
        let terms = body.terms();
        let kind = body.kind(expr);
        let name = match body.view(expr) {
            View::Var { name }
            | View::Global { name }
            | View::Op { name }
            | View::Extern { name }
            | View::Buffer { name, .. }
            | View::Intrinsic { name, .. } => Some(terms.str(name).to_owned()),
            View::Binary { op, .. } => Some(op.text().to_owned()),
            _ => None,
        };
        let operands = body.operands(expr).iter().map(|operand| operand.0).collect();
        let ty = body.ty(expr).map(|ty| terms.type_text(ty));
        let data = body.raw_node(expr).data;
        let attrs = terms::dict(terms, body.attrs(expr)).to_string();
        Ok((kind.name(), operands, ty, name, data, attrs))
    }

    /// The elements of a constant, in memory of their own.
    fn elements(&self, node: u32) -> PyResult<Array> {
        let edit = self.lock();
        let expr = known(&edit, node)?;
        let View::Constant(constant) = edit.body().view(expr) else {
            return Err(PyValueError::new_err("the node is no constant"));
        };
        let (dtype, shape) = edit
            .body()
            .terms()
            .static_tensor(constant.ty)
            .ok_or_else(|| PyValueError::new_err("the constant has no shape"))?;
        Array::of_bytes(dtype, &shape, constant.bytes)
    }

    /// A new variable, of a type if one is given.
    fn var(&self, name: &str, ty: Option<&str>) -> PyResult<u32> {
        let ty = ty.map(|ty| parsed_type(&self.cx, ty)).transpose()?;
        Ok(self.lock().var(name, ty).0)
    }

    /// A call of an operator, with attributes as JSON. Its type is found if those of its arguments are known.
    fn call(&self, op: &str, args: Vec<u32>, attrs: &str) -> PyResult<u32> {
        self.cx.operators().get(op).map_err(|error| failure("ModelError", &error))?;
        let attrs = terms::attrs(&self.cx, attrs)?;
        let mut edit = self.lock();
        let args = all_known(&edit, &args)?;
        let call = edit.call_op(op, &args, attrs);
        self.typed(&mut edit, call)
    }

    /// A call of a function of the module, by its name.
    fn call_function(&self, name: &str, args: Vec<u32>) -> PyResult<u32> {
        let mut edit = self.lock();
        let args = all_known(&edit, &args)?;
        let callee = edit.global(name);
        Ok(edit.call(callee, &args, Attrs::NONE, None).0)
    }

    /// A constant of elements in row-major order.
    fn constant(&self, ty: &str, bytes: &[u8]) -> PyResult<u32> {
        let ty = parsed_type(&self.cx, ty)?;
        let terms = self.cx.terms();
        let size = terms.static_tensor(ty).and_then(|(dtype, shape)| {
            let count = shape
                .iter()
                .try_fold(1usize, |sum, &it| sum.checked_mul(usize::try_from(it).ok()?))?;
            data_type(dtype)?.bytes(count)
        });
        if size != Some(bytes.len()) {
            let why = format!("{} bytes are no {}", bytes.len(), terms.type_text(ty));
            return Err(PyValueError::new_err(why));
        }
        Ok(self.lock().constant(ty, bytes).0)
    }

    /// A tuple.
    fn make_tuple(&self, fields: Vec<u32>) -> PyResult<u32> {
        let mut edit = self.lock();
        let fields = all_known(&edit, &fields)?;
        let made = edit.tuple(&fields);
        self.typed(&mut edit, made)
    }

    /// A field of a tuple.
    fn item(&self, tuple: u32, index: u32) -> PyResult<u32> {
        let mut edit = self.lock();
        let tuple = known(&edit, tuple)?;
        let made = edit.tuple_get_item(tuple, index);
        self.typed(&mut edit, made)
    }

    /// A choice between two values.
    fn choice(&self, cond: u32, then: u32, otherwise: u32) -> PyResult<u32> {
        let mut edit = self.lock();
        let parts = all_known(&edit, &[cond, then, otherwise])?;
        let made = edit.if_else(parts[0], parts[1], parts[2]);
        self.typed(&mut edit, made)
    }

    /// What a node of constants is, by the reference evaluator: a constant, or a tuple of them.
    fn fold(&self, node: u32) -> PyResult<u32> {
        let mut edit = self.lock();
        let expr = known(&edit, node)?;
        let folded = fold(&mut edit, None, expr).map_err(|error| failure("ModelError", &error))?;
        Ok(folded.0)
    }

    /// What the variables of bindings stand for: variable and value, in the order of the values.
    fn bindings(&self) -> Vec<(u32, u32)> {
        let edit = self.lock();
        let body = edit.body();
        let lets = body.post_order().filter_map(|expr| match body.view(expr) {
            View::Let(bindings) => Some(bindings),
            _ => None,
        });
        let pairs = lets.flat_map(|it| it.bindings().map(|(var, value)| (var.0, value.0)));
        let mut pairs: Vec<(u32, u32)> = pairs.collect();
        pairs.sort_by_key(|&(_, value)| value);
        pairs
    }

    /// Makes every use of one node read another one.
    fn replace(&self, old: u32, new: u32) -> PyResult<()> {
        let mut edit = self.lock();
        let (old, new) = (known(&edit, old)?, known(&edit, new)?);
        edit.replace(old, new);
        Ok(())
    }

    /// Makes the function: parameters are variables with types.
    fn function(&self, params: Vec<u32>, result: u32, is_private: bool) -> PyResult<()> {
        let mut edit = self.lock();
        if !self.is_new {
            return Err(PyValueError::new_err("the function is there already"));
        }
        let (params, result) = (all_known(&edit, &params)?, known(&edit, result)?);
        let is_var = |param: &&Expr| edit.body().kind(**param) != Kind::VAR;
        if params.iter().find(is_var).is_some() {
            return Err(PyValueError::new_err("parameters are variables"));
        }
        // A function with bindings gets one for each call that stands in another when it is published.
        let body = match edit.body().kind(result) {
            Kind::VAR => result,
            _ => {
                let ty = edit.body().ty(result);
                let var = edit.var("result", ty);
                edit.let_blocks(&[(false, vec![(var, result)])], var)
            }
        };
        let root = edit.function(&params, body, None, Attrs::NONE);
        edit.set_root(root);
        if is_private {
            edit.make_private();
        }
        Ok(())
    }

    /// The function, with types; `module` has those that it calls. The edit stays as it is.
    fn finish(&self, module: &Module) -> PyResult<Function> {
        let module = &module.model.module;
        let made = self.lock().clone().finish();
        let made = made.map_err(|error| failure("ModelError", &error))?;
        let of_module = |name: Symbol| module.get(name).and_then(|function| signature(function));
        let typed = infer(&made, &of_module).map_err(|errors| {
            let text: Vec<String> = errors.iter().map(ToString::to_string).collect();
            failure("ModelError", &text.join("\n"))
        })?;
        Ok(Function { function: typed })
    }
}

impl Edit {
    /// An edit of a transaction that somebody lends.
    pub(crate) fn lent(cx: &Cx, transaction: Transaction) -> Edit {
        Edit { cx: cx.clone(), transaction: Mutex::new(transaction), is_new: false }
    }

    /// The transaction, for who lent it; whoever has kept the edit has no node of it any more.
    pub(crate) fn give_back(&self) -> Transaction {
        std::mem::replace(&mut *self.lock(), Transaction::new(self.cx.clone()))
    }

    fn lock(&self) -> MutexGuard<'_, Transaction> {
        self.transaction.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds the type of a node that was just made.
    fn typed(&self, edit: &mut Transaction, made: Expr) -> PyResult<u32> {
        let ty = infer_node(&self.cx, edit.body(), made);
        let ty = ty.map_err(|problem| failure("ModelError", &problem))?;
        if let Some(ty) = ty {
            edit.set_type(made, Some(ty));
        }
        Ok(made.0)
    }
}

fn known(edit: &Transaction, node: u32) -> PyResult<Expr> {
    match (node as usize) < edit.body().len() {
        true => Ok(Expr(node)),
        false => Err(PyIndexError::new_err(format!("there is no node {node}"))),
    }
}

fn all_known(edit: &Transaction, nodes: &[u32]) -> PyResult<Vec<Expr>> {
    nodes.iter().map(|&node| known(edit, node)).collect()
}

/// The type that a text says, in a context: that of a parameter.
pub(crate) fn parsed_type(cx: &Cx, text: &str) -> PyResult<Type> {
    let wrong = |why: &str| PyValueError::new_err(format!("`{text}` is no type: {why}"));
    if text.contains(['\n', ')', '{']) {
        return Err(wrong("it has other characters than a type"));
    }
    let source = Source::new("<type>", format!("fn @f(%x: {text}) {{\n  ret %x\n}}\n"));
    let module =
        parse_checked_module(cx, &source).map_err(|told| exception("ModelError", &told))?;
    let function = module.get_str("f").ok_or_else(|| wrong("it is empty"))?;
    let params = function.params();
    let ty = params.first().and_then(|&param| function.view().ty(param));
    let ty = ty.ok_or_else(|| wrong("it is empty"))?;
    match cx.terms().ty(ty) {
        TypeView::Unknown(_) => Err(wrong("it is not known")),
        _ => Ok(ty),
    }
}
