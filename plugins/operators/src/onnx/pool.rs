//! Pooling over windows, and over everything.

use tenon_plugin_api::rule::prelude::*;

use super::spatial::{Around, Spatial};
use super::steps::reshape_to;
use crate::movement::pad::with_around;

/// Pooling by operator `op` over two axes. Windows over three are windows over the last two, then over the first: largest elements are
/// the largest of the largest, and means the means of means, as each axis has its own counts.
pub(crate) fn pool(node: &mut Node<'_>, op: &'static str) -> Outputs {
    let x = node.input(0)?;
    let dims = node.dims(x)?;
    let kernel = kernel_of(node, dims.len())?;
    let (window, around) = Spatial::with_open(node, &dims[2..], kernel)?;
    let mut attrs = vec![("ceil_mode", AttrValue::from(node.flag("ceil_mode", false)?))];
    let is_mean = op == "nn.avg_pool2d";
    let counts_padding = is_mean && node.flag("count_include_pad", false)?;
    if is_mean {
        // What is put around is counted, and its part is divided out below.
        attrs.push(("count_include_pad", (counts_padding || !around.is_empty()).into()));
    }
    let beyond = if is_mean { 0.0 } else { least(node.dtype(x)?) };
    let pooling = Pooling { op, attrs, window, around, beyond };
    let y = pooling.of(node, x, &dims)?;
    if !is_mean || counts_padding || pooling.around.is_empty() {
        return Ok(vec![y]);
    }
    let one = node.cx().dim(1);
    let dims = [&[one; 2], &dims[2..]].concat();
    let shape = node.shape(&dims)?;
    let dtype = node.dtype(x)?.to_string();
    let ones = node.call("full", &[shape], &[("value", 1.0.into()), ("dtype", dtype.into())])?;
    let parts = pooling.of(node, ones, &dims)?;
    Ok(vec![node.apply("divide", &[y, parts])?])
}

/// A pooling of which some axes get as much around them as their extents say.
struct Pooling {
    op: &'static str,
    attrs: Vec<(&'static str, AttrValue)>,
    window: Spatial,
    around: Vec<Around>,
    /// What is put around.
    beyond: f64,
}

impl Pooling {
    /// What it makes of data of these dimensions.
    fn of(&self, node: &mut Node<'_>, mut x: Value, dims: &[Dim]) -> Result<Value, Problem> {
        let mut dims = dims.to_vec();
        for &(axis, around) in &self.around {
            x = with_around(node, x, 2 + axis, around, self.beyond)?;
            dims[2 + axis] = around[1];
        }
        by_pairs(node, x, &dims, &self.window, &mut |node, x, pair| {
            let mut attrs = [self.attrs.as_slice(), &pair.attrs()].concat();
            attrs.push(("pool_size", pair.kernel.to_vec().into()));
            node.call(self.op, &[x], &attrs)
        })
    }
}

/// What is no larger than any element of a type.
fn least(dtype: DType) -> f64 {
    if dtype.is_float() { f64::NEG_INFINITY } else { dtype.int_bounds().0 as f64 }
}

/// The dimensions of the data, the windows of a node over them, and what is to come around those that are not known.
pub(crate) fn windows(
    node: &Node<'_>,
    x: Value,
) -> Result<(Vec<Dim>, Spatial, Vec<Around>), Problem> {
    let dims = node.dims(x)?;
    let kernel = kernel_of(node, dims.len())?;
    let (window, around) = Spatial::with_open(node, &dims[2..], kernel)?;
    Ok((dims, window, around))
}

/// The extents of the windows over data of so many dimensions.
fn kernel_of(node: &Node<'_>, rank: usize) -> Result<Vec<i64>, Problem> {
    if rank < 3 {
        return invalid(format!("its data have {rank} dimensions"));
    }
    match node.ints("kernel_shape")? {
        Some(kernel) => Ok(kernel),
        None => invalid("its attribute `kernel_shape` is missing"),
    }
}

/// Windows over two axes.
pub(crate) struct Pair {
    pub(crate) kernel: [i64; 2],
    pub(crate) strides: [i64; 2],
    pub(crate) dilation: [i64; 2],
    /// Top, left, bottom, right.
    pub(crate) padding: [i64; 4],
}

impl Pair {
    /// How they move, as attributes.
    pub(crate) fn attrs(&self) -> Vec<(&'static str, AttrValue)> {
        vec![
            ("strides", self.strides.to_vec().into()),
            ("dilation", self.dilation.to_vec().into()),
            ("padding", self.padding.to_vec().into()),
        ]
    }
}

/// What windows make of data, axis by axis but for the last two, which are one step: `f` works on images of two axes, of which an axis
/// before others is the first, with all of these as the second, and the only one the second.
pub(crate) fn by_pairs(
    node: &mut Node<'_>,
    x: Value,
    dims: &[Dim],
    window: &Spatial,
    f: &mut dyn FnMut(&mut Node<'_>, Value, &Pair) -> Result<Value, Problem>,
) -> Result<Value, Problem> {
    let rank = window.kernel.len();
    let one = node.cx().dim(1);
    let mut pooled = dims.to_vec();
    let mut y = x;
    let last = rank.min(2);
    let groups =
        std::iter::once(rank - last..rank).chain((0..rank - last).rev().map(|axis| axis..axis + 1));
    for axes in groups {
        let first = axes.start;
        let pair = |list: &[i64], fill: i64| match (axes.len(), rank) {
            (2, _) => [list[first], list[first + 1]],
            (_, 1) => [fill, list[first]],
            _ => [list[first], fill],
        };
        let [[top, left], [bottom, right]] = [0, 1].map(|side| pair(&window.pads[side], 0));
        let pair = Pair {
            kernel: pair(&window.kernel, 1),
            strides: pair(&window.strides, 1),
            dilation: pair(&window.dilations, 1),
            padding: [top, left, bottom, right],
        };
        if (pair.kernel, pair.strides, pair.padding) == ([1, 1], [1, 1], [0; 4]) {
            continue;
        }
        let (before, behind) = (2 + axes.start, 2 + axes.end);
        let all = |dims: &[Dim]| node.cx().dim_product(dims);
        // The images, and what an axis by itself is beside.
        let image = match (axes.len(), rank) {
            (2, 2) => None,
            (2, _) => Some([all(&pooled[1..before]), pooled[before], pooled[before + 1]]),
            (_, 1) => Some([pooled[1], one, pooled[2]]),
            _ => Some([all(&pooled[1..before]), pooled[before], all(&pooled[behind..])]),
        };
        if let Some([channels, height, width]) = image {
            y = reshape_to(node, y, &[pooled[0], channels, height, width])?;
        }
        y = f(node, y, &pair)?;
        let found = node.dims(y)?;
        let places = if rank == 1 { 3.. } else { 2.. };
        for (place, axis) in places.zip(axes) {
            pooled[2 + axis] = found[place];
        }
        if image.is_some() {
            y = reshape_to(node, y, &pooled)?;
        }
    }
    Ok(y)
}

pub(crate) fn global(node: &mut Node<'_>, pool: &'static str, reduce: &'static str) -> Outputs {
    let x = node.input(0)?;
    let rank = node.dims(x)?.len();
    if rank == 4 {
        return Ok(vec![node.apply(pool, &[x])?]);
    }
    let axes: Vec<i64> = (2..rank as i64).collect();
    if axes.is_empty() {
        return invalid(format!("its data have {rank} dimensions"));
    }
    let attrs = [("axis", axes.into()), ("keepdims", true.into())];
    Ok(vec![node.call(reduce, &[x], &attrs)?])
}
