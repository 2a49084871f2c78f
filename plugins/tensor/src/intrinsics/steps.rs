//! Arithmetic step by step.

use tenon_plugin_api::prelude::*;

/// Arithmetic that is being written: expressions, and the names given to some of them.
pub(crate) struct Steps<'a> {
    pub(crate) rw: &'a mut Rewriter,
    /// The names, as `let` statements in order.
    pub(crate) lets: Vec<Expr>,
    /// Whether `scaleb` is an instruction.
    pub(crate) has_scaling: bool,
}

impl<'a> Steps<'a> {
    pub(crate) fn new(rw: &'a mut Rewriter, has_scaling: bool) -> Self {
        Self { rw, lets: Vec::new(), has_scaling }
    }

    /// Whether the arithmetic on `value` is that of f64.
    pub(crate) fn is_f64(&self, value: Expr) -> bool {
        self.rw.body().scalar_ty(value).is_some_and(|(dtype, _)| dtype == DType::F64)
    }

    /// Names a value, so that using it twice does not compute it twice.
    pub(crate) fn name(&mut self, name: &str, value: Expr) -> Expr {
        if matches!(self.rw.view(value), View::Var { .. } | View::Float(_) | View::Int(_)) {
            return value;
        }
        let ty = self.rw.body().ty(value);
        let var = self.rw.var(name, ty);
        self.lets.push(self.rw.let_stmt(var, value));
        var
    }

    /// A number of the type of `like`.
    pub(crate) fn number(&mut self, like: Expr, value: f64) -> Expr {
        let (dtype, lanes) = self.rw.body().scalar_ty(like).unwrap_or((DType::F32, 1));
        let literal = self.rw.literal(dtype, value);
        self.rw.broadcast(literal, lanes)
    }

    pub(crate) fn add(&mut self, a: Expr, b: Expr) -> Expr {
        self.rw.add(a, b)
    }

    pub(crate) fn sub(&mut self, a: Expr, b: Expr) -> Expr {
        self.rw.sub(a, b)
    }

    pub(crate) fn mul(&mut self, a: Expr, b: Expr) -> Expr {
        self.rw.mul(a, b)
    }

    pub(crate) fn div(&mut self, a: Expr, b: Expr) -> Expr {
        self.rw.binary(BinaryOp::Div, a, b)
    }

    /// `a*b + c`, rounded once.
    pub(crate) fn fma(&mut self, a: Expr, b: Expr, c: Expr) -> Expr {
        self.rw.intrinsic("fma", &[a, b, c])
    }

    /// `a*factor + c`, rounded once.
    pub(crate) fn fma_by(&mut self, a: Expr, factor: f64, c: Expr) -> Expr {
        let factor = self.number(a, factor);
        self.fma(a, factor, c)
    }

    pub(crate) fn abs(&mut self, a: Expr) -> Expr {
        self.rw.intrinsic("abs", &[a])
    }

    /// A comparison with a number.
    pub(crate) fn compare(&mut self, op: BinaryOp, a: Expr, value: f64) -> Expr {
        let value = self.number(a, value);
        self.rw.binary(op, a, value)
    }

    pub(crate) fn select(&mut self, cond: Expr, then: Expr, otherwise: Expr) -> Expr {
        self.rw.select(cond, then, otherwise)
    }

    /// `a`, but not below `low` nor above `high`; nan stays.
    pub(crate) fn clamp(&mut self, a: Expr, low: f64, high: f64) -> Expr {
        let below = self.at_most(a, high);
        let below = self.name("below", below);
        let is_low = self.compare(BinaryOp::Lt, below, low);
        let low = self.number(a, low);
        self.select(is_low, low, below)
    }

    /// The lesser of `a` and a number; NaN stays NaN.
    pub(crate) fn at_most(&mut self, a: Expr, high: f64) -> Expr {
        let is_high = self.compare(BinaryOp::Gt, a, high);
        let high = self.number(a, high);
        self.select(is_high, high, a)
    }

    /// The size of `value` with the sign of `sign`.
    pub(crate) fn with_sign_of(&mut self, value: Expr, sign: Expr) -> Expr {
        if !self.is_f64(value) {
            return self.rw.intrinsic("copysign", &[value, sign]);
        }
        // Where the sign was an f16, LLVM 22 makes a conversion of f64 to f16 of that, which no processor has.
        let bits = self.bits(sign);
        let zero = self.int(bits, 0);
        let is_negative = self.rw.binary(BinaryOp::Lt, bits, zero);
        let size = self.abs(value);
        let size = self.name("size", size);
        let zero = self.number(size, -0.0);
        let negative = self.sub(zero, size);
        self.select(is_negative, negative, size)
    }

    /// `((c[0]*x + c[1])*x + …)*x + c[n]`, each step rounded once.
    pub(crate) fn polynomial(&mut self, x: Expr, coefficients: &[f64]) -> Expr {
        let (&first, rest) = coefficients.split_first().expect("a polynomial has a coefficient");
        let first = self.number(x, first);
        rest.iter().fold(first, |sum, &coefficient| {
            let coefficient = self.number(x, coefficient);
            self.fma(sum, x, coefficient)
        })
    }

    /// A polynomial divided by another one.
    pub(crate) fn quotient(&mut self, x: Expr, [numerator, denominator]: [&[f64]; 2]) -> Expr {
        let (numerator, denominator) =
            (self.polynomial(x, numerator), self.polynomial(x, denominator));
        self.div(numerator, denominator)
    }

    /// The bits of a float as an integer of its size.
    pub(crate) fn bits(&mut self, a: Expr) -> Expr {
        let (dtype, lanes) = self.rw.body().scalar_ty(a).unwrap_or((DType::F32, 1));
        let integer = if dtype == DType::F64 { DType::I64 } else { DType::I32 };
        let ty = self.rw.cx().vector_type(integer, lanes);
        self.rw.intrinsic_of("reinterpret", &[a], Some(ty))
    }

    /// The float with these bits.
    pub(crate) fn float_of_bits(&mut self, a: Expr) -> Expr {
        let (dtype, lanes) = self.rw.body().scalar_ty(a).unwrap_or((DType::I32, 1));
        let float = if dtype == DType::I64 { DType::F64 } else { DType::F32 };
        let ty = self.rw.cx().vector_type(float, lanes);
        self.rw.intrinsic_of("reinterpret", &[a], Some(ty))
    }

    /// An integer of the type of `like`.
    pub(crate) fn int(&mut self, like: Expr, value: i64) -> Expr {
        let (dtype, lanes) = self.rw.body().scalar_ty(like).unwrap_or((DType::I32, 1));
        let literal = self.rw.int_of(dtype, value);
        self.rw.broadcast(literal, lanes)
    }

    /// The bits of an integer that `mask` has.
    pub(crate) fn masked(&mut self, a: Expr, mask: i64) -> Expr {
        let mask = self.int(a, mask);
        self.rw.intrinsic("bitand", &[a, mask])
    }

    /// The lower 32 bits of a u64.
    pub(crate) fn low_word(&mut self, a: Expr) -> Expr {
        self.masked(a, 0xffff_ffff)
    }

    /// The u64 of two words of 32 bits.
    pub(crate) fn join_words(&mut self, high: Expr, low: Expr) -> Expr {
        let high = self.shift("shl", high, 32);
        self.rw.intrinsic("bitor", &[high, low])
    }

    /// The product of two f64 and what rounding takes from it. Each is cut in two parts of half as many bits, whose
    /// products are exact: not every processor has `fma`.
    pub(crate) fn exact_product(&mut self, a: Expr, b: Expr) -> (Expr, Expr) {
        let [a_high, a_low] = self.halves(a);
        let [b_high, b_low] = self.halves(b);
        let product = self.mul(a, b);
        let product = self.name("product", product);
        let high = self.mul(a_high, b_high);
        let missing = self.sub(high, product);
        let missing = self.fma(a_high, b_low, missing);
        let missing = self.fma(a_low, b_high, missing);
        let missing = self.fma(a_low, b_low, missing);
        (product, self.name("missing", missing))
    }

    /// An f64 as the sum of its first 26 bits and the others.
    fn halves(&mut self, a: Expr) -> [Expr; 2] {
        let bits = self.bits(a);
        let bits = self.masked(bits, !0x7ff_ffff);
        let high = self.float_of_bits(bits);
        let high = self.name("high", high);
        let low = self.sub(a, high);
        [high, self.name("low", low)]
    }

    /// The sum of two floats of which the first is the larger, and what rounding takes from it.
    pub(crate) fn exact_sum(&mut self, a: Expr, b: Expr) -> (Expr, Expr) {
        let sum = self.add(a, b);
        let sum = self.name("sum", sum);
        let taken = self.sub(sum, a);
        let missing = self.sub(b, taken);
        (sum, self.name("missing", missing))
    }

    /// Moves the bits of an integer: `shl` or `shr`.
    pub(crate) fn shift(&mut self, name: &str, a: Expr, bits: i64) -> Expr {
        let bits = self.int(a, bits);
        self.rw.intrinsic(name, &[a, bits])
    }
}
