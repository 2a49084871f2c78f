//! What a function says that its code is for is known: its attribute `target`, as `--target` takes it.

use tenon_plugin_api::program::TARGET;

use crate::TermView;
use crate::check::{Report, Rule, Subject};

pub(super) const RULE: Rule = Rule {
    name: "targets",
    demands: "the target that a function names is known",
    since: None,
    until: None,
    check,
};

fn check(subject: &Subject<'_>, report: &mut Report) {
    let body = subject.body;
    let named = body.terms().attrs(body.attrs(body.root())).get(TARGET);
    let problem = match named {
        None => return,
        Some(TermView::Str(text)) => subject.module.cx().operators().target_problem(text),
        Some(_) => Some("its attribute `target` is no text".to_owned()),
    };
    if let Some(problem) = problem {
        report.at(body.root(), || problem);
    }
}
