//! Convolution with kernels of three by three taps by the minimal filtering algorithms of Winograd.
//!
//! ```ir
//! %u = nn.winograd_weights(%w)                                 f32[8, 3, 3, 3]                    =>  f32[8, 3, 6, 6]
//! %y = nn.conv2d_winograd(%x, %u) { padding = [1, 1, 1, 1] }   f32[n, 3, 32, 32], f32[8, 3, 6, 6]  =>  f32[n, 8, 32, 32]
//! ```
//!
//! It is `nn.conv2d(%x, %w)`, computed in tiles of 4 by 4 places (or 2 by 2): where that takes 144 products for each pair of channels,
//! this takes 36, and sums before and behind them (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2016). In
//! exchange the weights are four times as large, and results are less exact, by up to some hundred-thousandths of the largest.

mod groups;
mod program;

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::convolution::images;
use super::winograd_weights::{TAPS, check_tile};
use crate::kernel::convert::convert;
use crate::kernel::moves::{parse, relayout};
use crate::kernel::parallel::fill;
use crate::kernel::window::Window;
use crate::program::layout_index::dim_extent;

/// Convolution with transformed kernels of 3x3 taps, in steps of one
#[op(name = "nn.conv2d_winograd", args = 2, pattern = "out_fusable")]
pub struct Conv2dWinograd {
    /// places along an axis that are computed together: 2 or 4
    #[attr(default = 4)]
    tile: i64,
    /// top, left, bottom, right
    #[attr(default = [0, 0, 0, 0])]
    padding: [i64; 4],
    /// NCHW, NCHW16c, …
    #[attr(default = "NCHW")]
    data_layout: Layout,
    /// OIHW, HWOI16i16o, …: of what `nn.winograd_weights` gives
    #[attr(default = "OIHW")]
    kernel_layout: Layout,
    /// data_layout when empty
    #[attr(default = "")]
    out_layout: String,
}

impl Operator for Conv2dWinograd {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        check_tile(cx, self.tile)?;
        let data_layout = cx.layout("data_layout", "NCHW")?;
        let kernel_layout = cx.layout("kernel_layout", "OIHW")?;
        let out_layout = match self.out_layout.as_str() {
            "" => data_layout.clone(),
            _ => cx.layout("out_layout", "NCHW")?,
        };
        let windows = Window::both(cx, [1, 1], self.padding, [1, 1])?;
        cx.check_float(0)?;
        cx.check_same_dtype(1)?;
        let dtype = cx.tensor(0)?.dtype;
        let data = cx.extents(0, &data_layout, b"NCHW")?;
        let kernel = cx.extents(1, &kernel_layout, b"OIHW")?;
        let (Some([n, c, h, w]), Some([o, i, points_h, points_w])) = (data, kernel) else {
            return Ok(cx.tensor_type(dtype, None));
        };
        let points = cx.dim(self.tile + TAPS as i64 - 1);
        if cx.is_different(points_h, points) || cx.is_different(points_w, points) {
            let what = "the points of the kernel";
            return Err(cx.mismatch(what, &[points_h, points_w], &[points, points]));
        }
        if cx.is_different(c, i) {
            return Err(cx.mismatch("the channels of data and kernel", &[c], &[i]));
        }
        let taps = cx.dim(TAPS as i64);
        let out_h = windows[0].out_dim(cx, h, taps, false)?;
        let out_w = windows[1].out_dim(cx, w, taps, false)?;
        images(cx, dtype, &out_layout, b"NCHW", [n, o, out_h, out_w])
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let (dtype, _) = cx.out()?;
        let out_layout = match self.out_layout.as_str() {
            "" => self.data_layout.clone(),
            layout => parse(layout)?,
        };
        let plain = parse("NCHW")?;
        let data = convert(&relayout(cx.arg(0)?, &self.data_layout, &plain)?, DType::F64)?;
        let kernel =
            convert(&relayout(cx.arg(1)?, &self.kernel_layout, &parse("OIHW")?)?, DType::F64)?;
        let out = convert(&self.convolve(&data, &kernel)?, dtype)?;
        Ok(vec![relayout(&out, &plain, &out_layout)?])
    }
}

impl Conv2dWinograd {
    /// The layout of the result.
    fn result_layout(&self) -> Option<Layout> {
        match self.out_layout.as_str() {
            "" => Some(self.data_layout.clone()),
            text => Layout::parse(text).ok(),
        }
    }

    /// The result in the plain layouts, in f64.
    fn convolve(&self, data: &Tensor, kernel: &Tensor) -> Result<Tensor> {
        let (&[batch, channels, height, width], &[outputs, _, points, _]) =
            (data.shape(), kernel.shape())
        else {
            return Err(OpError::Unsupported("tensors of four dimensions are expected".into()));
        };
        let padding = self.padding.map(|padding| padding as usize);
        let out_h = height + padding[0] + padding[2] + 1 - TAPS;
        let out_w = width + padding[1] + padding[3] + 1 - TAPS;
        let tile = self.tile as usize;
        let (tiles_h, tiles_w) = (out_h.div_ceil(tile), out_w.div_ceil(tile));
        let (x, u) = (data.elements::<f64>(), kernel.elements::<f64>());
        let (of_data, of_result) = (of_data(self.tile), of_result(self.tile));
        let square = points * points;
        // For each channel of an image and each tile, what the data is at the points.
        let mut values = vec![0.0; batch * channels * tiles_h * tiles_w * square];
        fill(&mut values, tiles_h * tiles_w * square, &|plane, values| {
            let x = &x[plane * height * width..][..height * width];
            for (tile_at, values) in values.chunks_exact_mut(square).enumerate() {
                let (top, left) = (tile_at / tiles_w * tile, tile_at % tiles_w * tile);
                let at = |y: usize, x_at: usize| {
                    let y = (top + y).checked_sub(padding[0]).filter(|&y| y < height);
                    let x_at = (left + x_at).checked_sub(padding[1]).filter(|&x| x < width);
                    y.zip(x_at).map_or(0.0, |(y, x_at)| x[y * width + x_at])
                };
                both_sides(&of_data, points, at, |y, x, value| values[y * points + x] = value);
            }
        });
        let mut out = vec![0.0; batch * outputs * out_h * out_w];
        fill(&mut out, out_h * out_w, &|plane, out| {
            let (image, output) = (plane / outputs, plane % outputs);
            for tile_at in 0..tiles_h * tiles_w {
                let mut product = vec![0.0; square];
                for channel in 0..channels {
                    let first =
                        ((image * channels + channel) * tiles_h * tiles_w + tile_at) * square;
                    let u = &u[(output * channels + channel) * square..][..square];
                    let values = &values[first..first + square];
                    product
                        .iter_mut()
                        .zip(u.iter().zip(values))
                        .for_each(|(sum, (u, v))| *sum += u * v);
                }
                let (top, left) = (tile_at / tiles_w * tile, tile_at % tiles_w * tile);
                let at = |y: usize, x: usize| product[y * points + x];
                both_sides(&of_result, points, at, |y, x, value| {
                    if top + y < out_h && left + x < out_w {
                        out[(top + y) * out_w + left + x] = value;
                    }
                });
            }
        });
        Ok(Tensor::from_vec(vec![batch, outputs, out_h, out_w], out))
    }
}

/// `M d Mᵀ` of a square of so many elements.
fn both_sides(
    matrix: &[Vec<f64>],
    extent: usize,
    at: impl Fn(usize, usize) -> f64,
    mut set: impl FnMut(usize, usize, f64),
) {
    for (y, row) in matrix.iter().enumerate() {
        let half: Vec<f64> =
            (0..extent).map(|x| (0..extent).map(|k| row[k] * at(k, x)).sum()).collect();
        for (x, row) in matrix.iter().enumerate() {
            set(y, x, row.iter().zip(&half).map(|(m, value)| m * value).sum());
        }
    }
}

/// The matrix `Bᵀ`.
fn of_data(tile: i64) -> Vec<Vec<f64>> {
    let rows: &[&[f64]] = match tile {
        2 => &[
            &[-1.0, 0.0, 1.0, 0.0],
            &[0.0, 1.0, 1.0, 0.0],
            &[0.0, -1.0, 1.0, 0.0],
            &[0.0, -1.0, 0.0, 1.0],
        ],
        _ => &[
            &[4.0, 0.0, -5.0, 0.0, 1.0, 0.0],
            &[0.0, -4.0, -4.0, 1.0, 1.0, 0.0],
            &[0.0, 4.0, -4.0, -1.0, 1.0, 0.0],
            &[0.0, -2.0, -1.0, 2.0, 1.0, 0.0],
            &[0.0, 2.0, -1.0, -2.0, 1.0, 0.0],
            &[0.0, 4.0, 0.0, -5.0, 0.0, 1.0],
        ],
    };
    rows.iter().map(|row| row.to_vec()).collect()
}

/// The matrix `Aᵀ`.
fn of_result(tile: i64) -> Vec<Vec<f64>> {
    let rows: &[&[f64]] = match tile {
        2 => &[&[1.0, 1.0, 1.0, 0.0], &[0.0, 1.0, -1.0, 1.0]],
        _ => &[
            &[1.0, 1.0, 1.0, 1.0, 1.0, 0.0],
            &[0.0, 1.0, -1.0, 2.0, -2.0, 0.0],
            &[0.0, 1.0, 1.0, 4.0, 4.0, 0.0],
            &[0.0, 1.0, -1.0, 8.0, -8.0, 1.0],
        ],
    };
    rows.iter().map(|row| row.to_vec()).collect()
}

/// Tiles of images whose size is known, or all tiles in groups.
#[rule(compute)]
fn program(op: &Conv2dWinograd, program: &mut Program) -> Option<()> {
    let layout = op.result_layout()?;
    let shape = program.output(0).shape().to_vec();
    let is_known = |axis| program.dim_value(dim_extent(program, &layout, &shape, axis)).is_some();
    if [b'H', b'W'].into_iter().all(is_known) {
        program::in_images(op, program)
    } else {
        groups::in_groups(op, program)
    }
}
