//! A transaction as a plugin holds it: what it refers to is looked at before it is believed.

use std::sync::Arc;

use tenon_plugin_api::abi::guard::guard;
use tenon_plugin_api::abi::read::raw_transaction;
use tenon_plugin_api::abi::records::RawBody;
use tenon_plugin_api::abi::tables::NONE;
use tenon_plugin_api::ir::{Build, Context, Expr, Kind, NodeSource, NodeSpec, Symbol, Type};
use tenon_plugin_api::pass::{Bindings, Effects, OpInfo};
use thiserror::Error;

use super::run::Call;
use crate::eval::fold;
use crate::infer::KnownCalls;
use crate::ir::{Constant, Cx, Function, Transaction};
use crate::services::{self, ServiceError};

/// Why an edit beyond the limit of a run is refused.
pub(crate) const REFUSAL: &str = "the host refuses further edits, to see what the pass does";

/// A transaction with the view of it that a plugin reads.
pub(super) struct Edit {
    pub(super) call: Arc<Call>,
    transaction: Transaction,
    view: RawBody,
    calls: KnownCalls,
    /// Nodes of the base.
    base_len: usize,
    /// What variables of the base stand for, and what its nodes read and write; found when a rule first asks.
    bindings: Option<(Bindings, Effects)>,
    /// The first thing that was refused: what was built without it is not what the pass meant.
    error: Option<String>,
}

impl Edit {
    pub(super) fn new(call: Arc<Call>, base: Option<&Arc<Function>>) -> Self {
        let transaction = match base {
            Some(base) => Transaction::edit(base),
            None => Transaction::new(call.run.cx.clone()),
        };
        let view = raw_transaction(&transaction.body());
        let base_len = transaction.body().len();
        let calls = KnownCalls::default();
        Self { call, transaction, view, calls, base_len, bindings: None, error: None }
    }

    /// The record that a plugin reads; it stays where it is.
    pub(super) fn view(&self) -> *const RawBody {
        &self.view
    }

    pub(super) fn push(&mut self, spec: NodeSpec, operands: &[Expr]) -> u32 {
        if !self.call.run.may_edit() {
            return self.refuse(REFUSAL.to_owned());
        }
        // A plugin that was built before sources were terms may leave anything there.
        let source = NodeSource(spec.span);
        let is_known = source.term().is_none_or(|term| self.has_term(term.0));
        let spec = NodeSpec { span: if is_known { spec.span } else { 0 }, ..spec };
        if let Err(error) = self.check_node(spec, operands) {
            return self.refuse(format!("a {} has {error}", spec.kind.name()));
        }
        let id = self.transaction.push(spec, operands);
        if spec.ty.is_none()
            && !spec.kind.is_stmt()
            && let Ok(Some(ty)) =
                guard(|| services::type_of(&self.transaction, id, &mut self.calls))
        {
            self.transaction.set_type(id, Some(ty));
        }
        self.renewed(id)
    }

    pub(super) fn constant(&mut self, ty: u32, bytes: &[u8]) -> u32 {
        if !services::fits(&self.transaction.cx(), Type(ty), bytes.len() as u64) {
            return self.refuse(format!("{} bytes do not fit the type of a constant", bytes.len()));
        }
        let id = self.transaction.constant(Type(ty), bytes);
        self.renewed(id)
    }

    pub(super) fn share_constant(&mut self, constant: Option<&Arc<Constant>>) -> u32 {
        let Some(constant) = constant else {
            return self.refuse("a constant that the function does not hold".to_owned());
        };
        let id = self.transaction.shared_constant(constant.clone());
        self.renewed(id)
    }

    pub(super) fn replace(&mut self, old: u32, new: u32) {
        match self.has_node(old) && self.has_node(new) {
            true => {
                if let Some((bindings, _)) = &mut self.bindings {
                    bindings.replaces(self.transaction.body().resolve(Expr(old)));
                }
                self.transaction.replace(Expr(old), Expr(new));
            }
            false => drop(self.refuse(format!("node {old} or {new} is not in this body"))),
        }
        self.renew();
    }

    pub(super) fn set_root(&mut self, root: u32) {
        match self.has_node(root) {
            true => self.transaction.set_root(Expr(root)),
            false => drop(self.refuse(format!("the root {root} is not in this body"))),
        }
        self.renew();
    }

    pub(super) fn set_type(&mut self, node: u32, ty: u32) {
        match self.has_node(node) && self.has_term(ty) {
            true => self.transaction.set_type(Expr(node), (ty != 0).then_some(Type(ty))),
            false => drop(self.refuse(format!("node {node} or type {ty} is not there"))),
        }
        self.renew();
    }

    pub(super) fn evaluate(&mut self, node: u32) -> u32 {
        let evaluated = match self.has_node(node) {
            true => guard(|| {
                fold(&mut self.transaction, self.call.run.module(), Expr(node))
                    .map_err(ServiceError::from)
            }),
            false => Ok(Err(ServiceError::Refused(format!("node {node} is not in this body")))),
        };
        match evaluated {
            Ok(Ok(expr)) => self.renewed(expr),
            // That something cannot be evaluated leaves the transaction as it is.
            Ok(Err(error)) => self.unanswered(&error.to_string()),
            Err(panic) => self.unanswered(&panic),
        }
    }

    /// What a node stands for.
    pub(super) fn definition(&mut self, node: u32) -> u32 {
        if !self.has_node(node) {
            return NONE;
        }
        self.find_bindings();
        let body = self.transaction.body();
        let found = self.bindings.as_mut().map(|(it, _)| it.definition(body, Expr(node)));
        found.map_or(node, |found| found.0)
    }

    /// Whether a node reads memory and is nested.
    pub(super) fn is_nested_read(&mut self, node: u32) -> bool {
        self.find_bindings();
        let ask = |(bindings, effects): &(Bindings, Effects)| {
            bindings.is_nested_read(effects, Expr(node))
        };
        self.bindings.as_ref().is_some_and(ask)
    }

    /// The operands of a node; none of one that is not there.
    pub(super) fn operands(&self, node: u32) -> Vec<u32> {
        match self.has_node(node) {
            true => self.transaction.body().operands(Expr(node)).iter().map(|it| it.0).collect(),
            false => Vec::new(),
        }
    }

    /// Gives the transaction away, until `work` gives it back.
    pub(super) fn lend<R>(&mut self, work: impl FnOnce(Transaction) -> (Transaction, R)) -> R {
        let stand_in = Transaction::new(self.call.run.cx.clone());
        let lent = std::mem::replace(&mut self.transaction, stand_in);
        let (transaction, answer) = work(lent);
        self.transaction = transaction;
        self.renew();
        answer
    }

    fn find_bindings(&mut self) {
        if self.bindings.is_some() {
            return;
        }
        let (cx, body) = (&self.call.run.cx, self.transaction.body());
        let info = |op: Symbol| OpInfo::from_code(services::op_info(cx, cx.terms().str(op)));
        let effects = Effects::scan(body, self.base_len, info, |_| false);
        self.bindings = Some((Bindings::of(body, self.base_len, &effects), effects));
    }

    fn unanswered(&mut self, error: &str) -> u32 {
        self.call.set_error(error);
        self.renew();
        NONE
    }

    pub(super) fn finish(self) -> Result<Arc<Function>, ServiceError> {
        match self.error {
            Some(error) => Err(ServiceError::Refused(error)),
            None => services::finish(self.transaction),
        }
    }

    /// Publishes it as a tensor program that is private to its module.
    pub(super) fn into_program(mut self, root: u32) -> Result<Arc<Function>, ServiceError> {
        self.set_root(root);
        self.transaction.make_private();
        self.finish()
    }

    /// What a node refers to is there.
    fn check_node(&self, spec: NodeSpec, operands: &[Expr]) -> Result<(), NotThere> {
        let missing = |what, number| Err(NotThere { what, number });
        if let Some(operand) = operands.iter().find(|operand| !self.has_node(operand.0)) {
            return missing("operand", operand.0);
        }
        let ty = spec.ty.map_or(0, |ty| ty.0);
        let (is_data_term, is_aux_term) = payload_terms(spec.kind);
        let terms = [
            ("type", ty, true),
            ("attributes", spec.attrs.0, true),
            ("payload", spec.data, is_data_term),
            ("second payload", spec.aux, is_aux_term),
        ];
        for (what, number, is_term) in terms {
            if is_term && !self.has_term(number) {
                return missing(what, number);
            }
        }
        let is_constant = spec.kind == Kind::CONSTANT;
        if is_constant && spec.data as usize >= self.transaction.constants().len() {
            return missing("constant", spec.data);
        }
        Ok(())
    }

    fn has_node(&self, node: u32) -> bool {
        node < self.view.node_count
    }

    fn has_term(&self, term: u32) -> bool {
        has_term(&self.call.run.cx, term)
    }

    fn refuse(&mut self, error: String) -> u32 {
        self.call.set_error(&error);
        self.error.get_or_insert(error);
        NONE
    }

    fn renewed(&mut self, expr: Expr) -> u32 {
        self.renew();
        expr.0
    }

    fn renew(&mut self) {
        self.view = raw_transaction(&self.transaction.body());
    }
}

/// A number of a node that leads nowhere.
#[derive(Debug, Error)]
#[error("the {what} {number}, which is not there")]
struct NotThere {
    what: &'static str,
    number: u32,
}

/// Whether a context has a term of this number.
pub(super) fn has_term(cx: &Cx, term: u32) -> bool {
    term < cx.term_count()
}

/// Whether the payload, and the second payload, of a kind are numbers of terms.
fn payload_terms(kind: Kind) -> (bool, bool) {
    match kind {
        Kind::BUFFER | Kind::BLOCK => (true, true),
        Kind::FOR => (false, true),
        Kind::VAR
        | Kind::GLOBAL
        | Kind::OP
        | Kind::EXTERN
        | Kind::LET
        | Kind::FUNCTION
        | Kind::SHAPE
        | Kind::PRIM
        | Kind::INT
        | Kind::FLOAT
        | Kind::INTRINSIC => (true, false),
        _ => (false, false),
    }
}
