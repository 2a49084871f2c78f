//! Products of matrices of bf16 whose right one is packed by pairs, as instructions for dot products read it.
//!
//! ```ir
//! %y = nn.bf16_dots(%x, %w) { columns = 30 }    bf16[n, m, 64], bf16[2, 32, 16, 2]  =>  f32[n, m, 30]
//! ```
//!
//! `w[c / 16, k / 2, c % 16, k % 2]` is the element in row k and column c. Sums are those of f32.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::byte_dots::{LANES, packed_product, rows_of, sums_of};
use super::cost::of_product;
use super::dots::multiply;
use crate::kernel::convert::convert;

/// Rows of a column that lie together.
const DEPTH: i64 = 2;

/// The product of matrices of bf16 and one that is packed in pairs of 16 columns, in f32
#[op(name = "nn.bf16_dots", args = 2, pattern = "out_fusable")]
pub struct Bf16Dots {
    /// how many columns the packed matrix has
    #[attr(min = 1)]
    columns: i64,
}

impl Operator for Bf16Dots {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        packed_product(cx, [DType::BF16, DType::BF16, DType::F32], DEPTH, self.columns)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let [x, w] = [convert(cx.arg(0)?, DType::F32)?, convert(cx.arg(1)?, DType::F32)?];
        let ((rows, depth), columns) = (rows_of(&x), self.columns as usize);
        let (lanes, pair) = (LANES as usize, DEPTH as usize);
        let packed = w.elements::<f32>();
        let at = |column: usize, k: usize| {
            let quad = column / lanes * (depth / pair) + k / pair;
            packed[(quad * lanes + column % lanes) * pair + k % pair]
        };
        let places = (0..columns).flat_map(|column| (0..depth).map(move |k| (column, k)));
        let weights: Vec<f32> = places.map(|(column, k)| at(column, k)).collect();
        let shape = [rows.iter().product(), columns, depth];
        let sums = multiply(&x.elements::<f32>(), &weights, shape, &[[0, 0]]);
        Ok(vec![Tensor::from_vec([rows, &[columns]].concat(), sums)])
    }
}

/// Sums of pairs, by blocks of columns; then each at its place.
#[rule(compute)]
fn program(_: &Bf16Dots, program: &mut Program) {
    sums_of(program, DType::F32, DEPTH);
}

/// A multiplication and an addition for each element of the right matrix, in each row.
#[rule(cost)]
fn cost(_: &Bf16Dots, at: &mut Site<'_>) -> Option<Cost> {
    let (_, dims) = at.tensor(at.arg(0))?;
    of_product(at, *dims.last()?)
}
