//! What a node without translation would make, where the model says its type.
//!
//! Nodes that read it can then be looked at as well, so that one import tells all that has no translation. The
//! import fails in the end, so it does not matter that nothing makes these values. What is wrong with a node that
//! reads one, be it through others, may be because of that, unless it is about the node alone: only what is not
//! supported is told of it, and not that it needs a constant.

use std::collections::HashSet;

use crate::ir::{Context, Cx, Type};
use crate::onnx::proto::{NodeProto, TypeProto};

use super::builder::{Builder, Value};
use super::declared::Declared;
use super::dims::Dims;
use super::error::Problem;
use super::tensor::{check_rank, dtype_of_code};

/// The values that nothing makes, and those that are made of them.
#[derive(Debug, Default)]
pub(super) struct StandIns {
    values: HashSet<Value>,
}

impl StandIns {
    /// The first `count` outputs of a node of the graph, those of unknown type missing.
    pub(super) fn make<'m>(
        &mut self,
        declared: &Declared<'m>,
        node: &'m NodeProto<'m>,
        count: usize,
        dims: &Dims<'m>,
        builder: &mut Builder,
    ) -> Vec<Value> {
        let made = node.output.iter().take(count).map(|name| {
            let ty = declared.ty(name).and_then(|ty| type_of(builder.cx(), dims, ty));
            match ty {
                Some(ty) => {
                    let value = builder.param(name, ty);
                    self.values.insert(value);
                    value
                }
                None => builder.missing(),
            }
        });
        made.collect()
    }

    /// Whether one of `inputs` is a stand-in or made of one.
    pub(super) fn are_among(&self, inputs: &[Option<Value>]) -> bool {
        inputs.iter().flatten().any(|input| self.values.contains(input))
    }

    /// Takes note of what is made of stand-ins.
    pub(super) fn extend(&mut self, outputs: &[Value]) {
        self.values.extend(outputs);
    }
}

/// Whether it is the node's own problem, and not that of what it reads.
pub(super) fn is_about_node(problem: &Problem) -> bool {
    match problem {
        Problem::Unsupported(_) | Problem::Rule(_) => true,
        Problem::NotConstant { .. }
        | Problem::Choice { .. }
        | Problem::Invalid(_)
        | Problem::Operator(_)
        | Problem::Tensor(_) => false,
    }
}

fn type_of(cx: &Cx, dims: &Dims<'_>, ty: &TypeProto<'_>) -> Option<Type> {
    let TypeProto::Tensor { elem_type, shape } = ty else { return None };
    let dtype = dtype_of_code(*elem_type).ok()?;
    let Some(shape) = shape else { return Some(cx.unranked_tensor_type(dtype)) };
    check_rank(shape.len()).ok()?;
    let dims: Option<Vec<_>> = shape.iter().map(|&dim| dims.of_output(dim)).collect();
    Some(cx.tensor_type(dtype, &dims?))
}
