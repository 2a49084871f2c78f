//! The call that a rule is asked about.

use std::marker::PhantomData;

use crate::abi::host::{Host, TransactionHandle};
use crate::ir::{Attrs, AttrsView, BodyView, Build, Expr, NodeSpec, Terms, Type, View};
use crate::op::{OpAttrs, OpError, Schema};
use crate::pass::{Call, Calls, PassError, Result};

/// A call in the function that it stands in. What a rule builds is added to that function; it replaces nothing itself.
pub struct Site<'a> {
    /// The call. Its arguments follow the replacements made so far.
    pub call: Call,
    transaction: TransactionHandle,
    /// The transaction is somebody else's, and lent for the time of the question.
    lent: PhantomData<&'a mut ()>,
}

impl<'a> Site<'a> {
    pub(super) fn new(
        transaction: TransactionHandle,
        expr: Expr,
        lent: PhantomData<&'a mut ()>,
    ) -> Result<Self> {
        let body = transaction.body();
        if expr.index() >= body.len() {
            return Err(PassError::new(format!("there is no node {}", expr.0)));
        }
        let View::Call { args, attrs, .. } = body.view(expr) else {
            return Err(PassError::new(format!("node {} is no call", expr.0)));
        };
        let call = Call { expr, args: args.to_vec(), attrs, ty: body.ty(expr) };
        Ok(Self { call, transaction, lent })
    }

    /// Argument `index`.
    ///
    /// # Panics
    /// When there is no such argument; the operator's schema says how many there are.
    pub fn arg(&self, index: usize) -> Expr {
        self.call.args[index]
    }

    /// The arguments, when there are `N`.
    pub fn args<const N: usize>(&self) -> Option<[Expr; N]> {
        <[Expr; N]>::try_from(self.call.args.as_slice()).ok()
    }

    /// The expression, if it has the type of the call: it can then take its place.
    pub fn same_type(&self, expr: Expr) -> Option<Expr> {
        (self.transaction.body().ty(expr) == self.call.ty).then_some(expr)
    }

    /// The operator of another call with its attributes, the defaults of those that are not given filled in.
    pub fn op_of_call<T: Schema>(&self, call: &Call) -> Option<T> {
        read::<T>(call.attrs, self.transaction.body().terms()).ok()
    }

    /// The attributes as they are given.
    pub fn attrs(&self) -> AttrsView<'_> {
        self.transaction.body().terms().attrs(self.call.attrs)
    }

    /// The type of the call.
    pub fn ty(&self) -> Option<Type> {
        self.call.ty
    }
}

/// A question about a call of an operator.
pub trait AboutCall {
    /// The call's attributes, and the terms that they refer to.
    fn attrs_of_call(&self) -> (Attrs, Terms<'_>);
}

impl AboutCall for Site<'_> {
    fn attrs_of_call(&self) -> (Attrs, Terms<'_>) {
        (self.call.attrs, self.transaction.body().terms())
    }
}

/// The operator of a call with its attributes, the defaults of those that are not given filled in.
pub fn op_of<T: Schema>(ask: &impl AboutCall) -> Result<T> {
    let (attrs, terms) = ask.attrs_of_call();
    Ok(read::<T>(attrs, terms)?)
}

fn read<T: Schema>(attrs: Attrs, terms: Terms<'_>) -> std::result::Result<T, OpError> {
    let schema = const { &T::SCHEMA };
    T::from_attrs(OpAttrs::new(schema, terms.attrs(attrs), terms)?)
}

impl Build for Site<'_> {
    type Cx = Host;

    fn cx(&self) -> Host {
        self.transaction.host().clone()
    }

    fn with_cx<R>(&self, work: impl FnOnce(&Host) -> R) -> R {
        work(self.transaction.host())
    }

    fn body(&self) -> BodyView<'_> {
        self.transaction.body()
    }

    fn push(&mut self, spec: NodeSpec, operands: &[Expr]) -> Expr {
        self.transaction.push(spec, operands)
    }

    fn constant(&mut self, ty: Type, bytes: &[u8]) -> Expr {
        match self.transaction.constant(ty.0, bytes) {
            Some(constant) => constant,
            None => panic!("{} bytes do not fit the type of this constant", bytes.len()),
        }
    }
}

impl Calls for Site<'_> {
    fn definition(&mut self, expr: Expr) -> Expr {
        self.transaction.definition(expr)
    }

    fn is_nested_read(&mut self, expr: Expr) -> bool {
        self.transaction.is_nested_read(expr)
    }
}
