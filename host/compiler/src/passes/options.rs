//! The options of a step: what the pass declares, what the registry sets, what the pipeline sets.

use std::collections::BTreeMap;

use tenon_plugin_api::ir::{Attrs, Context, Term};

use crate::diagnostics::Diagnostic;
use crate::ir::Cx;
use crate::registry::{OptionRecord, OptionValue, Place, Set};
use crate::suggest::nearest;

/// An option of a step.
#[derive(Clone, Debug)]
pub struct StepOption {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: OptionValue,
    /// The place that set it; none where the default stands.
    pub set_by: Option<Place>,
}

/// A value that is given.
#[derive(Clone, Debug)]
pub(super) struct Given {
    pub(super) name: Set<String>,
    pub(super) value: Set<OptionValue>,
}

/// The values of all options of `owner`, in the order in which they are declared: of those that are given the
/// last one stands.
pub(super) fn settle(
    owner: &str,
    declared: &[OptionRecord],
    given: impl Iterator<Item = Given>,
) -> Result<Vec<StepOption>, Box<Diagnostic>> {
    let mut set: BTreeMap<&str, Set<OptionValue>> = BTreeMap::new();
    for Given { name, value } in given {
        let Some(option) = declared.iter().find(|option| option.name == name.value) else {
            return Err(unknown(owner, declared, &name).into());
        };
        let fitted = option.fit(&value.value).map_err(|misfit| {
            let message = format!("option `{}` of `{owner}` {}", name.value, misfit.message);
            let error = value.place.error(message, "");
            Box::new(misfit.help.into_iter().fold(error, Diagnostic::help))
        })?;
        set.insert(&option.name, Set { value: fitted, place: value.place });
    }
    let settled = declared.iter().map(|option| {
        let (value, set_by) = match set.remove(option.name.as_str()) {
            Some(set) => (set.value, Some(set.place)),
            None => (option.default_value(), None),
        };
        StepOption { name: option.name.clone(), value, set_by }
    });
    Ok(settled.collect())
}

fn unknown(owner: &str, declared: &[OptionRecord], name: &Set<String>) -> Diagnostic {
    let Set { value: name, place } = name;
    let known: Vec<&str> = declared.iter().map(|option| option.name.as_str()).collect();
    let error = place.error(format!("`{owner}` has no option `{name}`"), "");
    match nearest(name, known.iter().copied()) {
        Some(near) => error.help(format!("did you mean `{near}`?")),
        None if known.is_empty() => error.note("it has no options at all"),
        None => error.note(format!("it has {}", known.join(", "))),
    }
}

/// The options as the dictionary that a pass reads.
pub(super) fn to_attrs(cx: &Cx, options: &[StepOption]) -> Attrs {
    let entries = options.iter().map(|option| (option.name.as_str(), term(cx, &option.value)));
    cx.dict(&entries.collect())
}

fn term(cx: &Cx, value: &OptionValue) -> Term {
    match value {
        OptionValue::Int(value) => cx.int(*value),
        OptionValue::Float(value) => cx.float(*value),
        OptionValue::Bool(value) => cx.bool(*value),
        OptionValue::Str(text) => cx.symbol(text).into(),
        // Lists hold no lists.
        OptionValue::List(items) => {
            let items: Vec<Term> = items.iter().map(|item| term(cx, item)).collect();
            cx.list(&items)
        }
    }
}
