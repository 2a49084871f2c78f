//! The channels of normalizations that have statistics of their own for some of them.

use tenon_plugin_api::op::prelude::*;

/// The channels of the first argument, of which the others have a number for each, if its rank is known.
pub(crate) fn channels(cx: &InferCx<'_>, axis: i64, least_rank: usize) -> Result<Option<Dim>> {
    cx.check_float(0)?;
    let channels = match cx.tensor(0)?.dims {
        None => None,
        Some(dims) if dims.len() < least_rank => {
            return Err(cx.wrong_arg(0, &format!("a tensor of {least_rank} dimensions or more")));
        }
        Some(dims) => match cx.axis("channel_axis", axis, dims.len())? {
            0 => return cx.bad_attr("channel_axis", axis, "the first axis is that of the batch"),
            axis => Some(dims[axis]),
        },
    };
    for index in 1..3 {
        cx.check_same_dtype(index)?;
        let param = cx.tensor_of_rank(index, 1)?.dims;
        let (Some(channels), Some(&[count])) = (channels, param) else { continue };
        if cx.is_different(channels, count) {
            let what = format!("the channels of the data and argument {}", index + 1);
            return Err(cx.mismatch(&what, &[channels], &[count]));
        }
    }
    Ok(channels)
}
