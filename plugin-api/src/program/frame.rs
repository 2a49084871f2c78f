//! The frame of a program: its buffers, and the call that it computes.

use std::cell::RefCell;

use crate::abi::host::{Host, TransactionHandle};
use crate::ir::{
    AttrValue, Attrs, AttrsView, Build, BuildPrim, Context, Expr, Term, TermView, Terms, Type,
};
use crate::op::OpPattern;
use crate::pass::{PassError, Result};

use super::{Buffer, Writer};

/// Attribute of a tensor program: how it may be fused, an [`OpPattern`] as its number.
pub const OP_PATTERN: &str = "op_pattern";
/// Attribute of a tensor program: the operator it computes.
pub const OP_NAME: &str = "op_name";
/// Attribute of a function or a tensor program: what its code is for, as `--target` takes it. Without it that is what the module is
/// compiled for.
pub const TARGET: &str = "target";

/// A tensor program that is being written, and the call of an operator that it computes.
///
/// Its buffers are the tensors among the arguments, with tuples flattened, and then those of the result. A dimension that is
/// neither an integer nor a symbol has a symbol of its own in the program.
pub struct Program {
    pub(super) writer: RefCell<Writer>,
    pub(super) op: &'static str,
    asked: Asked,
    inputs: Vec<Expr>,
    pub(super) outputs: Vec<Expr>,
    pattern: OpPattern,
    /// The buffers of its own.
    pub(super) made: RefCell<Vec<Expr>>,
    /// What it does, in order.
    pub(super) stmts: RefCell<Vec<Expr>>,
}

/// What a question says besides the nodes.
struct Asked {
    host: Host,
    attrs: Attrs,
    args: Vec<Type>,
    out: Type,
    target: Attrs,
}

impl Program {
    /// The program that a question asks for, its buffers made.
    pub(crate) fn new(
        transaction: TransactionHandle,
        op: &'static str,
        data: Term,
    ) -> Result<Self> {
        let host = transaction.host().clone();
        let terms = host.terms();
        let wrong = || PassError::new("a question of `compute` is not whole");
        let &[attrs, args, out, target, inputs, outputs, pattern] = terms.children(data) else {
            return Err(wrong());
        };
        let TermView::Int(pattern) = terms.view(pattern) else { return Err(wrong()) };
        let types = |list: Term| terms.children(list).iter().map(|ty| Type(ty.0)).collect();
        let (args, inputs, outputs): (Vec<Type>, Vec<Type>, Vec<Type>) =
            (types(args), types(inputs), types(outputs));
        let mut writer = Writer(transaction);
        let name = |at: usize| match outputs.len() {
            1 => "out".to_owned(),
            _ => format!("out{at}"),
        };
        let names = (0..inputs.len()).map(input_name).chain((0..outputs.len()).map(name));
        let types = inputs.iter().chain(&outputs);
        let mut buffers: Vec<Expr> =
            names.zip(types).map(|(name, &ty)| writer.buffer(&name, ty, "")).collect();
        let outputs = buffers.split_off(inputs.len());
        let (attrs, out, target) = (Attrs(attrs.0), Type(out.0), Attrs(target.0));
        Ok(Self {
            writer: RefCell::new(writer),
            op,
            asked: Asked { host, attrs, args, out, target },
            inputs: buffers,
            outputs,
            pattern: OpPattern::from_code(pattern),
            made: RefCell::default(),
            stmts: RefCell::default(),
        })
    }

    /// A program that computes no call, and has no buffers yet.
    pub(crate) fn without_call(transaction: TransactionHandle, name: &'static str) -> Self {
        let host = transaction.host().clone();
        let none = Type(0);
        Self {
            writer: RefCell::new(Writer(transaction)),
            op: name,
            asked: Asked {
                host,
                attrs: Attrs::NONE,
                args: Vec::new(),
                out: none,
                target: Attrs::NONE,
            },
            inputs: Vec::new(),
            outputs: Vec::new(),
            pattern: OpPattern::Opaque,
            made: RefCell::default(),
            stmts: RefCell::default(),
        }
    }

    /// The operator that is called.
    pub fn op(&self) -> &'static str {
        self.op
    }

    /// The types of the arguments as they stand in the call; shapes and numbers among them have no buffer.
    pub fn args(&self) -> &[Type] {
        &self.asked.args
    }

    /// The type of the result.
    pub fn out(&self) -> Type {
        self.asked.out
    }

    /// The attributes of the call as they are given. They say, as [`op_of`](crate::rule::op_of) does, what is left out by default.
    pub fn attrs(&self) -> Attrs {
        self.asked.attrs
    }

    /// The context of the terms.
    pub fn cx(&self) -> Host {
        self.asked.host.clone()
    }

    /// What the program is for. A program is the same for every target; a rule for one target alone declines others.
    pub fn target(&self) -> AttrsView<'_> {
        self.terms().attrs(self.asked.target)
    }

    /// The terms that types and attributes refer to.
    pub fn terms(&self) -> Terms<'_> {
        self.asked.host.terms()
    }

    /// Tensor `index` of the arguments, tuples flattened.
    ///
    /// # Panics
    /// When there are fewer.
    pub fn input(&self, index: usize) -> Buffer<'_> {
        self.buffer_of(self.inputs[index])
    }

    /// The tensors of the arguments, tuples flattened.
    pub fn inputs(&self) -> Vec<Buffer<'_>> {
        self.inputs.iter().map(|&expr| self.buffer_of(expr)).collect()
    }

    /// Tensor `index` of the result, tuples flattened.
    ///
    /// # Panics
    /// When there are fewer.
    pub fn output(&self, index: usize) -> Buffer<'_> {
        self.buffer_of(self.outputs[index])
    }

    /// The tensors of the result, tuples flattened.
    pub fn outputs(&self) -> Vec<Buffer<'_>> {
        self.outputs.iter().map(|&expr| self.buffer_of(expr)).collect()
    }

    /// Says how the program may be fused, where that is not as the operator says.
    pub fn set_pattern(&mut self, pattern: OpPattern) {
        self.pattern = pattern;
    }

    fn buffer_of(&self, expr: Expr) -> Buffer<'_> {
        let writer = self.writer.borrow();
        let body = writer.body();
        let tensor = body.ty(expr).and_then(|ty| body.terms().tensor(ty));
        let (dtype, dims) = tensor.expect("the host asks for buffers of tensors of known rank");
        Buffer { program: self, expr, dtype, shape: dims.to_vec(), empty: None }
    }

    /// The root of what was written.
    pub(crate) fn root(&self) -> Expr {
        let mut writer = self.writer.borrow_mut();
        let mut stmts: Vec<Expr> =
            self.made.borrow().iter().map(|&buffer| writer.alloc(buffer)).collect();
        stmts.extend(self.stmts.borrow().iter());
        let body = writer.seq(&stmts);
        let attrs = writer.with_cx(|cx| {
            cx.attrs(&[
                (OP_PATTERN, AttrValue::Int(self.pattern as i64)),
                (OP_NAME, AttrValue::Str(self.op.into())),
            ])
        });
        let params: Vec<Expr> = self.inputs.iter().chain(&self.outputs).copied().collect();
        writer.prim_func(&params, self.outputs.len() as u32, body, attrs)
    }
}

/// `a`, `b`, … for the first inputs, then `in4`, `in5`, ….
fn input_name(index: usize) -> String {
    match ["a", "b", "c", "d"].get(index) {
        Some(name) => (*name).to_owned(),
        None => format!("in{index}"),
    }
}
