//! Convolution backwards: what each element gives to the places that a kernel reaches from it.

use tenon_plugin_api::rule::prelude::*;

use super::spatial::{Spatial, check};
use super::steps::{check_equal, extent_of, reshape_to};

/// `ConvTranspose`: a product gives each element times the kernels, and `col2im` adds up what meets at a place.
///
/// ```text
/// columns[n, o * taps, places] = sum over c of w[c, o * taps] x[n, c, places]
/// y = col2im(columns)
/// ```
#[rule(import.onnx, key = "ConvTranspose", since = 1)]
fn conv_transpose(node: &mut Node<'_>) -> Outputs {
    node.check_arity(2, 3)?;
    let (x, weight) = (node.input(0)?, node.input(1)?);
    let (dims, kernel) = (node.dims(x)?, node.dims(weight)?);
    let rank = dims.len().saturating_sub(2);
    if rank == 0 || kernel.len() != dims.len() {
        return invalid(format!("data of {} dimensions, kernels of {}", dims.len(), kernel.len()));
    }
    check_equal(node, [dims[1], kernel[0]], "the channels of data and kernel")?;
    let groups = node.int_or("group", 1)?;
    let channels = extent_of(node, kernel[0], "number of channels")?;
    if groups < 1 || channels % groups != 0 {
        return invalid(format!("{groups} groups of {channels} channels"));
    }
    let extents = match node.ints("kernel_shape")? {
        Some(extents) => extents,
        None => {
            let extent = |&dim| extent_of(node, dim, "extent of a kernel");
            kernel[2..].iter().map(extent).collect::<Result<_, _>>()?
        }
    };
    let (window, image) = placed(node, &dims[2..], extents)?;

    let cx = node.cx();
    let per_group = kernel[1];
    let taps = window.kernel.iter().try_fold(1i64, |all, &each| all.checked_mul(each));
    let Some(taps) = taps else { return unsupported("kernels of this size") };
    let rows = cx.dim_mul(per_group, cx.dim(taps));
    let inputs = cx.dim(channels / groups);
    let places = cx.dim_product(&dims[2..]);
    let (count, outputs) = (cx.dim(groups), cx.dim_mul(per_group, cx.dim(groups)));
    let all_rows = cx.dim_mul(rows, count);
    let x = reshape_to(node, x, &[dims[0], count, inputs, places])?;
    let weight = reshape_to(node, weight, &[count, inputs, rows])?;
    let columns = match node.terms().dim_value(places) {
        Some(_) => node.call("matmul", &[weight, x], &[("transpose_a", true.into())])?,
        // Products are fast whose columns are known: those of the transposed one are.
        None => {
            let rows = node.call("matmul", &[x, weight], &[("transpose_a", true.into())])?;
            node.call("transpose", &[rows], &[("axes", vec![0, 1, 3, 2].into())])?
        }
    };
    let apart: Vec<Dim> = [dims[0], all_rows].iter().chain(&dims[2..]).copied().collect();
    let columns = reshape_to(node, columns, &apart)?;
    let attrs = [
        ("block_shape", window.kernel.clone().into()),
        ("strides", window.strides.clone().into()),
        ("padding", window.pads[0].clone().into()),
        ("dilation", window.dilations.into()),
    ];
    let image = node.shape(&image)?;
    let mut y = node.call("col2im", &[columns, image], &attrs)?;
    if let Some(bias) = node.optional(2) {
        let mut dims = vec![node.cx().dim(1); rank + 2];
        dims[1] = outputs;
        let bias = reshape_to(node, bias, &dims)?;
        y = node.apply("add", &[y, bias])?;
    }
    Ok(vec![y])
}

/// How the kernel moves over the result, and the spatial extents of this.
fn placed(node: &Node<'_>, data: &[Dim], kernel: Vec<i64>) -> Result<(Spatial, Vec<Dim>), Problem> {
    let (rank, cx) = (data.len(), node.cx());
    let list = |name: &str, count: usize, least: i64| -> Result<Option<Vec<i64>>, Problem> {
        let list = node.ints(name)?;
        list.iter().try_for_each(|list| check(name, list, count, least))?;
        Ok(list)
    };
    check("kernel_shape", &kernel, rank, 1)?;
    let strides = list("strides", rank, 1)?.unwrap_or_else(|| vec![1; rank]);
    let dilations = list("dilations", rank, 1)?.unwrap_or_else(|| vec![1; rank]);
    let more = list("output_padding", rank, 0)?.unwrap_or_else(|| vec![0; rank]);
    let pads = list("pads", 2 * rank, 0)?.unwrap_or_else(|| vec![0; 2 * rank]);
    let auto = node.text("auto_pad", "NOTSET")?;
    let wanted = match node.ints("output_shape")? {
        // Some models name batch and channels as well.
        Some(shape) if shape.len() == rank + 2 => Some(shape[2..].to_vec()),
        Some(shape) => Some(shape),
        None => None,
    };
    if let Some(wanted) = &wanted {
        check("output_shape", wanted, rank, 0)?;
    }
    let mut window = Spatial { kernel, strides, dilations, pads: [vec![0; rank], vec![0; rank]] };
    let mut image = Vec::with_capacity(rank);
    for axis in 0..rank {
        let (stride, reach) = (window.strides[axis], window.reach(axis));
        let moved = cx.dim_mul(cx.dim_sub(data[axis], cx.dim(1)), cx.dim(stride));
        // Without any padding.
        let full = cx.dim_add(moved, cx.dim(more[axis] + reach));
        let size = match (&wanted, auto.as_str()) {
            (Some(wanted), _) => Some(cx.dim(wanted[axis])),
            (None, "SAME_UPPER" | "SAME_LOWER") => Some(cx.dim_mul(data[axis], cx.dim(stride))),
            (None, "NOTSET" | "VALID") => None,
            (None, other) => return invalid(format!("its attribute `auto_pad` is {other:?}")),
        };
        let Some(size) = size else {
            let [before, after] = match auto.as_str() {
                "NOTSET" => [pads[axis], pads[rank + axis]],
                _ => [0, 0],
            };
            window.pads[0][axis] = before;
            image.push(cx.dim_sub(full, cx.dim(before + after)));
            continue;
        };
        let total = cx.dim_sub(full, size);
        let Some(total) = node.terms().dim_value(total) else {
            return unsupported("an output_shape of a symbolic dimension");
        };
        let total = total.max(0);
        window.pads[0][axis] = match auto.as_str() {
            "SAME_UPPER" => total / 2,
            _ => total - total / 2,
        };
        image.push(size);
    }
    Ok((window, image))
}
