//! Choices between values, and conditions.

use inkwell::{
    IntPredicate,
    values::{BasicValueEnum, IntValue},
};

use super::{
    arithmetic::common_lanes,
    assembler::Assembler,
    error::{Problem, Result},
    value::{Form, Value},
};
use tenon_ir::DType;

impl<'cx> Assembler<'cx, '_> {
    /// `cond ? then : otherwise`.
    pub(super) fn choose(
        &self,
        cond: Value<'cx>,
        then: Value<'cx>,
        otherwise: Value<'cx>,
    ) -> Result<Value<'cx>> {
        if then.dtype != otherwise.dtype {
            let (a, b) = (then.dtype, otherwise.dtype);
            return Problem::malformed(format!("a select between {a} and {b}"));
        }
        let lanes = common_lanes(&[cond, then, otherwise])?;
        let cond = self.cast(cond, DType::BOOL)?;
        let range = then.range.zip(otherwise.range).map(|(a, b)| a.union(b));
        let form = match (cond.form, then.form, otherwise.form) {
            (Form::Uniform(c), Form::Uniform(x), Form::Uniform(y)) => {
                Form::Uniform(self.select(c, x, y)?)
            }
            (Form::Uniform(c), _, _) => {
                let (x, y) = (self.whole(then, lanes)?, self.whole(otherwise, lanes)?);
                Form::Vector(self.select(c, x, y)?)
            }
            _ => {
                let (x, y) = (self.whole(then, lanes)?, self.whole(otherwise, lanes)?);
                Form::Vector(self.select(self.whole(cond, lanes)?, x, y)?)
            }
        };
        Ok(Value { dtype: then.dtype, lanes, form, range })
    }

    /// The truth of a scalar, for a branch.
    pub(super) fn truth(&self, value: Value<'cx>) -> Result<IntValue<'cx>> {
        match self.cast(value, DType::BOOL)?.form {
            Form::Uniform(BasicValueEnum::IntValue(truth)) => Ok(truth),
            _ => Problem::malformed("a condition is not a scalar"),
        }
    }

    /// Whether two integers are equal, for a branch.
    pub(super) fn equals(&self, value: Value<'cx>, to: i64) -> Result<BasicValueEnum<'cx>> {
        let Form::Uniform(scalar) = value.form else {
            return Problem::malformed("an iterator is not a scalar");
        };
        self.compare_ints(IntPredicate::EQ, scalar, self.int_like(scalar, to)?)
    }
}
