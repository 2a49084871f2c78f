//! Which operators have a translation, and since which version of the operator set it holds.
//!
//! A translation holds until the next one of the same operator. Only versions that differ in meaning or
//! form are listed: a translation sees the version and copes with small differences itself.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::builder::Value;
use super::error::Problem;
use super::node::NodeCx;
use super::ops::{
    activation, cast, constant, conv, elementwise, layout, matrix, normalize, pad, pool, position,
    quantize, reduce, shape, slice,
};

/// The oldest version of the standard operators that is known.
pub(super) const OLDEST_VERSION: i64 = 7;
/// The newest one.
pub(super) const NEWEST_VERSION: i64 = 28;

/// Makes the outputs of a node: as many as it can, at least as many as are named.
pub(super) type Translate = fn(&mut NodeCx<'_, '_>) -> Result<Vec<Value>, Problem>;

/// The translation of an operator since a version.
pub(super) struct Rule {
    op_type: &'static str,
    since: i64,
    pub(super) how: How,
}

/// How an operator is translated.
#[derive(Clone, Copy)]
pub(super) enum How {
    /// It is one of ours under another name.
    Same(&'static str),
    By(Translate),
}

impl Rule {
    /// Makes the outputs of a node.
    pub(super) fn translate(&self, cx: &mut NodeCx<'_, '_>) -> Result<Vec<Value>, Problem> {
        match self.how {
            How::By(translate) => translate(cx),
            How::Same(op) => {
                let inputs = cx.all_inputs()?;
                Ok(vec![cx.apply(op, &inputs)?])
            }
        }
    }
}

/// The translation of `op_type` in version `version` of the standard operators.
pub(super) fn find(op_type: &str, version: i64) -> Option<&'static Rule> {
    let rules = TABLE.get(op_type)?;
    rules.iter().rev().find(|rule| rule.since <= version).copied()
}

static TABLE: LazyLock<HashMap<&'static str, Vec<&'static Rule>>> = LazyLock::new(|| {
    let mut table: HashMap<&'static str, Vec<&'static Rule>> = HashMap::new();
    for rule in RULES {
        table.entry(rule.op_type).or_default().push(rule);
    }
    table
});

const fn same(op_type: &'static str, since: i64, op: &'static str) -> Rule {
    Rule { op_type, since, how: How::Same(op) }
}

const fn by(op_type: &'static str, since: i64, translate: Translate) -> Rule {
    Rule { op_type, since, how: How::By(translate) }
}

/// In alphabetic order; the versions of one operator ascend.
const RULES: &[Rule] = &[
    same("Abs", 6, "abs"),
    same("Add", 7, "add"),
    same("And", 7, "logical_and"),
    by("ArgMax", 1, reduce::arg_max),
    by("ArgMin", 1, reduce::arg_min),
    by("AveragePool", 7, pool::average),
    by("BatchNormalization", 7, normalize::batch),
    by("Cast", 6, cast::cast),
    by("CastLike", 15, cast::cast_like),
    same("Ceil", 6, "ceil"),
    by("Celu", 12, activation::celu),
    by("Clip", 6, elementwise::clip_by_attributes),
    by("Clip", 11, elementwise::clip),
    by("Concat", 4, slice::concat),
    by("Constant", 1, constant::constant),
    by("ConstantOfShape", 9, constant::constant_of_shape),
    by("Conv", 1, conv::conv),
    same("Cos", 7, "cos"),
    by("DepthToSpace", 1, layout::depth_to_space),
    by("DequantizeLinear", 10, quantize::dequantize),
    same("Div", 7, "divide"),
    by("Dropout", 7, elementwise::dropout_by_attribute),
    by("Dropout", 12, elementwise::dropout),
    by("Elu", 6, activation::elu),
    same("Equal", 7, "equal"),
    same("Erf", 9, "erf"),
    same("Exp", 6, "exp"),
    by("Expand", 8, shape::expand),
    by("Flatten", 1, shape::flatten),
    same("Floor", 6, "floor"),
    by("Gather", 1, slice::gather),
    by("Gelu", 20, activation::gelu),
    by("Gemm", 7, matrix::gemm),
    by("GlobalAveragePool", 1, pool::global_average),
    by("GlobalMaxPool", 1, pool::global_max),
    same("Greater", 7, "greater"),
    same("GreaterOrEqual", 12, "greater_equal"),
    by("GroupNormalization", 21, normalize::group),
    by("HardSigmoid", 6, activation::hard_sigmoid),
    by("HardSwish", 14, activation::hard_swish),
    by("Identity", 1, shape::identity),
    by("InstanceNormalization", 6, normalize::instance),
    by("IsInf", 10, elementwise::is_infinite),
    by("IsNaN", 9, elementwise::is_nan),
    by("LRN", 1, normalize::lrn),
    by("LayerNormalization", 17, normalize::layer),
    by("LeakyRelu", 6, activation::leaky_relu),
    same("Less", 7, "less"),
    same("LessOrEqual", 12, "less_equal"),
    same("Log", 6, "log"),
    by("LogSoftmax", 1, normalize::log_softmax_of_matrix),
    by("LogSoftmax", 13, normalize::log_softmax),
    by("LpNormalization", 1, normalize::lp),
    by("MatMul", 1, matrix::matmul),
    by("Max", 6, elementwise::max),
    by("MaxPool", 1, pool::max),
    by("Mean", 6, elementwise::mean),
    by("MeanVarianceNormalization", 9, normalize::mean_variance),
    by("Min", 6, elementwise::min),
    by("Mish", 18, activation::mish),
    by("Mod", 10, elementwise::remainder),
    same("Mul", 7, "multiply"),
    same("Neg", 6, "negative"),
    same("Not", 1, "logical_not"),
    by("OneHot", 9, position::one_hot),
    same("Or", 7, "logical_or"),
    by("PRelu", 7, activation::prelu),
    by("Pad", 2, pad::by_attributes),
    by("Pad", 11, pad::pad),
    by("Pow", 7, elementwise::pow),
    by("QuantizeLinear", 10, quantize::quantize),
    by("RMSNormalization", 23, normalize::root_mean_square),
    by("Range", 11, constant::range),
    by("Reciprocal", 6, elementwise::reciprocal),
    by("ReduceL1", 1, reduce::l1),
    by("ReduceL2", 1, reduce::l2),
    by("ReduceLogSum", 1, reduce::log_sum),
    by("ReduceLogSumExp", 1, reduce::log_sum_exp),
    by("ReduceMax", 1, reduce::max),
    by("ReduceMean", 1, reduce::mean),
    by("ReduceMin", 1, reduce::min),
    by("ReduceProd", 1, reduce::prod),
    by("ReduceSum", 1, reduce::sum),
    by("ReduceSumSquare", 1, reduce::sum_square),
    same("Relu", 6, "nn.relu"),
    by("Reshape", 5, shape::reshape),
    same("Round", 11, "round"),
    by("Selu", 6, activation::selu),
    by("Shape", 1, shape::shape),
    by("Shrink", 9, activation::shrink),
    same("Sigmoid", 6, "sigmoid"),
    by("Sign", 9, elementwise::sign),
    same("Sin", 7, "sin"),
    by("Size", 1, shape::size),
    by("Slice", 1, slice::slice_by_attributes),
    by("Slice", 10, slice::slice),
    by("Softmax", 1, normalize::softmax_of_matrix),
    by("Softmax", 13, normalize::softmax),
    by("Softplus", 1, activation::softplus),
    by("Softsign", 1, activation::softsign),
    by("SpaceToDepth", 1, layout::space_to_depth),
    by("Split", 2, slice::split),
    same("Sqrt", 6, "sqrt"),
    by("Squeeze", 1, shape::squeeze),
    same("Sub", 7, "subtract"),
    by("Sum", 6, elementwise::sum),
    by("Swish", 24, activation::swish),
    same("Tanh", 6, "tanh"),
    by("ThresholdedRelu", 10, activation::thresholded_relu),
    by("Tile", 6, layout::tile),
    by("Transpose", 1, shape::transpose),
    by("Trilu", 14, position::triangle),
    by("Unsqueeze", 1, shape::unsqueeze),
    same("Where", 9, "where"),
    by("Xor", 7, elementwise::xor),
];

#[cfg(test)]
mod tests {
    use super::{How, RULES};

    #[test]
    fn the_table_is_in_order() {
        for pair in RULES.windows(2) {
            let key = |rule: &super::Rule| (rule.op_type, rule.since);
            assert!(key(&pair[0]) < key(&pair[1]), "{:?}", key(&pair[1]));
        }
    }

    #[test]
    fn the_operators_exist() {
        for rule in RULES {
            if let How::Same(op) = rule.how {
                assert!(crate::ops::linked().find(op).is_some(), "{op}");
            }
        }
    }
}
