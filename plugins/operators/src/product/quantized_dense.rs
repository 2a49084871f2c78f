//! The product of rows of data with a weight that is kept as integers on scales.
//!
//! ```ir
//! %y = nn.quantized_dense(%x, %w, %s) { columns = 30 }    f32[n, 64], i8[2, 64, 16], f32[2, 30]  =>  f32[n, 30]
//! ```
//!
//! `w[c / 16, k, c % 16] * s[k / 32, c]` is the weight in row k and column c: as many rows of scales as there are blocks of the
//! depth. Of weights of four bits two are in an element, that of the even k in its lower half. Weights become floats in
//! registers, so what is read of memory is as small as it is stored.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::program::{Buffer, Reducer, Scalar};
use tenon_plugin_api::rule::prelude::*;

use super::cost::of_product;
use super::dots::multiply;
use crate::kernel::convert::convert;

/// x * w, over the last axis of x, with w in integers that are packed in blocks of columns, and scales of blocks of its rows
#[op(name = "nn.quantized_dense", args = 3, pattern = "out_fusable")]
pub struct QuantizedDense {
    /// how many columns the packed weight has
    #[attr(min = 1)]
    columns: i64,
    /// of a weight: 8, or 4
    #[attr(default = 8)]
    bits: i64,
}

impl QuantizedDense {
    /// Weights in an element.
    fn in_element(&self) -> i64 {
        8 / self.bits
    }
}

impl Operator for QuantizedDense {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        let (x, w, s) = (cx.tensor(0)?, cx.tensor_of_rank(1, 3)?, cx.tensor_of_rank(2, 2)?);
        if !x.dtype.is_float() {
            return Err(cx.wrong_arg(0, "floats"));
        }
        for (index, found, expected) in [(1, w.dtype, DType::I8), (2, s.dtype, DType::F32)] {
            if found != expected {
                let expected = expected.to_string();
                return Err(OpError::WrongDType { index, expected, found });
            }
        }
        if self.bits != 8 && self.bits != 4 {
            return cx.bad_attr("bits", self.bits, "it is 8 or 4");
        }
        let (Some(x_dims), Some(&[blocks, elements, lanes]), Some(&[groups, columns])) =
            (x.dims, w.dims, s.dims)
        else {
            return Ok(cx.tensor_type(x.dtype, None));
        };
        let Some((&depth, rows)) = x_dims.split_last() else {
            return Err(cx.wrong_arg(0, "a tensor of at least one dimension"));
        };
        let weights = cx.dim_mul(elements, cx.dim(self.in_element()));
        for (what, have, want) in [
            ("the depths of data and weight", depth, weights),
            ("the columns of the scales", columns, cx.dim(self.columns)),
        ] {
            if cx.is_different(have, want) {
                return Err(cx.mismatch(what, &[have], &[want]));
            }
        }
        let known = [blocks, lanes, weights, groups].map(|dim| cx.value(dim));
        let [Some(blocks), Some(lanes), Some(weights), Some(groups)] = known else {
            return cx.unsupported("a weight of unknown extents");
        };
        if !((blocks - 1) * lanes < self.columns && self.columns <= blocks * lanes) {
            return cx.bad_attr("columns", self.columns, "the last block has some of them");
        }
        if groups < 1 || weights % (groups * self.in_element()) != 0 {
            return cx.unsupported(format!("{weights} weights of a column in {groups} blocks"));
        }
        let dims: Vec<Dim> = rows.iter().copied().chain([cx.dim(self.columns)]).collect();
        Ok(cx.tensor_type(x.dtype, Some(&dims)))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let (dtype, shape) = cx.out()?;
        let x = convert(cx.arg(0)?, DType::F32)?;
        let (w, s) = (cx.arg(1)?, cx.arg(2)?);
        let (codes, scales) = (w.elements::<i8>(), s.elements::<f32>());
        let (elements, lanes) = (w.shape()[1], w.shape()[2]);
        let (columns, of_element) = (self.columns as usize, self.in_element() as usize);
        let depth = elements * of_element;
        let block = depth / s.shape()[0];
        let weight = |column: usize, k: usize| {
            let at = (column / lanes * elements + k / of_element) * lanes + column % lanes;
            let half = 8 - self.bits * (1 + (k % of_element) as i64);
            let code = (codes[at] << half) >> (8 - self.bits);
            f32::from(code) * scales[k / block * columns + column]
        };
        let weights: Vec<f32> = (0..columns)
            .flat_map(|column| (0..depth).map(move |k| (column, k)))
            .map(|(column, k)| weight(column, k))
            .collect();
        let rows = shape[..shape.len() - 1].iter().product();
        let out = multiply(&x.elements::<f32>(), &weights, [rows, columns, depth], &[[0, 0]]);
        Ok(vec![convert(&Tensor::from_vec(shape.to_vec(), out), dtype)?])
    }
}

/// One element after the other. Where a column has one scale, its sum is scaled; of one row, that of each block; else each weight.
#[rule(compute)]
fn program(op: &QuantizedDense, program: &mut Program) -> Result<()> {
    let (x, w, s) = (program.input(0), program.input(1), program.input(2));
    let (out, cx) = (program.output(0), program.cx());
    let known = |dim| cx.terms().dim_value(dim);
    let [_, elements, lanes] = w.shape() else { unreachable!("a weight has three axes") };
    let (Some(elements), Some(lanes)) = (known(*elements), known(*lanes)) else {
        return Err(OpError::Unsupported("a weight of unknown extents".into()));
    };
    let Some(groups) = known(s.shape()[0]) else {
        return Err(OpError::Unsupported("scales of unknown extents".into()));
    };
    let (of_group, of_element) = (elements / groups, op.in_element());
    let terms = Terms { x, w, lanes, of_group, of_element };
    let is_one_row = terms
        .x
        .shape()
        .split_last()
        .is_some_and(|(_, rows)| rows.iter().all(|&dim| known(dim) == Some(1)));
    let sums = if is_one_row && groups > 1 {
        let (&columns, rows) = out.shape().split_last().expect("the result has columns");
        let shape = [rows, &[s.shape()[0], columns]].concat();
        let reduced = [of_group, of_element];
        let parts = program.reduce("parts", Reducer::Sum, DType::F32, &shape, &reduced, |i, r| {
            let [row @ .., group, column] = i else { unreachable!("blocks have columns") };
            let [data, weight] = terms.at(row, *column, [*group, r[0], r[1]]);
            data * weight
        });
        program.reduce("acc", Reducer::Sum, DType::F32, out.shape(), &[groups], |i, r| {
            let (&column, row) = i.split_last().expect("the result has columns");
            parts.at(&[row, &[r[0], column]].concat()) * s.at(&[r[0], column])
        })
    } else {
        let reduced = [groups, of_group, of_element];
        program.reduce("acc", Reducer::Sum, DType::F32, out.shape(), &reduced, |i, r| {
            let (&column, row) = i.split_last().expect("the result has columns");
            let [data, weight] = terms.at(row, column, [r[0], r[1], r[2]]);
            data * if groups == 1 { weight } else { weight * s.at(&[r[0], column]) }
        })
    };
    program.set(&out, |i| match groups {
        1 => sums.at(i) * s.at(&[program.index(0), i[i.len() - 1]]),
        _ => sums.at(i),
    });
    Ok(())
}

/// Data and weight, whose products an element of the result is the sum of.
struct Terms<'p> {
    x: Buffer<'p>,
    w: Buffer<'p>,
    /// Columns side by side in the weight.
    lanes: i64,
    /// Elements of the weight in a block of a column.
    of_group: i64,
    /// Weights in an element.
    of_element: i64,
}

impl<'p> Terms<'p> {
    /// What is multiplied with one weight, and that without its scale: a part of an element of a block.
    fn at(
        &self,
        row: &[Scalar<'p>],
        column: Scalar<'p>,
        place: [Scalar<'p>; 3],
    ) -> [Scalar<'p>; 2] {
        let [group, at, part] = place;
        let element = group * self.of_group + at;
        let data = self.x.wide(&[row, &[element * self.of_element + part]].concat());
        let code = self.w.at(&[column / self.lanes, element, column % self.lanes]);
        [data, if self.of_element == 1 { code.cast(DType::F32) } else { half(code, part) }]
    }
}

/// The weight in a half of an element: the half goes to the top, and comes down with its sign.
fn half<'p>(code: Scalar<'p>, which: Scalar<'p>) -> Scalar<'p> {
    let program = code.program();
    let places = program.int(DType::I32, 28) - which.cast(DType::I32) * 4;
    let top = code.cast(DType::I32).call_with("shl", places);
    top.call_with("shr", program.int(DType::I32, 28)).cast(DType::F32)
}

/// For each element of the result a multiplication and an addition for each element of a row.
#[rule(cost)]
fn cost(_: &QuantizedDense, at: &mut Site<'_>) -> Option<Cost> {
    let (_, data) = at.tensor(at.arg(0))?;
    of_product(at, *data.last()?)
}
