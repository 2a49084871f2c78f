//! The product of rows of data with rows of a weight, which may be packed.
//!
//! ```ir
//! %y = nn.dense(%x, %w)    f32[n, 64], f32[10, 64]  =>  f32[n, 10]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_number;

use super::cost::of_product;
use super::dots::multiply;
use super::factors::{check_dtypes, in_one_dtype, narrowed, of_weight};
use super::programs;
use super::transposed::product;
use crate::kernel::convert::convert;
use crate::kernel::moves::{parse, relayout};
use crate::precision::gains_by_precision;

/// x * transpose(w), over the last axis of x; with data of f32 the weight may be f16 or bf16
#[op(name = "nn.dense", args = 2, pattern = "out_fusable")]
pub struct Dense {
    /// NK, or packed: NK16n, …
    #[attr(default = "NK")]
    weight_layout: Layout,
    /// N, where packing rounded it up
    units: Option<i64>,
    /// element type of the result: that of the data when empty, or f32 for f16 and bf16
    #[attr(default = "")]
    out_dtype: String,
}

impl Operator for Dense {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        let layout = cx.layout("weight_layout", "NK")?;
        check_dtypes(cx)?;
        let x = cx.tensor(0)?;
        let weight = cx.extents(1, &layout, b"NK")?;
        let dtype = cx.product_dtype("out_dtype", &self.out_dtype)?;
        let (Some(dims), Some([packed, depth])) = (x.dims, weight) else {
            return Ok(cx.tensor_type(dtype, None));
        };
        let Some((&last, rows)) = dims.split_last() else {
            return Err(cx.wrong_arg(0, "a tensor of at least one dimension"));
        };
        if cx.is_different(last, depth) {
            return Err(cx.mismatch(
                "the last dimension of the data and that of the weight",
                &[last],
                &[depth],
            ));
        }
        let block = layout.block(b'N').unwrap_or(1);
        if let (Some(units), Some(packed)) = (self.units, cx.value(packed))
            && !(packed - block < units && units <= packed)
        {
            return cx.bad_attr(
                "units",
                units,
                format!("the weight has {packed} in blocks of {block}"),
            );
        }
        let units = self.units.map_or(packed, |units| cx.dim(units));
        let dims: Vec<Dim> = rows.iter().copied().chain([units]).collect();
        Ok(cx.tensor_type(dtype, Some(&dims)))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let (dtype, shape) = cx.out()?;
        // Elements of a wider type hold what the narrow ones are.
        let (data, weight) = (convert(cx.arg(0)?, dtype)?, convert(cx.arg(1)?, dtype)?);
        let weight = relayout(&weight, &self.weight_layout, &parse("NK")?)?;
        let depth = weight.shape()[1];
        let n = shape.last().copied().unwrap_or(0);
        let m = shape[..shape.len() - 1].iter().product();
        with_number!(dtype, T => {
            let (x, w) = (data.elements::<T>(), weight.elements::<T>());
            let out = multiply(&x, &w, [m, n, depth], &[[0, 0]]);
            Ok(vec![Tensor::from_vec_as(dtype, shape.to_vec(), out)])
        })
    }
}

/// One element after the other.
#[rule(compute)]
fn program(op: &Dense, program: &mut Program) {
    programs::dense(program, &op.weight_layout);
}

gains_by_precision!(Dense);

/// For each element of the result a multiplication and an addition for each element of a row.
#[rule(cost)]
fn cost(_: &Dense, at: &mut Site<'_>) -> Option<Cost> {
    let (_, data) = at.tensor(at.arg(0))?;
    of_product(at, *data.last()?)
}

/// `g w`, `g' x`, with all rows of the data as one axis.
#[rule(gradient)]
fn gradient(op: &Dense, at: &mut Adjoint<'_>) -> Result<Grads> {
    if op.weight_layout.text() != "NK" || op.units.is_some() {
        return Err(OpError::Unsupported("its weight is packed".into()));
    }
    let [x, weight] = in_one_dtype(at);
    let g = narrowed(at);
    let (g_rows, x_rows) = (rows(at, g)?, rows(at, x)?);
    let grad_x = product(at, (g_rows, false), (weight, false));
    let grad_x = at.reshape_like(grad_x, x);
    let grad_weight = product(at, (g_rows, true), (x_rows, false));
    Ok(Grads::of([grad_x, of_weight(at, grad_weight)]))
}

/// A tensor as a matrix of its rows.
fn rows(at: &mut Adjoint<'_>, x: Expr) -> Result<Expr> {
    let (_, dims) = at.tensor(x)?;
    let Some((&last, rows)) = dims.split_last() else {
        return Err(OpError::Unsupported("a tensor has no dimensions".into()));
    };
    let count = at.with_cx(|cx| cx.dim_product(rows));
    Ok(at.reshape(x, &[count, last]))
}
