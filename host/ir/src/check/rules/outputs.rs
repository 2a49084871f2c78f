//! A tensor program writes to its outputs and to buffers of its own.

use crate::check::{Report, Rule, Subject};
use crate::{Kind, View};

pub(super) const RULE: Rule = Rule {
    name: "outputs",
    demands: "a tensor program writes to its outputs and to buffers of its own",
    since: None,
    until: None,
    check,
};

fn check(subject: &Subject<'_>, report: &mut Report) {
    let body = subject.body;
    let View::PrimFunc { params, outputs, .. } = body.view(body.root()) else { return };
    let mut is_input = vec![false; body.len()];
    for param in params.take(params.len() - outputs).iter() {
        is_input[param.index()] = true;
    }
    for expr in subject.of_kind(Kind::STORE) {
        if let View::Store { buffer, .. } = body.view(expr)
            && is_input[buffer.index()]
        {
            report
                .at(expr, || format!("{} is written, but it is an input", subject.name_of(buffer)));
        }
    }
}
