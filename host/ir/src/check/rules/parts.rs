//! Every node has the operands and the payload that its kind demands, of the kinds that may stand there.
//!
//! A node of a kind that this build does not know may stand anywhere but where something is bound.

use std::sync::Arc;

use crate::check::{Report, Rule, Subject};
use crate::{BodyView, Expr, Function, Kind, Term, TermKind, View};

pub(super) const RULE: Rule = Rule {
    name: "parts",
    demands: "every node has the operands and the payload of its kind",
    since: None,
    until: None,
    check: |subject: &Subject<'_>, report: &mut Report| check(subject.function, report),
};

pub(in crate::check) fn check(function: &Arc<Function>, report: &mut Report) {
    let body = function.view();
    for expr in body.post_order() {
        let kind = body.kind(expr);
        if kind == Kind::CONSTANT && body.raw_node(expr).data as usize >= function.constants().len()
        {
            report.at(expr, || "a constant that the function does not hold".to_owned());
            continue;
        }
        if !has_payload(body, expr) {
            report.at(expr, || {
                format!("a {} without the operands or payload of its kind", kind.name())
            });
            continue;
        }
        let operands = body.operands(expr);
        let count = operands.len();
        for (position, operand) in operands.iter().enumerate() {
            let place = Place::of(body, expr, kind, count, position);
            let found = body.kind(operand);
            let is_unknown = || !Kind::ALL.contains(&found) && !place.binds();
            if !place.accepts(found) && !is_unknown() {
                report.at(expr, || {
                    let (kind, found, wanted) = (kind.name(), found.name(), place.text());
                    format!(
                        "operand {position} of a {kind} is a {found}, but {wanted} belongs there"
                    )
                });
            }
        }
    }
}

fn has_payload(body: BodyView<'_>, expr: Expr) -> bool {
    let node = body.raw_node(expr);
    let payload = || body.terms().kind(Term(node.data));
    match body.view(expr) {
        View::Unknown { kind, .. } => !Kind::ALL.contains(&kind),
        View::Let(view) => view.blocks().iter().map(|block| block.len).sum::<usize>() == view.len(),
        View::Int(_) => payload() == TermKind::INT,
        View::Float(_) => payload() == TermKind::FLOAT,
        View::Var { .. }
        | View::Buffer { .. }
        | View::Global { .. }
        | View::Op { .. }
        | View::Extern { .. }
        | View::Intrinsic { .. } => payload() == TermKind::STR,
        View::Shape { .. } => payload() == TermKind::SHAPE,
        View::Prim { .. } => matches!(payload().0, 1 | 16..=22),
        View::Region { ranges, .. } => ranges.len().is_multiple_of(2),
        _ => true,
    }
}

/// Whether a call is of a function outside of the module.
fn is_external(body: BodyView<'_>, call: Expr) -> bool {
    body.operands(call).get(0).is_some_and(|callee| body.kind(callee) == Kind::EXTERN)
}

/// What may stand at a place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A value of a graph function.
    Value,
    /// A value, or bindings with a result.
    Body,
    Variable,
    Buffer,
    Param,
    Statement,
    Scalar,
    /// What a statement evaluates: a scalar, or a call of code that is not ours.
    Evaluated,
    /// What such a call hands over: a value, a buffer or a scalar.
    Argument,
    Region,
}

impl Place {
    /// The place of operand `position` of `count` of a node.
    fn of(body: BodyView<'_>, expr: Expr, kind: Kind, count: usize, position: usize) -> Self {
        match kind {
            Kind::LET if position + 1 < count && position.is_multiple_of(2) => Place::Variable,
            Kind::FUNCTION if position + 1 < count => Place::Variable,
            Kind::FUNCTION => Place::Body,
            Kind::IF if position > 0 => Place::Body,
            Kind::PRIM_FUNC if position + 1 < count => Place::Param,
            Kind::PRIM_FUNC | Kind::SEQ => Place::Statement,
            Kind::FOR => match position {
                0 => Place::Variable,
                3 => Place::Statement,
                _ => Place::Scalar,
            },
            Kind::BLOCK => match body.view(expr) {
                View::Block(block) => {
                    let iters = block.iters.len();
                    let regions = block.reads.len() + block.writes.len();
                    match position {
                        _ if position < iters && position.is_multiple_of(2) => Place::Variable,
                        _ if position < block.head_len() => Place::Scalar,
                        _ if position < block.head_len() + regions => Place::Region,
                        _ => Place::Statement,
                    }
                }
                _ => Place::Statement,
            },
            Kind::REGION | Kind::STORE | Kind::LOAD if position == 0 => Place::Buffer,
            Kind::ALLOC => Place::Buffer,
            Kind::LET_STMT if position == 0 => Place::Variable,
            Kind::IF_STMT if position > 0 => Place::Statement,
            Kind::REGION
            | Kind::STORE
            | Kind::LOAD
            | Kind::LET_STMT
            | Kind::IF_STMT
            | Kind::BINARY
            | Kind::SELECT
            | Kind::CAST
            | Kind::INTRINSIC
            | Kind::RAMP
            | Kind::BROADCAST => Place::Scalar,
            Kind::EVALUATE => Place::Evaluated,
            Kind::CALL if position > 0 && is_external(body, expr) => Place::Argument,
            _ => Place::Value,
        }
    }

    fn binds(self) -> bool {
        matches!(self, Place::Variable | Place::Buffer | Place::Param)
    }

    fn accepts(self, kind: Kind) -> bool {
        let is_value = matches!(
            kind,
            Kind::CONSTANT
                | Kind::VAR
                | Kind::GLOBAL
                | Kind::OP
                | Kind::EXTERN
                | Kind::TUPLE
                | Kind::TUPLE_GET_ITEM
                | Kind::CALL
                | Kind::IF
                | Kind::FUNCTION
                | Kind::SHAPE
                | Kind::PRIM
        );
        let is_scalar = matches!(
            kind,
            Kind::VAR
                | Kind::PRIM
                | Kind::LOAD
                | Kind::INT
                | Kind::FLOAT
                | Kind::BINARY
                | Kind::SELECT
                | Kind::CAST
                | Kind::INTRINSIC
                | Kind::RAMP
                | Kind::BROADCAST
        );
        match self {
            Place::Value => is_value,
            Place::Body => is_value || kind == Kind::LET,
            Place::Variable => kind == Kind::VAR,
            Place::Buffer => kind == Kind::BUFFER,
            Place::Param => matches!(kind, Kind::VAR | Kind::BUFFER),
            Place::Statement => kind.is_stmt(),
            Place::Scalar => is_scalar,
            Place::Evaluated => is_scalar || kind == Kind::CALL,
            Place::Argument => is_value || is_scalar || kind == Kind::BUFFER,
            Place::Region => kind == Kind::REGION,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Place::Value => "a value",
            Place::Body => "a value or bindings",
            Place::Variable => "a variable",
            Place::Buffer => "a buffer",
            Place::Param => "a buffer or a variable",
            Place::Statement => "a statement",
            Place::Scalar => "a scalar",
            Place::Evaluated => "a scalar or a call",
            Place::Argument => "a value, a buffer or a scalar",
            Place::Region => "a region",
        }
    }
}
