//! Where the elements of constants go.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::terms::TermWriter;
use crate::text::element;
use crate::text::names::{is_bare_global, write_name, write_quoted};
use crate::{Constant, Context, Cx, DType};

/// Elements that a constant may have to stand inside an expression.
const FEW: u64 = 8;
/// The most bytes of a constant whose elements are all equal to be written as one element.
const LARGEST_FILL: usize = 1 << 26;

/// Decides which constants are written into the text, and collects the others.
#[derive(Debug)]
pub struct WeightsPolicy {
    inline_limit: u64,
    large: Large,
    has_elided_terms: bool,
    has_sources: bool,
}

#[derive(Debug)]
enum Large {
    Elided,
    External(External),
}

#[derive(Debug, Default)]
struct External {
    file: String,
    collected: Vec<(String, Arc<Constant>)>,
    keys: HashSet<String>,
    /// By address: the collected list keeps each constant alive.
    known: HashMap<usize, usize>,
}

impl WeightsPolicy {
    /// All elements stand in the text.
    pub fn inline() -> Self {
        Self::new(u64::MAX, Large::Elided)
    }

    /// Constants of more than `inline_limit` elements are shown as `...`, which does not parse: for
    /// people, not for files.
    pub fn elided(inline_limit: u64) -> Self {
        Self::new(inline_limit, Large::Elided)
    }

    /// Constants of more than `inline_limit` elements are referred to by key, and are to be written to
    /// the weights file of the given name, which is relative to the text's own place.
    pub fn external(file: impl Into<String>, inline_limit: u64) -> Self {
        let external = External { file: file.into(), ..External::default() };
        Self::new(inline_limit, Large::External(external))
    }

    fn new(inline_limit: u64, large: Large) -> Self {
        Self { inline_limit, large, has_elided_terms: false, has_sources: false }
    }

    /// Whether it is written what nodes came from, `loc("…")` behind each binding.
    pub fn with_sources(self, has_sources: bool) -> Self {
        Self { has_sources, ..self }
    }

    pub(super) fn has_sources(&self) -> bool {
        self.has_sources
    }

    /// Whether what was printed has types or attributes that are too long to be written, which stand as `...`.
    pub fn has_elided_terms(&self) -> bool {
        self.has_elided_terms
    }

    /// Remembers what a writer of terms has left out.
    pub(super) fn after(&mut self, terms: &TermWriter<'_>) {
        self.has_elided_terms |= terms.has_elided();
    }

    /// The constants to be written to the weights file, by key, in the order of their first use.
    pub fn collected(&self) -> &[(String, Arc<Constant>)] {
        match &self.large {
            Large::External(external) => &external.collected,
            Large::Elided => &[],
        }
    }

    /// The name of the weights file, when anything is to be written to it.
    pub(super) fn file(&self) -> Option<&str> {
        match &self.large {
            Large::External(external) if !external.collected.is_empty() => Some(&external.file),
            _ => None,
        }
    }

    fn is_inline(&self, constant: &Constant, count: u64, dtype: DType) -> bool {
        let is_whole = dtype.bytes(count) == Some(constant.data.len() as u64);
        // A weights file has no elements below a byte.
        let is_small = count <= self.inline_limit || dtype.bits() < 8;
        is_small && element::is_known(dtype) && is_whole
    }
}

/// How a constant is written.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Style {
    /// In brackets, or alone for a scalar.
    Elements(DType, u64),
    /// One element for all.
    Fill(DType),
    Elsewhere,
}

impl Style {
    pub(super) fn of(policy: &WeightsPolicy, cx: &Cx, constant: &Constant) -> Self {
        let Some((dtype, dims)) = cx.terms().tensor(constant.ty) else { return Style::Elsewhere };
        let count = dims.iter().try_fold(1u64, |count, &dim| {
            count.checked_mul(u64::try_from(cx.terms().dim_value(dim)?).ok()?)
        });
        let Some(count) = count else { return Style::Elsewhere };
        if policy.is_inline(constant, count, dtype)
            && (count <= FEW || !is_uniform(constant, dtype))
        {
            return Style::Elements(dtype, count);
        }
        let is_small = count > FEW && constant.data.len() <= LARGEST_FILL;
        let is_whole = dtype.bytes(count) == Some(constant.data.len() as u64);
        match is_small && is_whole && is_uniform(constant, dtype) {
            true => Style::Fill(dtype),
            false => Style::Elsewhere,
        }
    }

    /// Whether a constant is short enough to stand inside an expression.
    pub(super) fn is_short(self) -> bool {
        !matches!(self, Style::Elements(_, count) if count > FEW)
    }
}

/// Whether all elements have the same bits.
fn is_uniform(constant: &Constant, dtype: DType) -> bool {
    let size = dtype.bits() as usize / 8;
    if size == 0 || !element::is_known(dtype) {
        return false;
    }
    let data = &constant.data[..];
    data.len() >= size && data[size..] == data[..data.len() - size]
}

/// Writes a constant with its type.
pub(super) fn write_constant(
    out: &mut String,
    terms: &mut TermWriter<'_>,
    policy: &mut WeightsPolicy,
    constant: &Arc<Constant>,
    style: Style,
    name: &str,
) {
    out.push_str("const(");
    terms.ty(out, constant.ty);
    out.push_str(", ");
    match style {
        Style::Elements(dtype, 1) => element::write(out, dtype, &constant.data, 0),
        Style::Fill(dtype) => element::write(out, dtype, &constant.data, 0),
        Style::Elements(dtype, count) => {
            out.push('[');
            for index in 0..count as usize {
                if index > 0 {
                    out.push_str(", ");
                }
                element::write(out, dtype, &constant.data, index);
            }
            out.push(']');
        }
        Style::Elsewhere => match &mut policy.large {
            Large::Elided => out.push_str("..."),
            Large::External(external) => {
                let key = external.key(constant, name);
                out.push('@');
                write_name(out, key, is_bare_global(key));
            }
        },
    }
    if style != Style::Elsewhere && !name.is_empty() {
        out.push_str(", ");
        write_quoted(out, name);
    }
    out.push(')');
}

impl External {
    /// The key of a constant: its name, with a number behind it where two have the same.
    fn key(&mut self, constant: &Arc<Constant>, name: &str) -> &str {
        let address = Arc::as_ptr(constant) as usize;
        let index = match self.known.get(&address) {
            Some(&index) => index,
            None => {
                let key = self.fresh_key(name);
                self.keys.insert(key.clone());
                self.known.insert(address, self.collected.len());
                self.collected.push((key, constant.clone()));
                self.collected.len() - 1
            }
        };
        &self.collected[index].0
    }

    fn fresh_key(&self, name: &str) -> String {
        let base = if name.is_empty() { "constant" } else { name };
        if !self.keys.contains(base) {
            return base.to_owned();
        }
        // Keys are never removed, so the number of keys bounds the search; starting there keeps many
        // constants of one name from being quadratic.
        (self.keys.len()..)
            .map(|number| format!("{base}_{number}"))
            .find(|key| !self.keys.contains(key))
            .unwrap_or_default()
    }
}
