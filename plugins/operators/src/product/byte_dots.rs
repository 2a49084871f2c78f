//! Products of matrices of bytes whose right one is packed by quads, as instructions for dot products read it.
//!
//! ```ir
//! %y = nn.byte_dots(%x, %w) { columns = 30 }    u8[n, m, 64], i8[2, 16, 16, 4]  =>  i32[n, m, 30]
//! ```
//!
//! `w[c / 16, k / 4, c % 16, k % 4]` is the element in row k and column c. Rows are of u8 or of i8, as the processor's instructions read
//! them. Sums are those of i32, exact up to a depth of 65,792.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::program::Reducer;
use tenon_plugin_api::rule::prelude::*;

use super::cost::of_product;
use crate::kernel::convert::convert;

/// Columns that lie together, and rows of each.
pub(super) const LANES: i64 = 16;
pub(super) const DEPTH: i64 = 4;

/// The product of matrices of u8 or i8 and one of i8 that is packed in quads of 16 columns, in i32
#[op(name = "nn.byte_dots", args = 2, pattern = "out_fusable")]
pub struct ByteDots {
    /// how many columns the packed matrix has
    #[attr(min = 1)]
    columns: i64,
}

impl Operator for ByteDots {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        let x = bytes(cx, 0)?;
        packed_product(cx, [x, DType::I8, DType::I32], DEPTH, self.columns)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let (x, w) = (cx.arg(0)?, cx.arg(1)?);
        let (left, right) = (convert(x, DType::I32)?, w.elements::<i8>());
        let left = left.elements::<i32>();
        let (rows, depth) = rows_of(x);
        let columns = self.columns as usize;
        let quads = depth / DEPTH as usize;
        let at = |k: usize, c: usize| right[((c / 16 * quads + k / 4) * 16 + c % 16) * 4 + k % 4];
        let row = |row: usize| {
            let row = &left[row * depth..][..depth];
            (0..columns).map(move |column| {
                let terms = row.iter().enumerate();
                terms.fold(0i32, |sum, (k, &a)| sum.wrapping_add(a * i32::from(at(k, column))))
            })
        };
        let sums = (0..rows.iter().product()).flat_map(row).collect();
        Ok(vec![Tensor::from_vec([rows, &[columns]].concat(), sums)])
    }
}

/// The dtype of an argument of bytes with or without a sign.
pub(super) fn bytes(cx: &InferCx<'_>, index: usize) -> Result<DType> {
    match cx.tensor(index)?.dtype {
        found @ (DType::U8 | DType::I8) => Ok(found),
        found => Err(OpError::WrongDType { index, expected: "u8 or i8".into(), found }),
    }
}

/// The type of a product of elements of two types, whose sums have the third, with a matrix that is packed by so many rows of
/// 16 columns.
pub(super) fn packed_product(
    cx: &InferCx<'_>,
    dtypes: [DType; 3],
    together: i64,
    columns: i64,
) -> Result<Type> {
    let (x, w) = (cx.tensor(0)?, cx.tensor_of_rank(1, 4)?);
    for (index, (found, expected)) in
        [(x.dtype, dtypes[0]), (w.dtype, dtypes[1])].into_iter().enumerate()
    {
        if found != expected {
            let expected = expected.to_string();
            return Err(OpError::WrongDType { index, expected, found });
        }
    }
    let (Some(dims), Some(&[blocks, steps, lanes, few])) = (x.dims, w.dims) else {
        return Ok(cx.tensor_type(dtypes[2], None));
    };
    let Some((&depth, rows @ [_, ..])) = dims.split_last() else {
        return Err(cx.wrong_arg(0, "a tensor of at least two dimensions"));
    };
    let needed = cx.dim_mul(steps, cx.dim(together));
    for (have, want) in [(depth, needed), (lanes, cx.dim(LANES)), (few, cx.dim(together))] {
        if cx.is_different(have, want) {
            return Err(cx.mismatch("the depths of the matrices", &[have], &[want]));
        }
    }
    let fits = |blocks: i64| (blocks - 1) * LANES < columns && columns <= blocks * LANES;
    if cx.value(blocks).is_some_and(|blocks| !fits(blocks)) {
        return cx.bad_attr("columns", columns, "the last block of 16 has some of them");
    }
    Ok(cx.tensor_type(dtypes[2], Some(&[rows, &[cx.dim(columns)]].concat())))
}

/// The extents of all rows, and how long one is.
pub(super) fn rows_of(x: &Tensor) -> (&[usize], usize) {
    let (rows, depth) = x.shape().split_at(x.shape().len() - 1);
    (rows, depth[0])
}

/// Sums of quads, by blocks of columns; then each at its place.
#[rule(compute)]
fn program(_: &ByteDots, program: &mut Program) {
    sums_of(program, DType::I32, DEPTH);
}

/// The program of such a product.
pub(super) fn sums_of(program: &Program, dtype: DType, together: i64) {
    let (x, w, out) = (program.input(0), program.input(1), program.output(0));
    let (blocks, steps) = (w.shape()[0], w.shape()[1]);
    let [lanes, few] = [LANES, together].map(|extent| program.cx().dim(extent));
    let last = out.shape().len() - 1;
    let kept = [&out.shape()[..last], &[blocks, lanes]].concat();
    let sums = program.reduce("acc", Reducer::Sum, dtype, &kept, &[steps, few], |i, r| {
        let (rows, columns) = i.split_at(last);
        let left = x.at(&[rows, &[r[0] * together + r[1]]].concat()).cast(dtype);
        left * w.at(&[columns[0], r[0], columns[1], r[1]]).cast(dtype)
    });
    program.set(&out, |i| {
        let (rows, column) = (&i[..last], i[last]);
        sums.at(&[rows, &[column / LANES, column % LANES]].concat())
    });
}

/// A multiplication and an addition for each element of the right matrix, in each row.
#[rule(cost)]
fn cost(_: &ByteDots, at: &mut Site<'_>) -> Option<Cost> {
    let (_, dims) = at.tensor(at.arg(0))?;
    of_product(at, *dims.last()?)
}
