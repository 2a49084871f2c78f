//! Element types.

use std::fmt;

/// The type of one element. The code crosses the border; a code this build does not know is legal and
/// prints as `dtype<code>`.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DType(pub u16);

/// Name, storage bits, class (`f`, `i`, `u`, `b`) of each known dtype, by code.
const KNOWN: [(&str, u32, u8); 24] = [
    ("none", 0, b'x'),
    ("f64", 64, b'f'),
    ("f32", 32, b'f'),
    ("f16", 16, b'f'),
    ("bf16", 16, b'f'),
    ("f8e4m3", 8, b'f'),
    ("f8e5m2", 8, b'f'),
    ("i4", 4, b'i'),
    ("i8", 8, b'i'),
    ("i16", 16, b'i'),
    ("i32", 32, b'i'),
    ("i64", 64, b'i'),
    ("u8", 8, b'u'),
    ("u16", 16, b'u'),
    ("u32", 32, b'u'),
    ("u64", 64, b'u'),
    ("bool", 8, b'b'),
    ("f8e4m3fnuz", 8, b'f'),
    ("f8e5m2fnuz", 8, b'f'),
    ("f8e8m0", 8, b'f'),
    ("f4e2m1", 4, b'f'),
    ("u4", 4, b'u'),
    ("i2", 2, b'i'),
    ("u2", 2, b'u'),
];

macro_rules! dtypes {
    ($($name:ident = $code:expr),* $(,)?) => {
        /// The known dtypes.
        #[allow(missing_docs, reason = "the names say all there is to say")]
        impl DType {
            $(pub const $name: DType = DType($code);)*
        }
    };
}

dtypes! {
    F64 = 1, F32 = 2, F16 = 3, BF16 = 4, F8E4M3 = 5, F8E5M2 = 6, I4 = 7, I8 = 8, I16 = 9, I32 = 10,
    I64 = 11, U8 = 12, U16 = 13, U32 = 14, U64 = 15, BOOL = 16, F8E4M3FNUZ = 17, F8E5M2FNUZ = 18, F8E8M0 = 19,
    F4E2M1 = 20, U4 = 21, I2 = 22, U2 = 23,
}

impl DType {
    /// Every known dtype.
    pub fn all() -> impl Iterator<Item = DType> {
        (1..KNOWN.len() as u16).map(DType)
    }

    /// The dtype that prints as `name`.
    pub fn from_name(name: &str) -> Option<DType> {
        Self::all().find(|dtype| KNOWN[dtype.0 as usize].0 == name)
    }

    /// Bits of storage of one element; a bool takes a byte. 0 for an unknown dtype.
    pub fn bits(self) -> u32 {
        KNOWN.get(self.0 as usize).map_or(0, |known| known.1)
    }

    /// Bytes of `count` elements, rounded up for dtypes below a byte; `None` on overflow.
    pub fn bytes(self, count: u64) -> Option<u64> {
        count.checked_mul(self.bits() as u64).map(|bits| bits.div_ceil(8))
    }

    fn class(self) -> u8 {
        KNOWN.get(self.0 as usize).map_or(b'x', |known| known.2)
    }

    /// Whether this is a floating point dtype.
    pub fn is_float(self) -> bool {
        self.class() == b'f'
    }

    /// Whether this is a signed or unsigned integer; a bool is not.
    pub fn is_int(self) -> bool {
        matches!(self.class(), b'i' | b'u')
    }

    /// Whether this is a signed integer.
    pub fn is_signed(self) -> bool {
        self.class() == b'i'
    }

    /// Whether tensors of it are stored and converted, and no arithmetic is done in it: a float of a byte or less, or an integer
    /// below a byte.
    pub fn is_storage(self) -> bool {
        let bits = self.bits();
        (1..8).contains(&bits) || (bits == 8 && self.is_float())
    }

    /// Whether this is the truth value.
    pub fn is_bool(self) -> bool {
        self == Self::BOOL
    }

    /// The smallest and the largest value of an integer dtype or bool; those of u64 end where i64 does.
    pub fn int_bounds(self) -> (i64, i64) {
        let bits = self.bits().min(64);
        match self.is_signed() {
            _ if self.is_bool() => (0, 1),
            true if bits == 64 => (i64::MIN, i64::MAX),
            true => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
            false if bits == 64 => (0, i64::MAX),
            false => (0, (1 << bits) - 1),
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match KNOWN.get(self.0 as usize) {
            Some(known) => f.write_str(known.0),
            None => write!(f, "dtype<{}>", self.0),
        }
    }
}

impl fmt::Debug for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
