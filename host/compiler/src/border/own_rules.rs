//! What rules of a program's own do with the transaction that they are asked in.

use std::collections::VecDeque;

use tenon_plugin_api::abi::tables::NONE;
use tenon_plugin_api::ir::{Build, Expr};
use tenon_plugin_api::op::OpError;

use super::edit::Edit;
use super::rules::Site;
use super::tables::edit_of;
use crate::ir::{Function, RuleQuestion, Transaction};

/// Variables whose values are told at most: enough for any rule, and the same for a function of any size.
const TOLD: usize = 64;

/// Lends the transaction of a question to `work`, which gives it back with its answer. It is told what the variables stand for that
/// the call is made of, and those that these are made of, as far as they are near: pairs of variables and values.
///
/// # Errors
/// When the question stands in no transaction.
pub fn lend_transaction<R>(
    question: &RuleQuestion<'_>,
    work: impl FnOnce(Transaction, Vec<(u32, u32)>) -> (Transaction, R),
) -> Result<R, OpError> {
    let edit = edit_at(question)?;
    let told = definitions(edit, question.nodes);
    Ok(edit.lend(|transaction| work(transaction, told)))
}

/// Copies a tensor program into the transaction of a question. Gives its root, which is what `compute` answers.
///
/// # Errors
/// When the question stands in no transaction.
pub fn add_program(question: &RuleQuestion<'_>, program: &Function) -> Result<u32, OpError> {
    let edit = edit_at(question)?;
    Ok(edit.lend(|mut transaction| {
        let body = program.view();
        let mut made: Vec<Expr> = Vec::with_capacity(body.len());
        for expr in body.post_order() {
            let operands: Vec<Expr> =
                body.operands(expr).iter().map(|operand| made[operand.index()]).collect();
            made.push(transaction.copy_node(body, expr, &operands));
        }
        let root = made[body.root().index()];
        (transaction, root.0)
    }))
}

fn edit_at<'a>(question: &RuleQuestion<'a>) -> Result<&'a mut Edit, OpError> {
    let site = question.site.downcast_ref::<Site>();
    // SAFETY: whoever asks lends its transaction, which nobody else uses until the rule has answered.
    let edit = site.and_then(|site| unsafe { edit_of(site.transaction()) });
    edit.ok_or_else(|| OpError::Broken("it is asked about no transaction".to_owned()))
}

/// What is near stands first.
fn definitions(edit: &mut Edit, nodes: &[u32]) -> Vec<(u32, u32)> {
    let mut told: Vec<(u32, u32)> = Vec::new();
    let mut open: VecDeque<u32> = nodes.iter().copied().collect();
    while let Some(node) = open.pop_front() {
        for operand in edit.operands(node) {
            let value = edit.definition(operand);
            let is_known =
                value == operand || value == NONE || told.iter().any(|it| it.0 == operand);
            if is_known || told.len() == TOLD {
                continue;
            }
            told.push((operand, value));
            open.push_back(value);
        }
    }
    told
}
