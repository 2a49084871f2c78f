//! The rules: for each operator, what its call contributes to the adjoints of its arguments.
//!
//! In the formulas `x` is the argument, `y` the result, `g` the adjoint of the result.

use super::step::{Grad, Grads, Step};

mod broadcast;
mod elementwise;
mod group_norm;
mod movement;
mod normalization;
mod pooling;
mod product;
mod reduction;

/// A rule.
pub(super) type Rule = fn(&mut Step<'_>) -> Grads;

/// The rule of an operator.
pub(super) fn find(op: &str) -> Option<Rule> {
    RULES.iter().find(|(name, _)| *name == op).map(|&(_, rule)| rule)
}

const RULES: &[(&str, Rule)] = &[
    ("abs", elementwise::abs),
    ("cast", elementwise::cast),
    ("clip", elementwise::clip),
    ("cos", elementwise::cos),
    ("erf", elementwise::erf),
    ("exp", elementwise::exp),
    ("log", elementwise::log),
    ("negative", elementwise::negative),
    ("nn.dropout", elementwise::identity),
    ("nn.gelu", elementwise::gelu),
    ("nn.leaky_relu", elementwise::leaky_relu),
    ("nn.relu", elementwise::relu),
    ("nn.silu", elementwise::silu),
    ("rsqrt", elementwise::rsqrt),
    ("sigmoid", elementwise::sigmoid),
    ("sin", elementwise::sin),
    ("sqrt", elementwise::sqrt),
    ("tanh", elementwise::tanh),
    ("add", broadcast::add),
    ("subtract", broadcast::subtract),
    ("multiply", broadcast::multiply),
    ("divide", broadcast::divide),
    ("maximum", broadcast::maximum),
    ("minimum", broadcast::minimum),
    ("power", broadcast::power),
    ("where", broadcast::choose),
    ("matmul", product::matmul),
    ("nn.dense", product::dense),
    ("nn.conv2d", product::conv2d),
    ("broadcast_to", movement::broadcast_to),
    ("concatenate", movement::concatenate),
    ("expand_dims", movement::reshape),
    ("index_add", movement::index_add),
    ("layout_transform", movement::layout_transform),
    ("nn.pad", movement::pad),
    ("reshape", movement::reshape),
    ("split", movement::split),
    ("squeeze", movement::reshape),
    ("strided_slice", movement::strided_slice),
    ("take", movement::take),
    ("transpose", movement::transpose),
    ("max", reduction::extreme),
    ("mean", reduction::mean),
    ("min", reduction::extreme),
    ("prod", reduction::prod),
    ("sum", reduction::sum),
    ("nn.batch_norm", normalization::batch_norm),
    ("nn.bias_add", normalization::bias_add),
    ("nn.group_norm", group_norm::group_norm),
    ("nn.instance_norm", group_norm::instance_norm),
    ("nn.l2_normalize", group_norm::l2_normalize),
    ("nn.layer_norm", group_norm::layer_norm),
    ("nn.log_softmax", normalization::log_softmax),
    ("nn.lrn", normalization::lrn),
    ("nn.softmax", normalization::softmax),
    ("nn.avg_pool2d", pooling::avg_pool2d),
    ("nn.global_avg_pool2d", pooling::global_avg_pool2d),
    ("nn.global_max_pool2d", pooling::global_max_pool2d),
    ("nn.max_pool2d", pooling::max_pool2d),
    // Steps and what is no float: the derivative is zero wherever there is one.
    ("argmax", none),
    ("argmin", none),
    ("ceil", none),
    ("equal", none),
    ("floor", none),
    ("greater", none),
    ("greater_equal", none),
    ("less", none),
    ("less_equal", none),
    ("logical_and", none),
    ("logical_not", none),
    ("logical_or", none),
    ("not_equal", none),
    ("round", none),
    ("shape_of", none),
];

fn none(step: &mut Step<'_>) -> Grads {
    Ok(step.call.args.iter().map(|_| Grad::Zero).collect())
}
