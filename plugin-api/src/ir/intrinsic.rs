//! The functions of scalars that a tensor program may call.

use super::DType;

/// What is evaluated for its effect, without arguments, where the threads of a block wait until all of them are there and see what
/// the others have written. It is no function of scalars: it has no value.
pub const BARRIER: &str = "barrier";

/// Attribute of a tensor program: its loops over axes of a device are one nest, whose steps run at once.
pub const BOUND: &str = "bound";

/// A function of scalars, or of vectors lane by lane.
#[derive(Clone, Copy, Debug)]
pub struct IntrinsicDef {
    /// Its name in the IR.
    pub name: &'static str,
    /// How many arguments it takes. All are of one dtype.
    pub args: usize,
    /// The dtypes that it takes.
    pub takes: IntrinsicArgs,
    /// The dtype of its result.
    pub gives: IntrinsicResult,
}

/// What a function of scalars takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntrinsicArgs {
    /// Floats.
    Floats,
    /// Integers.
    Ints,
    /// Floats or integers.
    Numbers,
}

/// What a function of scalars gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntrinsicResult {
    /// The dtype of the arguments.
    Same,
    /// A truth value.
    Bool,
    /// Any dtype of as many bits as the argument has.
    SameBits,
}

impl IntrinsicArgs {
    /// Whether it takes arguments of this dtype.
    pub fn accepts(self, dtype: DType) -> bool {
        match self {
            Self::Floats => dtype.is_float(),
            Self::Ints => dtype.is_int(),
            Self::Numbers => dtype.is_float() || dtype.is_int(),
        }
    }

    /// What it takes, for messages.
    pub fn text(self) -> &'static str {
        match self {
            Self::Floats => "floats",
            Self::Ints => "integers",
            Self::Numbers => "floats or integers",
        }
    }
}

impl IntrinsicDef {
    /// The function of this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        INTRINSICS.iter().find(|intrinsic| intrinsic.name == name)
    }

    const fn new(name: &'static str, args: usize, takes: IntrinsicArgs) -> Self {
        Self { name, args, takes, gives: IntrinsicResult::Same }
    }
}

/// All of them. What stands between its operands, such as `+` and `floordiv`, and `min`, `max` and `select` are no
/// calls but kinds of nodes.
pub const INTRINSICS: &[IntrinsicDef] = {
    use IntrinsicArgs::{Floats, Ints, Numbers};
    &[
        IntrinsicDef::new("abs", 1, Numbers),
        IntrinsicDef::new("acos", 1, Floats),
        IntrinsicDef::new("acosh", 1, Floats),
        IntrinsicDef::new("asin", 1, Floats),
        IntrinsicDef::new("asinh", 1, Floats),
        IntrinsicDef::new("atan", 1, Floats),
        IntrinsicDef::new("atanh", 1, Floats),
        IntrinsicDef::new("bitand", 2, Ints),
        IntrinsicDef::new("bitnot", 1, Ints),
        IntrinsicDef::new("bitor", 2, Ints),
        IntrinsicDef::new("bitxor", 2, Ints),
        IntrinsicDef::new("ceil", 1, Floats),
        IntrinsicDef::new("copysign", 2, Floats),
        IntrinsicDef::new("cos", 1, Floats),
        IntrinsicDef::new("cosh", 1, Floats),
        IntrinsicDef::new("erf", 1, Floats),
        IntrinsicDef::new("exp", 1, Floats),
        IntrinsicDef::new("exp2", 1, Floats),
        IntrinsicDef::new("floor", 1, Floats),
        IntrinsicDef::new("fma", 3, Floats),
        IntrinsicDef { gives: IntrinsicResult::Bool, ..IntrinsicDef::new("isnan", 1, Floats) },
        IntrinsicDef::new("log", 1, Floats),
        IntrinsicDef::new("log2", 1, Floats),
        IntrinsicDef::new("pow", 2, Numbers),
        IntrinsicDef {
            gives: IntrinsicResult::SameBits,
            ..IntrinsicDef::new("reinterpret", 1, Numbers)
        },
        IntrinsicDef::new("round", 1, Floats),
        IntrinsicDef::new("rsqrt", 1, Floats),
        IntrinsicDef::new("scaleb", 2, Floats),
        IntrinsicDef::new("shl", 2, Ints),
        IntrinsicDef::new("shr", 2, Ints),
        IntrinsicDef::new("sigmoid", 1, Floats),
        IntrinsicDef::new("sin", 1, Floats),
        IntrinsicDef::new("sinh", 1, Floats),
        IntrinsicDef::new("sqrt", 1, Floats),
        IntrinsicDef::new("tan", 1, Floats),
        IntrinsicDef::new("tanh", 1, Floats),
        IntrinsicDef::new("trunc", 1, Floats),
    ]
};
