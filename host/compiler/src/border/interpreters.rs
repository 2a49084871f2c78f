//! Interpreters of plugins that are texts, by the rules of the facet `interpreter`.

use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tenon_plugin_api::ir::{Context, TermView};
use tenon_plugin_api::rule::{Facet, Interpreters};

use super::rules::{Site, first_answer};
use super::run::{Call, Run};
use crate::ir::{Attrs, Cx, RuleQuestion};
use crate::services::ServiceError;

/// The command that runs texts whose names end in `extension`; none where no plugin has one. `wanted` is the interpreter that the
/// registry names.
///
/// # Errors
/// What the plugin says that was asked: which interpreter is missing.
pub(crate) fn interpreter_of(
    cx: &Cx,
    extension: &str,
    wanted: Option<&str>,
) -> Result<Option<Vec<String>>, String> {
    find(cx, extension, wanted).map_err(|error| error.to_string())
}

fn find(
    cx: &Cx,
    extension: &str,
    wanted: Option<&str>,
) -> Result<Option<Vec<String>>, ServiceError> {
    let facet = Interpreters::NAME;
    let rules = cx.operators().rules(facet, extension, 0)?;
    let run = Run::new(cx.clone(), Attrs::NONE, Attrs::NONE, Arc::<AtomicBool>::default());
    let site = Site::of_program(Arc::new(Call::new(Arc::new(run))), null_mut());
    let data = wanted.map_or(0, |wanted| cx.symbol(wanted).0);
    let question = RuleQuestion { cx, nodes: &[], data, site: &site };
    let Some(answer) = first_answer(&rules, &format!("{facet}:{extension}"), &question)? else {
        return Ok(None);
    };
    let terms = cx.terms();
    let word = |term| match terms.view(term) {
        TermView::Str(word) => Some(word.to_owned()),
        _ => None,
    };
    let words: Option<Vec<String>> = terms
        .children(tenon_plugin_api::ir::Term(answer.data))
        .iter()
        .map(|&it| word(it))
        .collect();
    match words {
        Some(words) if !words.is_empty() => Ok(Some(words)),
        _ => Err(ServiceError::Refused(format!("the rule `{facet}:{extension}` gives no command"))),
    }
}
