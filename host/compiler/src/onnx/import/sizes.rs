//! Inputs whose elements are sizes.
//!
//! ```text
//! x: float[2, 6]                              fn @main(%x: f32[2, 6], %s: shape[s_0, s_1]) {
//! s: int64[2]                            =>     %y = acme.regroup(%x, shape(s_0, s_1))
//! y = Reshape(x, s)                             ret %y
//!                                             }
//! ```
//!
//! A rule that must know the elements of a value asks for a constant. Where the value follows from inputs of few integers, the
//! model is imported once more with these inputs as shapes, so that rules see dimensions, and fold what is computed of them.

use std::collections::HashSet;

use crate::ir::{Context, DType, Dim, Type};
use crate::onnx::proto::NodeProto;
use tenon_plugin_api::rule::import::{Few, Known};

use super::builder::Value;
use super::driver::Importer;
use super::scope::{Definition, Frame, Role};

/// Of so many integers a shape may be made; no rank is larger.
const MOST: i64 = 16;

/// What a node wants to know of what it reads.
#[derive(Clone, Copy)]
pub(super) enum Wanted {
    /// Sizes, of any of its inputs.
    Sizes,
    /// Which of few values an input is.
    OneOf(usize, Few),
}

/// The element types of inputs that are one of few.
pub(super) const CHOOSING: [DType; 5] =
    [DType::BOOL, DType::I32, DType::I64, DType::F32, DType::F64];

impl<'m> Importer<'m> {
    /// How many sizes an input of this type may be; `None` for one that is no list of few integers.
    fn size_count(&self, ty: Type) -> Option<(usize, bool)> {
        let (dtype, dims) = self.cx.terms().static_tensor(ty)?;
        match dims[..] {
            _ if dtype != DType::I64 => None,
            [] => Some((1, true)),
            [count] => (1..=MOST).contains(&count).then_some((count as usize, false)),
            _ => None,
        }
    }

    /// Whether a value of this type may be one of few.
    fn may_choose(&self, ty: Type) -> bool {
        let Some((dtype, dims)) = self.cx.terms().static_tensor(ty) else { return false };
        let is_few = matches!(dims[..], [] | [..=MOST]);
        is_few && CHOOSING.contains(&dtype)
    }

    /// The input of type `ty` as a shape, where it is one.
    pub(super) fn sizes_input(&mut self, name: &str, ty: Type) -> Option<Value> {
        let (count, is_scalar) = self.size_count(ty).filter(|_| self.sizes.contains(name))?;
        let symbol = |at: usize| match is_scalar {
            true => name.to_owned(),
            false => format!("{name}_{at}"),
        };
        let dims: Vec<Dim> = (0..count).map(|at| self.dims.fresh(&symbol(at))).collect();
        self.builder.shape_param(name, &dims, is_scalar);
        let known = match is_scalar {
            true => Known::scalar(DType::I64, dims[0]),
            false => Known::vector(dims),
        };
        Some(self.builder.known(known))
    }

    /// Takes note that the elements of something that `node` reads must be known: of the inputs that it follows from, those
    /// that may be sizes, or that choose what the model computes.
    pub(super) fn want(&mut self, frame: &Frame<'m>, node: &'m NodeProto<'m>, wanted: Wanted) {
        if let Role::Function(_) = frame.role {
            return;
        }
        let mut seen: HashSet<&'m str> = HashSet::new();
        let mut pending: Vec<&'m str> = match wanted {
            Wanted::Sizes => node.input.clone(),
            Wanted::OneOf(input, _) => node.input.get(input).copied().into_iter().collect(),
        };
        while let Some(name) = pending.pop() {
            let Some((value, definition)) = frame.values.definition(name) else { continue };
            let is_open = !self.builder.is_missing(value) && self.builder.elements(value).is_none();
            let ty = self.builder.ty(value);
            let is_wanted = match wanted {
                Wanted::Sizes => self.size_count(ty).is_some(),
                Wanted::OneOf(..) => self.may_choose(ty),
            };
            if !is_open || !is_wanted || !seen.insert(name) {
                continue;
            }
            match definition {
                Definition::Input if self.model.graph.input.iter().any(|it| it.name == name) => {
                    match wanted {
                        Wanted::Sizes => drop(self.wanted.borrow_mut().insert(name.to_owned())),
                        Wanted::OneOf(_, of) => {
                            self.choices.borrow_mut().entry(name.to_owned()).or_insert(of);
                        }
                    }
                }
                Definition::Output(node) => pending.extend(&node.input),
                Definition::Input | Definition::Weight => {}
            }
        }
    }
}
