//! The kinds of nodes, and how each kind lays out its operands and payload.

use std::fmt;

/// What a node is. The code crosses the border; an unknown code reads as an opaque node with children.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Kind(pub u16);

/// A code that crosses the border, with its name and what it means.
pub struct Named {
    /// As it is called in source text.
    pub name: &'static str,
    /// The code.
    pub code: u16,
    /// What it means, one line each.
    pub doc: &'static [&'static str],
}

macro_rules! kinds {
    ($($(#[doc = $doc:literal])* $name:ident = $code:literal $text:literal,)*) => {
        impl Kind {
            $($(#[doc = $doc])* pub const $name: Kind = Kind($code);)*

            /// The kind's name in messages; `unknown` for a code this build does not know.
            pub fn name(self) -> &'static str {
                match self.0 { $($code => $text,)* _ => "unknown" }
            }

            /// Every kind this build knows.
            pub const ALL: &'static [Kind] = &[$(Kind($code)),*];

            /// Every kind with its name in source text and its documentation, for the C header.
            pub const NAMED: &'static [Named] =
                &[$(Named { name: stringify!($name), code: $code, doc: &[$($doc),*] }),*];
        }
    };
}

kinds! {
    /// A tensor known at compile time. `data`: its number in the body's constants.
    CONSTANT = 1 "constant",
    /// A variable. `data`: the symbol of its name hint. Identity is the node, not the name.
    VAR = 2 "variable",
    /// A function of the module. `data`: the symbol of its name.
    GLOBAL = 3 "global",
    /// An operator. `data`: the symbol of its name.
    OP = 4 "operator",
    /// A function outside of the module. `data`: the symbol of its link name.
    EXTERN = 5 "extern",
    /// A tuple of its operands.
    TUPLE = 6 "tuple",
    /// Field `data` of the tuple that is its only operand.
    TUPLE_GET_ITEM = 7 "tuple item",
    /// A call. Operands: callee, then arguments. `attrs`: the attributes of the call.
    CALL = 8 "call",
    /// A choice. Operands: condition (a bool scalar tensor), then-value, else-value.
    IF = 9 "if",
    /// Bindings, then a result. Operands: variable, value, variable, value, …, result. `data`: a list
    /// term with one integer per block, `2 * bindings + is_dataflow`.
    LET = 10 "let",
    /// A graph function. Operands: parameters (variables), then the body. `data`: the term of the
    /// declared return type or 0. `flags` bit 0: private to the module. `attrs`: its attributes.
    FUNCTION = 11 "function",
    /// A shape value. `data`: a shape type term that holds the dimensions.
    SHAPE = 12 "shape",
    /// A scalar known from dimensions. `data`: the dimension term.
    PRIM = 13 "dimension",

    /// A tensor program. Operands: parameters (buffers or scalar variables), then the body. `data`: how
    /// many of the last parameters are written. `flags` and `attrs` as for a function.
    PRIM_FUNC = 64 "tensor program",
    /// A buffer. `ty`: its tensor type. `data`: the symbol of its name. `aux`: the symbol of its memory
    /// scope, 0 for `global`.
    BUFFER = 65 "buffer",
    /// A loop. Operands: variable, first value, number of steps, body. `data`: [`LoopKind`]. `aux`: the
    /// symbol of the thread axis of a thread-bound loop.
    FOR = 66 "for",
    /// A block. Operands: (variable, binding) for each iterator, (first value, number of values) for each when
    /// `flags` bit 1 is set, a predicate when bit 2 is set, read regions, written regions, an initial statement
    /// when bit 0 is set, the body. `data`: the symbol of its name. `aux`: a list term: the kind of each iterator
    /// (a string), the number of reads, the number of writes.
    BLOCK = 67 "block",
    /// A part of a buffer. Operands: buffer, then (first index, extent) for each axis.
    REGION = 68 "region",
    /// Writes an element. Operands: buffer, value, indices. One index into a buffer of another rank counts
    /// its elements in row-major order; a vector of indices writes a vector.
    STORE = 69 "store",
    /// Reads an element. Operands: buffer, indices, which are as for [`Kind::STORE`].
    LOAD = 70 "load",
    /// Statements in order.
    SEQ = 71 "sequence",
    /// Makes the buffer that is its operand, until the end of the enclosing sequence.
    ALLOC = 72 "alloc",
    /// Names a scalar until the end of the enclosing sequence. Operands: variable, value.
    LET_STMT = 73 "let statement",
    /// A conditional statement. Operands: condition, then-statement, optional else-statement.
    IF_STMT = 74 "if statement",
    /// Evaluates its operand for its effect.
    EVALUATE = 75 "evaluate",
    /// An integer or bool literal of scalar type `ty`. `data`: the integer term.
    INT = 76 "integer",
    /// A float literal of scalar type `ty`. `data`: the float term.
    FLOAT = 77 "float",
    /// Two operands of one type. `data`: [`BinaryOp`].
    BINARY = 78 "binary",
    /// Operands: condition, then-value, else-value. Both values are evaluated.
    SELECT = 79 "select",
    /// Converts its operand to scalar type `ty`.
    CAST = 80 "cast",
    /// A call of a scalar function. `data`: the symbol of its name.
    INTRINSIC = 81 "intrinsic",
    /// The vector `base, base + stride, …`. Operands: base, stride. The lanes stand in `ty`.
    RAMP = 82 "ramp",
    /// A vector of equal lanes. Operand: the scalar.
    BROADCAST = 83 "broadcast",
}

impl Kind {
    /// Whether nodes of this kind have no operands and mean the same wherever they stand, so that
    /// sharing one node or having two makes no difference.
    pub fn is_leaf_value(self) -> bool {
        matches!(
            self,
            Kind::CONSTANT
                | Kind::GLOBAL
                | Kind::OP
                | Kind::EXTERN
                | Kind::SHAPE
                | Kind::PRIM
                | Kind::INT
                | Kind::FLOAT
        )
    }

    /// The same of scalars of tensor programs as well, with equal operands.
    pub fn is_value(self) -> bool {
        self.is_leaf_value()
            || matches!(
                self,
                Kind::REGION
                    | Kind::LOAD
                    | Kind::BINARY
                    | Kind::SELECT
                    | Kind::CAST
                    | Kind::INTRINSIC
                    | Kind::RAMP
                    | Kind::BROADCAST
            )
    }

    /// Whether nodes of this kind stand in graph functions, and this build knows what they mean.
    pub fn is_graph(self) -> bool {
        (Kind::CONSTANT.0..=Kind::PRIM.0).contains(&self.0)
    }

    /// Whether this is a statement of a tensor program.
    pub fn is_stmt(self) -> bool {
        matches!(
            self,
            Kind::FOR
                | Kind::BLOCK
                | Kind::STORE
                | Kind::SEQ
                | Kind::ALLOC
                | Kind::LET_STMT
                | Kind::IF_STMT
                | Kind::EVALUATE
        )
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.name(), self.0)
    }
}

macro_rules! coded {
    ($(#[$meta:meta])* $type:ident { $($name:ident = $code:literal $text:literal $(#[doc = $doc:literal])?,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u32)]
        pub enum $type { $($(#[doc = $doc])? #[allow(missing_docs, reason = "named after the operation")] $name = $code,)* }

        impl $type {
            /// All of them, in the order of their codes.
            pub const ALL: &'static [$type] = &[$($type::$name),*];

            /// The one with this code.
            pub fn from_code(code: u32) -> Option<Self> {
                match code { $($code => Some(Self::$name),)* _ => None }
            }

            /// As it stands in the text form.
            pub fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

/// The attribute of a loop that reads memory in vectors, once and from one end to the other: whether code asks for it early.
pub const STREAMS: &str = "streams";

coded! {
    /// How a loop runs.
    LoopKind {
        Serial = 0 "serial",
        Parallel = 1 "parallel",
        Vectorized = 2 "vectorized",
        Unrolled = 3 "unrolled",
        ThreadBound = 4 "thread",
    }
}

coded! {
    /// A binary scalar operation. `Div` truncates on integers; `FloorDiv` and `FloorMod` round down.
    BinaryOp {
        Add = 0 "+",
        Sub = 1 "-",
        Mul = 2 "*",
        Div = 3 "/",
        FloorDiv = 4 "floordiv",
        FloorMod = 5 "%",
        Min = 6 "min",
        Max = 7 "max",
        Eq = 8 "==",
        Ne = 9 "!=",
        Lt = 10 "<",
        Le = 11 "<=",
        Gt = 12 ">",
        Ge = 13 ">=",
        And = 14 "&&",
        Or = 15 "||",
    }
}

impl BinaryOp {
    /// Whether the result is a bool.
    pub fn is_comparison(self) -> bool {
        (BinaryOp::Eq as u32..=BinaryOp::Ge as u32).contains(&(self as u32))
    }
}
