//! The facet `gradient`: what a call contributes to the adjoints of its arguments.
//!
//! The adjoint of a value is the derivative of the loss by it. A rule is given those of what a call results in, and answers
//! what follows for each argument; `x` is an argument, `y` the result, `g` the adjoint of the result:
//!
//! ```ignore
//! /// `g y`.
//! #[rule(gradient)]
//! fn gradient(_: &Exp, at: &mut Adjoint<'_>) -> Grads {
//!     Grads::of([at.mul(at.grad(), at.value())])
//! }
//! ```
//!
//! The nodes of a question are the call, what holds its result, and the adjoint of each tensor of the result, [`Reply::NONE`]
//! for one that nothing reads. Those of an answer are one for each argument, [`Reply::NONE`] for zero, a tuple for an
//! argument that is one.

mod adjoint;

pub use adjoint::Adjoint;

use crate::ir::{Build, Dim, Expr, Symbol, Term, Terms, Type, TypeView, View};
use crate::pass::{PassError, Result, Rewriter};

use super::{Facet, Question, Reply, Rules};

/// `gradient`: what a call contributes to the adjoints of its arguments.
pub struct Gradient;

/// What a call contributes to the adjoint of one argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grad {
    /// Nothing.
    Zero,
    /// This, a tensor of the type of the argument.
    Of(Expr),
    /// To each field of an argument that is a tuple.
    Fields(Vec<Expr>),
}

/// What a call contributes to each of its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grads(Vec<Grad>);

impl Grads {
    /// A contribution to each argument.
    pub fn of<const N: usize>(grads: [Expr; N]) -> Self {
        Self(grads.map(Grad::Of).into())
    }
}

impl From<Vec<Grad>> for Grads {
    fn from(grads: Vec<Grad>) -> Self {
        Self(grads)
    }
}

impl<const N: usize> From<[Grad; N]> for Grads {
    fn from(grads: [Grad; N]) -> Self {
        Self(grads.into())
    }
}

impl Facet for Gradient {
    const NAME: &'static str = "gradient";
    type Ask<'a> = Adjoint<'a>;
    type Answer = Grads;

    fn ask(question: Question<'_>) -> Result<Adjoint<'_>> {
        let nodes = question.nodes();
        let site = question.site()?;
        let count = site.body().len();
        let &[_, value, ref grads @ ..] = nodes else {
            return Err(PassError::new("the question does not say what holds the result"));
        };
        let grads: Vec<Option<Expr>> =
            grads.iter().map(|&grad| (grad != Reply::NONE).then_some(grad)).collect();
        if [value].iter().chain(grads.iter().flatten()).any(|node| node.index() >= count) {
            return Err(PassError::new("the question names nodes that there are not"));
        }
        match grads.iter().flatten().next() {
            Some(_) => Ok(Adjoint::new(site, value, grads)),
            None => Err(PassError::new("the question names no adjoint of the result")),
        }
    }

    fn reply(at: &mut Adjoint<'_>, Grads(grads): Grads) -> Result<Reply> {
        let args = at.call.args.len();
        if grads.len() != args {
            let given = grads.len();
            return Err(PassError::new(format!(
                "its rule answers for {given} arguments, and it has {args}"
            )));
        }
        let node = |grad| match grad {
            Grad::Zero => Reply::NONE,
            Grad::Of(grad) => grad,
            Grad::Fields(grads) => at.tuple(&grads),
        };
        Ok(Reply { nodes: grads.into_iter().map(node).collect(), data: Term::default() })
    }
}

impl Rules<Gradient> {
    /// What `call`, a call of operator `op`, contributes to each of its arguments; `None` when no rule answers. `value` is what
    /// holds its result, `grads` are the adjoints of the tensors of the result, of which one at least is known.
    ///
    /// # Errors
    /// When a rule says why there is no gradient, or the rules of this operator cannot be used.
    pub fn gradients(
        &mut self,
        rw: &mut Rewriter,
        op: Symbol,
        call: Expr,
        value: Expr,
        grads: &[Option<Expr>],
    ) -> Result<Option<Vec<Grad>>> {
        let grads = grads.iter().map(|grad| grad.unwrap_or(Reply::NONE));
        let nodes: Vec<Expr> = [call, value].into_iter().chain(grads).collect();
        let Some(reply) = self.ask(rw, op, &nodes, Term::default())? else { return Ok(None) };
        let args = rw.body().operands(call).len() - 1;
        let count = rw.body().len();
        let is_node = |node: &Expr| *node == Reply::NONE || node.index() < count;
        if reply.nodes.len() != args || !reply.nodes.iter().all(is_node) {
            let text = format!("its rule answers {:?} for {args} arguments", reply.nodes);
            return Err(PassError::new(text));
        }
        let body = rw.body();
        let args = body.operands(call).skip(1).iter();
        for (index, (arg, &grad)) in args.zip(&reply.nodes).enumerate() {
            let of_grad = if grad == Reply::NONE { None } else { body.ty(grad) };
            if let (Some(of_arg), Some(of_grad)) = (body.ty(arg), of_grad)
                && !may_be_one(body.terms(), of_arg, of_grad)
            {
                let [of_arg, of_grad] = [of_arg, of_grad].map(|ty| body.terms().type_text(ty));
                return Err(PassError::new(format!(
                    "its rule answers a {of_grad} for argument {index}, which is a {of_arg}"
                )));
            }
        }
        Ok(Some(reply.nodes.into_iter().map(|node| grad_of(rw, node)).collect()))
    }
}

/// Whether a value may have both types: what neither says need not differ.
fn may_be_one(terms: Terms<'_>, a: Type, b: Type) -> bool {
    let mut open = vec![(a, b)];
    while let Some((a, b)) = open.pop() {
        let fits = match (terms.ty(a), terms.ty(b)) {
            _ if a == b => true,
            (TypeView::Tuple(a), TypeView::Tuple(b)) if a.len() == b.len() => {
                open.extend(a.iter().copied().zip(b.iter().copied()));
                true
            }
            (TypeView::Tensor { dtype, dims }, TypeView::Tensor { dtype: other, dims: others }) => {
                let differs =
                    |(&a, &b): (&Dim, &Dim)| match (terms.dim_value(a), terms.dim_value(b)) {
                        (Some(a), Some(b)) => a != b,
                        _ => false,
                    };
                let dims = dims.zip(others);
                dtype == other
                    && dims.is_none_or(|(a, b)| a.len() == b.len() && !a.iter().zip(b).any(differs))
            }
            _ => false,
        };
        if !fits {
            return false;
        }
    }
    true
}

/// What a node of an answer says.
fn grad_of(rw: &mut Rewriter, node: Expr) -> Grad {
    if node == Reply::NONE {
        return Grad::Zero;
    }
    if let View::Tuple(fields) = rw.body().view(node) {
        return Grad::Fields(fields.to_vec());
    }
    let ty = rw.body().ty(node).map(|ty| rw.body().terms().ty(ty));
    let Some(TypeView::Tuple(fields)) = ty else { return Grad::Of(node) };
    let fields = 0..fields.len() as u32;
    Grad::Fields(fields.map(|index| rw.tuple_get_item(node, index)).collect())
}
