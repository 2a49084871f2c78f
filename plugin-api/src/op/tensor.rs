//! Tensors as values.

use std::borrow::Cow;

use half::{bf16, f16};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::ir::{Bytes, Context, DType, Type};

/// A tensor: row-major and immutable; its bytes are shared and may be mapped from a file.
#[derive(Clone, Debug)]
pub struct Tensor {
    dtype: DType,
    shape: Vec<usize>,
    data: Bytes,
}

/// A Rust type that holds one element. A bool is a `u8` that is 0 or 1.
pub trait Element: FromBytes + IntoBytes + Immutable + Copy + Send + Sync + 'static {
    /// The dtype that it holds.
    const DTYPE: DType;
}

macro_rules! elements {
    ($($name:ident = $dtype:ident),*) => {$(
        impl Element for $name { const DTYPE: DType = DType::$dtype; }
    )*};
}

elements! {
    f64 = F64, f32 = F32, f16 = F16, bf16 = BF16, i8 = I8, i16 = I16, i32 = I32, i64 = I64, u8 = U8,
    u16 = U16, u32 = U32, u64 = U64
}

/// A vector of elements, shared as its bytes.
struct Owned<T>(Vec<T>);

impl<T: Element> AsRef<[u8]> for Owned<T> {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl Tensor {
    /// A tensor of bytes, which must be as many as dtype and shape say.
    pub fn new(dtype: DType, shape: Vec<usize>, data: Bytes) -> Option<Self> {
        let count = shape.iter().try_fold(1u64, |count, &dim| count.checked_mul(dim as u64))?;
        (dtype.bytes(count)? == data.len() as u64).then_some(Self { dtype, shape, data })
    }

    /// A tensor of elements; a `u8` makes a tensor of u8.
    ///
    /// # Panics
    /// When there are not as many elements as the shape says.
    pub fn from_vec<T: Element>(shape: Vec<usize>, elements: Vec<T>) -> Self {
        Self::from_vec_as(T::DTYPE, shape, elements)
    }

    /// A tensor of elements of a dtype that has their size: a bool tensor from `u8`.
    ///
    /// # Panics
    /// When there are not as many elements as the shape says.
    pub fn from_vec_as<T: Element>(dtype: DType, shape: Vec<usize>, elements: Vec<T>) -> Self {
        assert_eq!(shape.iter().product::<usize>(), elements.len(), "elements of {shape:?}");
        assert_eq!(dtype.bits() as usize, 8 * size_of::<T>(), "element size of {dtype}");
        Self { dtype, shape, data: Bytes::new(Owned(elements)) }
    }

    /// A tensor without dimensions.
    pub fn scalar<T: Element>(value: T) -> Self {
        Self::from_vec(Vec::new(), vec![value])
    }

    /// Its type.
    pub fn ty(&self, cx: &(impl Context + ?Sized)) -> Type {
        let shape: Vec<i64> = self.shape.iter().map(|&dim| dim as i64).collect();
        cx.static_tensor_type(self.dtype, &shape)
    }

    /// The type of each element.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The extents, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes: little-endian, row-major.
    pub fn bytes(&self) -> &Bytes {
        &self.data
    }

    /// The elements as `T`, which must be of the size of the dtype; copied only where the bytes are not
    /// aligned.
    pub fn elements<T: Element>(&self) -> Cow<'_, [T]> {
        match <[T]>::ref_from_bytes(&self.data) {
            Ok(elements) => Cow::Borrowed(elements),
            Err(_) => Cow::Owned(
                self.data
                    .chunks_exact(size_of::<T>())
                    .map(|bytes| T::read_from_bytes(bytes).expect("a chunk of the size of T"))
                    .collect(),
            ),
        }
    }

    /// The same bytes in another shape with as many elements.
    ///
    /// # Panics
    /// When the number of elements differs.
    pub fn reshaped(&self, shape: Vec<usize>) -> Self {
        assert_eq!(self.len(), shape.iter().product::<usize>(), "elements of {shape:?}");
        Self { shape, ..self.clone() }
    }
}
