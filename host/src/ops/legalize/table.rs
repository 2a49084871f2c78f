//! Which operators have a tensor program.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::{
    conv2d, elementwise, global_pool, group_norm, index_add, injective, join, lrn, matmul, pool,
    reduce, reshape, softmax,
};
use crate::ops::{LegalizeCx, OpError};

/// Builds the tensor program of a call.
pub(crate) type Legalize = fn(&mut LegalizeCx<'_>) -> Result<(), OpError>;

/// The legalization of the operator called `name`, if it has one.
pub(crate) fn find(name: &str) -> Option<Legalize> {
    static TABLE: LazyLock<HashMap<&'static str, Legalize>> =
        LazyLock::new(|| ROWS.iter().copied().collect());
    TABLE.get(name).copied()
}

/// Whether the operator called `name` has a tensor program.
pub fn has_program(name: &str) -> bool {
    find(name).is_some()
}

const ROWS: &[(&str, Legalize)] = &[
    ("nn.relu", elementwise::unary),
    ("sigmoid", elementwise::unary),
    ("tanh", elementwise::unary),
    ("exp", elementwise::unary),
    ("log", elementwise::unary),
    ("sqrt", elementwise::unary),
    ("rsqrt", elementwise::unary),
    ("negative", elementwise::unary),
    ("abs", elementwise::unary),
    ("erf", elementwise::unary),
    ("floor", elementwise::unary),
    ("ceil", elementwise::unary),
    ("round", elementwise::unary),
    ("sin", elementwise::unary),
    ("cos", elementwise::unary),
    ("nn.leaky_relu", elementwise::unary),
    ("nn.gelu", elementwise::unary),
    ("nn.silu", elementwise::unary),
    ("clip", elementwise::unary),
    ("nn.dropout", elementwise::unary),
    ("logical_not", elementwise::unary),
    ("cast", elementwise::unary),
    ("add", elementwise::binary),
    ("subtract", elementwise::binary),
    ("multiply", elementwise::binary),
    ("divide", elementwise::binary),
    ("maximum", elementwise::binary),
    ("minimum", elementwise::binary),
    ("power", elementwise::binary),
    ("equal", elementwise::binary),
    ("not_equal", elementwise::binary),
    ("less", elementwise::binary),
    ("less_equal", elementwise::binary),
    ("greater", elementwise::binary),
    ("greater_equal", elementwise::binary),
    ("logical_and", elementwise::binary),
    ("logical_or", elementwise::binary),
    ("where", elementwise::choose),
    ("nn.batch_norm", elementwise::batch_norm),
    ("nn.bias_add", elementwise::bias_add),
    ("sum", reduce::reduce),
    ("mean", reduce::reduce),
    ("max", reduce::reduce),
    ("min", reduce::reduce),
    ("prod", reduce::reduce),
    ("argmax", reduce::arg_extreme),
    ("argmin", reduce::arg_extreme),
    ("nn.dense", matmul::dense),
    ("matmul", matmul::matmul),
    ("nn.conv2d", conv2d::conv2d),
    ("nn.max_pool2d", pool::pool2d),
    ("nn.avg_pool2d", pool::pool2d),
    ("nn.global_max_pool2d", global_pool::global_pool2d),
    ("nn.global_avg_pool2d", global_pool::global_pool2d),
    ("nn.lrn", lrn::lrn),
    ("nn.softmax", softmax::softmax),
    ("nn.log_softmax", softmax::log_softmax),
    ("nn.layer_norm", group_norm::standardize),
    ("nn.group_norm", group_norm::standardize),
    ("nn.instance_norm", group_norm::standardize),
    ("nn.l2_normalize", group_norm::l2_normalize),
    ("reshape", reshape::reshape),
    ("expand_dims", reshape::reshape),
    ("squeeze", reshape::reshape),
    ("transpose", injective::transpose),
    ("broadcast_to", injective::broadcast_to),
    ("full", injective::full),
    ("layout_transform", injective::layout_transform),
    ("strided_slice", injective::strided_slice),
    ("take", injective::take),
    ("nn.pad", injective::pad),
    ("concatenate", join::concatenate),
    ("split", join::split),
    ("index_add", index_add::index_add),
];
