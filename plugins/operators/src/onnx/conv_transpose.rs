//! Convolution backwards: what each element gives to the places that a kernel reaches from it.

use tenon_plugin_api::rule::prelude::*;

use super::spatial::check;
use super::steps::{check_equal, not_below_zero, reshape_to};

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
    let left = node.cx().dim_floor_mod(kernel[0], node.cx().dim(groups.max(1)));
    if groups < 1 || node.terms().dim_value(left).is_some_and(|left| left != 0) {
        let channels = node.terms().dim_text(kernel[0]);
        return invalid(format!("{groups} groups of {channels} channels"));
    }
    let cx = node.cx();
    let taps = match node.ints("kernel_shape")? {
        Some(extents) => extents.into_iter().map(|extent| cx.dim(extent)).collect(),
        None => kernel[2..].to_vec(),
    };
    let placed = Placed::of(node, &dims[2..], &taps)?;

    let cx = node.cx();
    let per_group = kernel[1];
    let rows = cx.dim_mul(per_group, cx.dim_product(&taps));
    let inputs = cx.dim_floor_div(kernel[0], cx.dim(groups));
    let places = cx.dim_product(&dims[2..]);
    let (count, outputs) = (cx.dim(groups), cx.dim_mul(per_group, cx.dim(groups)));
    let x = reshape_to(node, x, &[dims[0], count, inputs, places])?;
    let weight = reshape_to(node, weight, &[count, inputs, rows])?;
    let columns = node.call("matmul", &[weight, x], &[("transpose_a", true.into())])?;
    let mut y = placed.put_together(node, columns, [dims[0], outputs], (&taps, &dims[2..]))?;
    if let Some(bias) = node.optional(2) {
        let mut dims = vec![node.cx().dim(1); rank + 2];
        dims[1] = outputs;
        let bias = reshape_to(node, bias, &dims)?;
        y = node.apply("add", &[y, bias])?;
    }
    Ok(vec![y])
}

/// How the kernel moves over the result.
struct Placed {
    strides: Vec<i64>,
    dilations: Vec<i64>,
    /// What is cut off before each axis.
    pads: Vec<i64>,
    /// The spatial extents of what is added up.
    image: Vec<Dim>,
    /// Where the result begins in it, and its extents, if a call says what is cut off.
    part: Option<[Vec<Dim>; 2]>,
}

impl Placed {
    /// What a node says of kernels of extents `taps` over `data`, the spatial extents.
    fn of(node: &Node<'_>, data: &[Dim], taps: &[Dim]) -> Result<Self, Problem> {
        let (rank, cx) = (data.len(), node.cx());
        let list = |name: &str, count: usize, least: i64| -> Result<Option<Vec<i64>>, Problem> {
            let list = node.ints(name)?;
            list.iter().try_for_each(|list| check(name, list, count, least))?;
            Ok(list)
        };
        check_taps(node, taps, rank)?;
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
        let (mut this, mut sizes) = (Self::unpadded(strides, dilations), Vec::with_capacity(rank));
        for axis in 0..rank {
            let stride = cx.dim(this.strides[axis]);
            let moved = cx.dim_mul(cx.dim_sub(data[axis], cx.dim(1)), stride);
            let reach = cx.dim_mul(cx.dim_sub(taps[axis], cx.dim(1)), cx.dim(this.dilations[axis]));
            // Without any padding.
            let full = cx.dim_sum(&[(moved, 1), (reach, 1), (cx.dim(more[axis] + 1), 1)]);
            let size = match (&wanted, auto.as_str()) {
                (Some(wanted), _) => cx.dim(wanted[axis]),
                (None, "SAME_UPPER" | "SAME_LOWER") => cx.dim_mul(data[axis], stride),
                (None, "NOTSET") => {
                    this.pads[axis] = pads[axis];
                    cx.dim_sub(full, cx.dim(pads[axis] + pads[rank + axis]))
                }
                (None, "VALID") => full,
                (None, other) => return invalid(format!("its attribute `auto_pad` is {other:?}")),
            };
            let is_padded = wanted.is_some() || auto.starts_with("SAME");
            if is_padded {
                this.pad_to(node, axis, [full, size], auto == "SAME_UPPER");
            } else {
                this.image.push(size);
            }
            sizes.push(size);
        }
        if let Some([_, extents]) = &mut this.part {
            *extents = sizes;
        }
        Ok(this)
    }

    fn unpadded(strides: Vec<i64>, dilations: Vec<i64>) -> Self {
        let pads = vec![0; strides.len()];
        Self { strides, dilations, pads, image: Vec::new(), part: None }
    }

    /// Cuts off what is too much, the odd one at the end where `is_upper`.
    fn pad_to(&mut self, node: &Node<'_>, axis: usize, [full, size]: [Dim; 2], is_upper: bool) {
        let cx = node.cx();
        let total = cx.dim_sub(full, size);
        if let Some(total) = node.terms().dim_value(total) {
            let total = total.max(0);
            self.pads[axis] = if is_upper { total / 2 } else { total - total / 2 };
            return self.image.push(size);
        }
        let odd = cx.dim_add(not_below_zero(node, total), cx.dim(i64::from(!is_upper)));
        let rank = self.pads.len();
        let [first, _] = self.part.get_or_insert_with(|| [vec![cx.dim(0); rank], Vec::new()]);
        first[axis] = cx.dim_floor_div(odd, cx.dim(2));
        self.image.push(cx.dim_max(full, size));
    }

    /// The result, of what each place of the data gives to those that the kernels reach.
    fn put_together(
        self,
        node: &mut Node<'_>,
        columns: Value,
        [batch, channels]: [Dim; 2],
        (taps, places): (&[Dim], &[Dim]),
    ) -> Result<Value, Problem> {
        let mut attrs = vec![
            ("strides", self.strides.into()),
            ("padding", self.pads.into()),
            ("dilation", self.dilations.into()),
        ];
        let known: Option<Vec<i64>> = taps.iter().map(|&dim| node.terms().dim_value(dim)).collect();
        let apart = match known {
            Some(block) => {
                attrs.push(("block_shape", block.into()));
                let rows = node.cx().dim_mul(channels, node.cx().dim_product(taps));
                [&[batch, rows], places].concat()
            }
            None => [&[batch, channels], taps, places].concat(),
        };
        let columns = reshape_to(node, columns, &apart)?;
        let image = node.shape(&self.image)?;
        let y = node.call("col2im", &[columns, image], &attrs)?;
        let Some([first, extents]) = self.part else { return Ok(y) };
        let zero = node.cx().dim(0);
        let first = node.known(&Known::vector([&[zero, zero], first.as_slice()].concat()))?;
        let extents = node.shape(&[&[batch, channels], extents.as_slice()].concat())?;
        node.apply("dynamic_slice", &[y, first, extents])
    }
}

/// Refuses kernels whose extents are known and make no sense.
fn check_taps(node: &Node<'_>, taps: &[Dim], rank: usize) -> Result<(), Problem> {
    let known: Vec<i64> =
        taps.iter().map(|&dim| node.terms().dim_value(dim).unwrap_or(1)).collect();
    check("kernel_shape", &known, rank, 1)?;
    match known.iter().try_fold(1i64, |all, &each| all.checked_mul(each)) {
        Some(_) => Ok(()),
        None => unsupported("kernels of this size"),
    }
}
