//! The instructions.

use tenon_ir::{BinaryOp, DType};

/// A register: a place in the file of integers or in that of floats. A vector takes neighbouring ones.
pub(super) type Reg = u32;

/// An instruction. A result never lies below the operands of the same file.
#[derive(Clone, Copy, Debug)]
pub(super) enum Instr {
    /// Goes on `by` instructions further on.
    Jump {
        by: u32,
    },
    /// Goes on `by` instructions further on if the condition is false.
    JumpUnless {
        cond: Reg,
        by: u32,
    },
    /// Sets the loop variable and goes on behind the loop if there is no step.
    Loop {
        var: Reg,
        min: Reg,
        extent: Reg,
        limit: Reg,
        by: u32,
    },
    /// Goes back to the start of the loop's body if there is another step.
    Next {
        var: Reg,
        limit: Reg,
        back: u32,
    },
    /// Begins what a device runs as a whole: no step of it has touched anything yet.
    Launch,
    /// Begins the next block of threads.
    NextBlock,
    /// Starts a thread for each step of a loop, or splits each thread into several; goes on behind when all are done.
    Fork {
        var: Reg,
        min: Reg,
        extent: Reg,
        by: u32,
    },
    /// A thread is done.
    Join,
    /// A thread waits for all others.
    Barrier,
    /// Makes a buffer.
    Alloc {
        buffer: u32,
    },
    Load {
        dst: Reg,
        access: Access,
    },
    Store {
        src: Reg,
        access: Access,
    },
    Int {
        op: BinaryOp,
        ty: DType,
        dst: Reg,
        a: Reg,
        b: Reg,
        lanes: u16,
    },
    Float {
        op: BinaryOp,
        ty: DType,
        dst: Reg,
        a: Reg,
        b: Reg,
        lanes: u16,
    },
    /// A comparison of floats; the result is an integer.
    Compare {
        op: BinaryOp,
        dst: Reg,
        a: Reg,
        b: Reg,
        lanes: u16,
    },
    Bits {
        op: BitOp,
        ty: DType,
        dst: Reg,
        a: Reg,
        b: Reg,
        lanes: u16,
    },
    Select {
        is_float: bool,
        is_vector: bool,
        dst: Reg,
        cond: Reg,
        operands: [Reg; 2],
        lanes: u16,
    },
    Cast {
        from: DType,
        to: DType,
        dst: Reg,
        a: Reg,
        lanes: u16,
    },
    Reinterpret {
        from: DType,
        to: DType,
        dst: Reg,
        a: Reg,
        lanes: u16,
    },
    Math {
        function: Math,
        ty: DType,
        dst: Reg,
        a: Reg,
        lanes: u16,
    },
    Math2 {
        function: Math2,
        ty: DType,
        dst: Reg,
        a: Reg,
        b: Reg,
        lanes: u16,
    },
    Fma {
        ty: DType,
        dst: Reg,
        operands: [Reg; 3],
        lanes: u16,
    },
    Ramp {
        ty: DType,
        dst: Reg,
        base: Reg,
        stride: Reg,
        lanes: u16,
    },
    BroadcastInt {
        dst: Reg,
        a: Reg,
        lanes: u16,
    },
    BroadcastFloat {
        dst: Reg,
        a: Reg,
        lanes: u16,
    },
}

/// An access to a buffer: its indices are `count` entries of the program's list from `first` on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub(super) buffer: u32,
    pub(super) dtype: DType,
    pub(super) first: u32,
    pub(super) count: u16,
    pub(super) lanes: u16,
    /// Where there is one, lanes for which it is false are left out.
    pub(super) mask: Option<Reg>,
}

/// A function of integers, most of them of their bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BitOp {
    And,
    Or,
    Xor,
    Shl,
    Shr,
    Not,
    Abs,
    Pow,
}

macro_rules! functions {
    ($(#[doc = $doc:literal])* $name:ident { $($variant:ident = $text:literal,)* }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum $name { $($variant,)* }

        impl $name {
            pub(super) fn from_name(name: &str) -> Option<Self> {
                match name { $($text => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

functions! {
    /// A function of one float.
    Math {
        Exp = "exp",
        Exp2 = "exp2",
        Log = "log",
        Log2 = "log2",
        Tanh = "tanh",
        Sigmoid = "sigmoid",
        Sqrt = "sqrt",
        Rsqrt = "rsqrt",
        Erf = "erf",
        Sin = "sin",
        Cos = "cos",
        Tan = "tan",
        Asin = "asin",
        Acos = "acos",
        Atan = "atan",
        Sinh = "sinh",
        Cosh = "cosh",
        Asinh = "asinh",
        Acosh = "acosh",
        Atanh = "atanh",
        Floor = "floor",
        Ceil = "ceil",
        Round = "round",
        Trunc = "trunc",
        Abs = "abs",
    }
}

functions! {
    /// A function of two floats.
    Math2 {
        Pow = "pow",
        Copysign = "copysign",
        ScaleB = "scaleb",
    }
}

impl BitOp {
    pub(super) fn from_name(name: &str) -> Option<Self> {
        match name {
            "bitand" => Some(Self::And),
            "bitor" => Some(Self::Or),
            "bitxor" => Some(Self::Xor),
            "shl" => Some(Self::Shl),
            "shr" => Some(Self::Shr),
            "bitnot" => Some(Self::Not),
            "abs" => Some(Self::Abs),
            "pow" => Some(Self::Pow),
            _ => None,
        }
    }
}
