//! Inputs whose elements are sizes.
//!
//! ```text
//! x: float[6]                                 fn @main(%x: f32[6], %s: shape[s_0, s_1]) {
//! s: int64[2]                            =>     %y = acme.spread(%x, shape(s_0, s_1))
//! y = Expand(x, s)                              ret %y
//!                                             }
//! ```
//!
//! To some operators a -1 means a size as well, which the others leave: the element is a symbol less 1 then.
//!
//! A rule that must know the elements of a value asks for a constant. Where the value follows from inputs of few integers, the
//! model is imported once more with these inputs as shapes, so that rules see dimensions, and fold what is computed of them.

use std::collections::{BTreeMap, HashSet};

use crate::io::quoted;
use crate::ir::{Context, DType, Dim, NodeSource, Type};
use crate::onnx::proto::NodeProto;
use tenon_plugin_api::rule::import::{Few, Known};

use super::builder::Value;
use super::driver::{Found, Importer};
use super::error::{Problem, Stop};
use super::node::Node;
use super::scope::{Definition, Frame, Role};

/// Of so many integers a shape may be made; no rank is larger.
const MOST: i64 = 16;

/// The inputs whose elements are sizes, and whether one of these may be -1.
pub(super) type WantedSizes = BTreeMap<String, bool>;

/// The operators to which a -1 means a size as well: what the others leave.
const MEAN_REST: [&str; 1] = ["Reshape"];

/// What a node wants to know of what it reads.
#[derive(Clone, Copy)]
pub(super) enum Wanted {
    /// Sizes, of an input or of any of them.
    Sizes(Option<usize>),
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
        let &may_be_rest = self.sizes.get(name)?;
        let (count, is_scalar) = self.size_count(ty)?;
        let symbol = |at: usize| match is_scalar {
            true => name.to_owned(),
            false => format!("{name}_{at}"),
        };
        let mut size = |at: usize| match may_be_rest {
            // No symbol is below zero.
            true => {
                let next = self.dims.fresh(&format!("{}_plus_1", symbol(at)));
                self.cx.dim_sub(next, self.cx.dim(1))
            }
            false => self.dims.fresh(&symbol(at)),
        };
        let dims: Vec<Dim> = (0..count).map(&mut size).collect();
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
        let input = match wanted {
            Wanted::Sizes(input) => input,
            Wanted::OneOf(input, _) => Some(input),
        };
        let asked: Vec<&'m str> = match input {
            Some(input) => node.input.get(input).copied().into_iter().collect(),
            None => node.input.clone(),
        };
        if let Wanted::Sizes(_) | Wanted::OneOf(_, Few::Extents) = wanted {
            self.want_found(frame, &asked);
        }
        if let Role::Function(_) = frame.role {
            return;
        }
        let mut seen: HashSet<&'m str> = HashSet::new();
        let mut pending = asked;
        while let Some(name) = pending.pop() {
            let Some((value, definition)) = frame.values.definition(name) else { continue };
            let is_open = !self.builder.is_missing(value) && self.builder.elements(value).is_none();
            let ty = self.builder.ty(value);
            let is_wanted = match wanted {
                Wanted::Sizes(_) => self.size_count(ty).is_some(),
                Wanted::OneOf(..) => self.may_choose(ty),
            };
            if !is_open || !is_wanted || !seen.insert(name) {
                continue;
            }
            match definition {
                Definition::Input if self.model.graph.input.iter().any(|it| it.name == name) => {
                    match wanted {
                        Wanted::Sizes(_) => {
                            let may_be_rest = MEAN_REST.contains(&node.op_type);
                            *self.wanted.borrow_mut().entry(name.to_owned()).or_default() |=
                                may_be_rest;
                        }
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

/// What makes sizes of numbers that are none: differences and signs do, what leaves out numbers below zero, and what takes some of a
/// list in which others stand too.
const MAKES_SIZES: [&str; 9] =
    ["Abs", "Clip", "Gather", "GatherND", "Max", "ReduceMax", "Relu", "Slice", "Sub"];

/// The rule that takes elements of a tensor as sizes, which are found when the function runs.
pub(super) const FOUND: &str = "tenon::Found";

impl<'m> Importer<'m> {
    /// How a value of a graph, or of an expanded function, is called among those that sizes are found in.
    fn name_in(frame: &Frame<'m>, name: &str) -> String {
        format!("{}{name}", frame.base)
    }

    /// Takes note of the values from which the asked ones follow, and of which nothing is known: those that follow from no others of
    /// few integers, or may be sizes where these are not.
    fn want_found(&self, frame: &Frame<'m>, asked: &[&'m str]) {
        if self.found.is_none() {
            return;
        }
        let is_open = |name: &&'m str| {
            let value = frame.values.get(name);
            let value = value.filter(|&value| !self.builder.is_missing(value));
            value.is_some_and(|value| {
                let is_known = self.builder.elements(value).is_some();
                !is_known && self.may_be_sizes(self.builder.ty(value))
            })
        };
        let mut seen: HashSet<&'m str> = HashSet::new();
        let mut pending: Vec<&'m str> = asked.iter().copied().filter(is_open).collect();
        while let Some(name) = pending.pop() {
            if !seen.insert(name) {
                continue;
            }
            let behind = match frame.values.definition(name) {
                Some((_, Definition::Output(node))) if !MAKES_SIZES.contains(&node.op_type) => {
                    node.input.iter().copied().filter(is_open).collect()
                }
                _ => Vec::new(),
            };
            match behind.is_empty() {
                true => drop(self.findable.borrow_mut().insert(Self::name_in(frame, name))),
                false => pending.extend(behind),
            }
        }
    }

    /// Whether a value of this type may be sizes that are found.
    fn may_be_sizes(&self, ty: Type) -> bool {
        let Some((dtype, dims)) = self.cx.terms().static_tensor(ty) else { return false };
        [DType::I64, DType::I32].contains(&dtype) && matches!(dims[..], [] | [1..=MOST])
    }

    /// The value that is called `name`, or sizes that are found in it; it is from `node`, or an input of the model.
    pub(super) fn found_in(
        &mut self,
        frame: &Frame<'m>,
        name: &str,
        value: Value,
        node: Option<&NodeProto<'m>>,
    ) -> Result<Value, Stop> {
        let is_meant = |found: &Found| found.contains(&Self::name_in(frame, name));
        let is_open = !self.builder.is_missing(value) && self.builder.elements(value).is_none();
        if !is_open
            || !self.found.is_some_and(is_meant)
            || !self.may_be_sizes(self.builder.ty(value))
        {
            return Ok(value);
        }
        let source = node.map_or(NodeSource::NONE, |node| frame.source_of(&self.cx, node));
        self.builder.begin_node(name, source);
        let rules = self.cx.operators().rules(super::FACET, FOUND, 0);
        let outputs = rules.map_err(|error| Problem::Rule(error.to_string())).and_then(|rules| {
            Node::of_importer(&mut self.builder).ask(&rules, FOUND, &[Some(value)])
        });
        match outputs {
            Ok(Some(outputs)) if outputs.len() == 1 => Ok(outputs[0]),
            Ok(_) => Ok(value),
            Err(problem) => {
                let reason = problem.text();
                self.problems.add(format!("the sizes in {}: {reason}", quoted(name)));
                Ok(value)
            }
        }
    }

    /// The same of all inputs of the graph, or of an expanded function.
    pub(super) fn find_inputs(&mut self, frame: &mut Frame<'m>) -> Result<(), Stop> {
        let (names, node): (Vec<&'m str>, _) = match &frame.role {
            Role::Graph => {
                let names = self.model.graph.input.iter().map(|input| input.name);
                (names.collect(), None)
            }
            Role::Function(call) => (call.function.input.clone(), Some(call.node)),
            Role::Branch(_) | Role::Body(_) => return Ok(()),
        };
        for name in names {
            if let Some((value, Definition::Input)) = frame.values.definition(name) {
                let found = self.found_in(frame, name, value, node)?;
                frame.values.redefine(name, found);
            }
        }
        Ok(())
    }
}
