//! Determinants.
//!
//! ```ir
//! %y = linalg.det(%x)    f32[n, 4, 4]  =>  f32[n]
//! ```
//!
//! Each matrix is brought into a triangle by adding multiples of rows to those below, the row with the largest element first.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::program::Extent;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_float;

/// The determinant of each square matrix, which are the last two axes
#[op(name = "linalg.det")]
pub struct Det {}

impl Operator for Det {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        cx.check_float(0)?;
        let tensor = cx.tensor(0)?;
        match tensor.dims {
            None => Ok(cx.tensor_type(tensor.dtype, None)),
            Some([outer @ .., rows, columns]) => match cx.is_different(*rows, *columns) {
                true => Err(cx.mismatch("rows and columns", &[*rows], &[*columns])),
                false => Ok(cx.tensor_type(tensor.dtype, Some(outer))),
            },
            Some(_) => Err(cx.wrong_arg(0, "a tensor of two dimensions or more")),
        }
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let (x, (dtype, shape)) = (cx.arg(0)?, cx.out()?);
        let size = x.shape().last().copied().unwrap_or(0);
        with_float!(dtype, T => {
            let elements = x.elements::<T>();
            let of_matrix = |number: usize| {
                let matrix = &elements[number * size * size..(number + 1) * size * size];
                T::from_f64(determinant(matrix.iter().map(|x| x.to_f64()).collect(), size))
            };
            let out = (0..shape.iter().product()).map(of_matrix).collect();
            Ok(vec![Tensor::from_vec_as(dtype, shape.to_vec(), out)])
        })
    }
}

fn determinant(mut matrix: Vec<f64>, size: usize) -> f64 {
    let mut result = 1.0;
    for step in 0..size {
        let mut pivot = step;
        for row in step + 1..size {
            if matrix[row * size + step].abs() > matrix[pivot * size + step].abs() {
                pivot = row;
            }
        }
        if pivot != step {
            (0..size).for_each(|column| matrix.swap(step * size + column, pivot * size + column));
            result = -result;
        }
        let first = matrix[step * size + step];
        result *= first;
        if first == 0.0 {
            return result;
        }
        for row in step + 1..size {
            let factor = matrix[row * size + step] / first;
            for column in step..size {
                matrix[row * size + column] -= factor * matrix[step * size + column];
            }
        }
    }
    result
}

/// One matrix after the other.
#[rule(compute)]
fn program(_: &Det, program: &mut Program) {
    let program = &*program;
    let (x, out) = (program.input(0), program.output(0));
    let dtype = x.compute_dtype();
    let rank = out.shape().len();
    let size = x.shape()[rank].index(program);
    let matrix = program.map("matrix", dtype, x.shape(), |i| x.wide(i));
    let result = program.map("result", dtype, out.shape(), |_| program.literal(dtype, 1.0));
    let pivot = program.map("pivot", DType::I64, out.shape(), |_| program.index(0));
    program.each(out.shape(), |outer| {
        let triangle = program.in_turn(size, |step| {
            let at = |row, column| matrix.at(&[outer, &[row, column]].concat());
            let set = |row, column, value| matrix.set(&[outer, &[row, column]].concat(), value);
            let mut body = program.block();
            body.push(pivot.set(outer, step));
            body.push(program.in_turn(size, |row| {
                let (own, best) = (at(row, step), at(pivot.at(outer), step));
                let is_better = own.call("abs").gt(best.call("abs"));
                program.when(row.gt(step).and(is_better), pivot.set(outer, row))
            }));
            let swap = program.in_turn(size, |column| {
                let mut swap = program.block();
                let first = swap.bind("first", at(step, column));
                let second = swap.bind("second", at(pivot.at(outer), column));
                swap.push(set(step, column, second));
                swap.push(set(pivot.at(outer), column, first));
                swap.finish()
            });
            let flip = result.set(outer, result.at(outer) * -1.0);
            body.push(program.when(pivot.at(outer).gt(step), program.seq(&[swap, flip])));
            let first = body.bind("pivot_value", at(step, step));
            body.push(result.set(outer, result.at(outer) * first));
            let reduce = program.in_turn(size, |row| {
                let mut reduce = program.block();
                let factor = reduce.bind("factor", at(row, step) / first);
                reduce.push(program.in_turn(size, |column| {
                    let value = at(row, column) - factor * at(step, column);
                    program.when(column.ge(step), set(row, column, value))
                }));
                program.when(row.gt(step), reduce.finish())
            });
            let has_value = first.call("abs").gt(0.0);
            body.push(program.when(has_value, reduce));
            body.finish()
        });
        program.seq(&[triangle, out.set(outer, result.at(outer))])
    });
}

/// `Det`.
#[rule(import.onnx, key = "Det", since = 11)]
fn import(node: &mut Node<'_>) -> Outputs {
    node.same("linalg.det")
}
