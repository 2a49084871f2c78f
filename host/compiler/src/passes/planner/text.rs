//! A pipeline's text, and the places of what it names.

use std::ops::Range;
use std::sync::Arc;

use super::super::options::Given;
use super::super::pipeline::{OptionSpec, Pipeline, PipelineError};
use super::super::plan::PlanError;
use crate::diagnostics::Source;
use crate::registry::{Place, Set};

/// A pipeline's text, and where it stands.
#[derive(Clone)]
pub(in crate::passes) struct Text<'a> {
    text: &'a str,
    origin: Origin<'a>,
}

#[derive(Clone)]
enum Origin<'a> {
    /// Written there without escapes.
    Verbatim(&'a Place),
    /// Written there with escapes: its parts have no places of their own.
    Escaped(&'a Place),
    Argument(Arc<Source>),
}

impl<'a> Text<'a> {
    pub(super) fn of_file(set: &'a Set<String>) -> Self {
        let origin = match set.place.is_verbatim(&set.value) {
            true => Origin::Verbatim(&set.place),
            false => Origin::Escaped(&set.place),
        };
        Self { text: &set.value, origin }
    }

    /// A text that stands in no file, called `name` in messages.
    pub(in crate::passes) fn called(name: String, text: &'a str) -> Self {
        Self { text, origin: Origin::Argument(Source::new(name, text)) }
    }

    pub(super) fn of_argument(text: &'a str) -> Self {
        Self { text, origin: Origin::Argument(Source::new("the pipeline", text)) }
    }

    pub(super) fn place(&self, at: &Range<usize>) -> Place {
        match &self.origin {
            Origin::Verbatim(place) => place.within(at),
            Origin::Escaped(place) => (*place).clone(),
            Origin::Argument(source) => Place::in_pipeline(source, at.clone()),
        }
    }

    /// The options of a pass.
    pub(in crate::passes) fn given(&self, options: &[OptionSpec]) -> Vec<Given> {
        let given = |option: &OptionSpec| Given {
            name: Set { value: option.name.text.clone(), place: self.place(&option.name.at) },
            value: Set { value: option.value.clone(), place: self.place(&option.at) },
        };
        options.iter().map(given).collect()
    }

    pub(in crate::passes) fn parse(&self) -> Result<Pipeline, PlanError> {
        Pipeline::parse(self.text).map_err(|PipelineError { at, message, .. }| {
            let message = format!("the pipeline does not read well: {message}");
            self.place(&(at..self.text.len().min(at + 1))).error(message, "").into()
        })
    }
}
