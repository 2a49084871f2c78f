//! Scalar functions that a processor computes by itself.
//!
//! What needs a polynomial (`exp`, `tanh`, `erf`, …) is made into arithmetic by a pass before; LLVM
//! would make calls of a math library out of them.

use inkwell::{
    FloatPredicate, IntPredicate,
    values::{BasicValueEnum, InstructionOpcode as Op},
};

use super::{
    arithmetic::common_lanes,
    assembler::{Assembler, lanes_of},
    error::{Problem, Result},
    rounding::Rounding,
    value::{Class, Form, Value, with_lanes},
};
use tenon_ir::{BinaryOp, DType};

/// What holds when arithmetic is made of the functions that no processor has.
const NO_INTRINSICS: &str = "no_intrinsics";

impl<'cx> Assembler<'cx, '_> {
    /// A call of the scalar function `name` with a result of `dtype`.
    pub(super) fn call_intrinsic(
        &self,
        name: &str,
        args: &[Value<'cx>],
        dtype: DType,
    ) -> Result<Value<'cx>> {
        let Some(function) = Function::named(name) else {
            let what = format!("the function `{name}`");
            return Err(Problem::Left { what, fact: NO_INTRINSICS });
        };
        if args.len() != function.arguments() {
            let (expected, found) = (function.arguments(), args.len());
            return Problem::malformed(format!("`{name}` takes {expected} arguments, not {found}"));
        }
        if let Function::Binary(op) = function {
            return self.binary(op, args[0], args[1]);
        }
        self.call_function(function, args, dtype)
    }

    /// `function` of as many arguments as it takes, with a result of `dtype`.
    pub(super) fn call_function(
        &self,
        function: Function,
        args: &[Value<'cx>],
        dtype: DType,
    ) -> Result<Value<'cx>> {
        let lanes = common_lanes(args)?;
        let from = Class::of(args[0].dtype)?;
        let to = Class::of(dtype)?;
        if function != Function::Reinterpret && args.iter().any(|arg| arg.dtype != args[0].dtype) {
            return Problem::malformed(format!("{function:?} of different dtypes"));
        }
        let scalars: Option<Vec<_>> = args
            .iter()
            .map(|arg| match arg.form {
                Form::Uniform(scalar) => Some(scalar),
                Form::Ramp { .. } | Form::Vector(_) => None,
            })
            .collect();
        let form = match scalars {
            Some(scalars) => Form::Uniform(self.function_on(function, from, to, &scalars)?),
            None => {
                let vectors = args.iter().map(|&arg| self.whole(arg, lanes));
                let vectors = vectors.collect::<Result<Vec<_>>>()?;
                Form::Vector(self.function_on(function, from, to, &vectors)?)
            }
        };
        Ok(Value { dtype, lanes, form, range: None })
    }

    fn function_on(
        &self,
        function: Function,
        from: Class,
        to: Class,
        args: &[BasicValueEnum<'cx>],
    ) -> Result<BasicValueEnum<'cx>> {
        if function == Function::Reinterpret {
            return self.reinterpret(from, to, args[0]);
        }
        match from {
            Class::F32 | Class::F64 => self.float_function(function, args),
            Class::F16 | Class::Bf16 => {
                let wide = args.iter().map(|&arg| self.widen(from, arg));
                let result = self.float_function(function, &wide.collect::<Result<Vec<_>>>()?)?;
                if function == Function::IsNan { Ok(result) } else { self.narrow(from, result) }
            }
            Class::Bool | Class::Signed(_) | Class::Unsigned(_) => {
                self.int_function(function, from, args)
            }
        }
    }

    fn float_function(
        &self,
        function: Function,
        args: &[BasicValueEnum<'cx>],
    ) -> Result<BasicValueEnum<'cx>> {
        let x = args[0];
        let same = |name| self.intrinsic(name, &[x.get_type()], args);
        match function {
            Function::Sqrt => same("llvm.sqrt"),
            Function::Rsqrt => {
                let root = same("llvm.sqrt")?;
                self.float_op(Op::FDiv, self.float_like(x, 1.0)?, root)
            }
            Function::Abs => same("llvm.fabs"),
            Function::CopySign => same("llvm.copysign"),
            Function::ScaleB => self.scale(x, args[1]),
            Function::Round(rounding) => self.round(rounding, x),
            // Without the instruction, `fma` would be a call for every lane.
            Function::Fma if self.target.has_fma() => same("llvm.fma"),
            Function::Fma | Function::MultiplyAdd => same("llvm.fmuladd"),
            Function::IsNan => self.compare_floats(FloatPredicate::UNO, x, x),
            Function::Shl
            | Function::Shr
            | Function::BitAnd
            | Function::BitOr
            | Function::BitXor
            | Function::BitNot
            | Function::Reinterpret
            | Function::Binary(_) => Problem::malformed(format!("{function:?} of floats")),
        }
    }

    /// `x * 2^n`, rounded once: an instruction of AVX-512, which rounds `n` down.
    fn scale(&self, x: BasicValueEnum<'cx>, n: BasicValueEnum<'cx>) -> Result<BasicValueEnum<'cx>> {
        if !self.target.has_scaling() {
            return Err(Problem::Left { what: "`scaleb`".to_owned(), fact: NO_INTRINSICS });
        }
        let is_double = self.is_double(x);
        // A whole register has an instruction that takes `n` as it is; LLVM divides what is longer and widens what is shorter.
        let (name, mask) = match (is_double, lanes_of(x)) {
            (false, 16) => ("llvm.x86.avx512.mask.scalef.ps.512", self.cx.i16_type()),
            (true, 8) => ("llvm.x86.avx512.mask.scalef.pd.512", self.cx.i8_type()),
            _ => {
                let n = self.intrinsic("llvm.floor", &[n.get_type()], &[n])?;
                let int = with_lanes(self.cx.i32_type().into(), lanes_of(x));
                let n = self.intrinsic("llvm.fptosi.sat", &[int, n.get_type()], &[n])?;
                return self.intrinsic("llvm.ldexp", &[x.get_type(), int], &[x, n]);
            }
        };
        let every_lane = mask.const_all_ones().into();
        let rounding_of_the_machine = self.cx.i32_type().const_int(4, false).into();
        self.intrinsic(name, &[], &[x, n, x, every_lane, rounding_of_the_machine])
    }

    fn int_function(
        &self,
        function: Function,
        class: Class,
        args: &[BasicValueEnum<'cx>],
    ) -> Result<BasicValueEnum<'cx>> {
        let x = args[0];
        match function {
            Function::Abs if class.is_signed() => {
                let wraps = self.cx.bool_type().const_zero();
                self.intrinsic("llvm.abs", &[x.get_type()], &[x, wraps.into()])
            }
            Function::Abs | Function::Round(_) => Ok(x),
            Function::BitAnd => self.int_op(Op::And, x, args[1]),
            Function::BitOr => self.int_op(Op::Or, x, args[1]),
            Function::BitXor => self.int_op(Op::Xor, x, args[1]),
            Function::BitNot => self.int_op(Op::Xor, x, self.int_like(x, -1)?),
            Function::Shl => self.shift_by(Op::Shl, class, x, args[1]),
            Function::Shr if class.is_signed() => self.shift_by(Op::AShr, class, x, args[1]),
            Function::Shr => self.shift_by(Op::LShr, class, x, args[1]),
            Function::Fma | Function::MultiplyAdd => {
                self.int_op(Op::Add, self.int_op(Op::Mul, x, args[1])?, args[2])
            }
            Function::IsNan => self.int_of(with_lanes(self.cx.bool_type().into(), lanes_of(x)), 0),
            Function::Sqrt
            | Function::Rsqrt
            | Function::CopySign
            | Function::ScaleB
            | Function::Reinterpret
            | Function::Binary(_) => Problem::malformed(format!("{function:?} of integers")),
        }
    }

    /// A shift; by the width or more it leaves nothing but signs.
    fn shift_by(
        &self,
        op: Op,
        class: Class,
        x: BasicValueEnum<'cx>,
        by: BasicValueEnum<'cx>,
    ) -> Result<BasicValueEnum<'cx>> {
        let (Class::Signed(bits) | Class::Unsigned(bits)) = class else {
            return Problem::malformed("a shift of truth values");
        };
        let most = self.int_like(by, i64::from(bits) - 1)?;
        let is_too_far = self.compare_ints(IntPredicate::UGT, by, most)?;
        let shifted = self.int_op(op, x, self.select(is_too_far, most, by)?)?;
        if op == Op::AShr {
            return Ok(shifted);
        }
        self.select(is_too_far, self.int_like(x, 0)?, shifted)
    }

    /// The same bits as another dtype of the same size.
    fn reinterpret(
        &self,
        from: Class,
        to: Class,
        x: BasicValueEnum<'cx>,
    ) -> Result<BasicValueEnum<'cx>> {
        if from.bytes() != to.bytes() || from == Class::Bool || to == Class::Bool {
            return Problem::malformed(format!("{from:?} reinterpreted as {to:?}"));
        }
        self.convert(Op::BitCast, x, to.register(self.cx))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Function {
    Sqrt,
    Rsqrt,
    Abs,
    CopySign,
    ScaleB,
    Round(Rounding),
    Fma,
    /// A product and a sum that may be rounded once.
    MultiplyAdd,
    IsNan,
    Shl,
    Shr,
    BitAnd,
    BitOr,
    BitXor,
    BitNot,
    Reinterpret,
    Binary(BinaryOp),
}

impl Function {
    fn named(name: &str) -> Option<Function> {
        Some(match name {
            "sqrt" => Function::Sqrt,
            "rsqrt" => Function::Rsqrt,
            "abs" => Function::Abs,
            "copysign" => Function::CopySign,
            "scaleb" => Function::ScaleB,
            "floor" => Function::Round(Rounding::Down),
            "ceil" => Function::Round(Rounding::Up),
            "trunc" => Function::Round(Rounding::ToZero),
            "round" => Function::Round(Rounding::ToEven),
            "fma" => Function::Fma,
            "isnan" => Function::IsNan,
            "shl" => Function::Shl,
            "shr" => Function::Shr,
            "bitand" => Function::BitAnd,
            "bitor" => Function::BitOr,
            "bitxor" => Function::BitXor,
            "bitnot" => Function::BitNot,
            "reinterpret" => Function::Reinterpret,
            "min" => Function::Binary(BinaryOp::Min),
            "max" => Function::Binary(BinaryOp::Max),
            _ => return None,
        })
    }

    fn arguments(self) -> usize {
        match self {
            Function::Sqrt
            | Function::Rsqrt
            | Function::Abs
            | Function::Round(_)
            | Function::IsNan
            | Function::BitNot
            | Function::Reinterpret => 1,
            Function::CopySign
            | Function::ScaleB
            | Function::Shl
            | Function::Shr
            | Function::BitAnd
            | Function::BitOr
            | Function::BitXor
            | Function::Binary(_) => 2,
            Function::Fma | Function::MultiplyAdd => 3,
        }
    }
}
