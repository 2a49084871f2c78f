//! Operators that have a number for each channel.

use tenon_plugin_api::op::prelude::*;

/// The type of the first argument, where each of `params` has a number for each of its channels.
pub(crate) fn per_channel(
    cx: &InferCx<'_>,
    axis: i64,
    params: std::ops::Range<usize>,
) -> Result<Type> {
    for index in params {
        cx.check_same_dtype(index)?;
        let channels = cx.tensor_of_rank(index, 1)?.dims;
        let (Some(dims), Some(&[channels])) = (cx.tensor(0)?.dims, channels) else { continue };
        let channel = dims[cx.axis("axis", axis, dims.len())?];
        if cx.is_different(channel, channels) {
            let what = format!("the channels of the data and argument {}", index + 1);
            return Err(cx.mismatch(&what, &[channel], &[channels]));
        }
    }
    cx.arg(0)
}

/// Of a tensor of a rank, the axes that are not those of its channels, and the axes that let a vector of numbers for the
/// channels stand beside it.
pub(crate) fn beside_channels(rank: i64, axis: i64) -> (Vec<i64>, Vec<i64>) {
    let axis = axis.rem_euclid(rank.max(1));
    ((0..rank).filter(|&other| other != axis).collect(), (1..rank - axis).collect())
}
