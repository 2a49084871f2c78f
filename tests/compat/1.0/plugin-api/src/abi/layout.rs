//! Layouts as data: what crosses the border, described so that both sides can compare it.
//!
//! Tables and records are written once, in [`mod@super::tables`] and [`mod@super::records`], by the macros of
//! this file. From that one text come the Rust type, its layout, the accessors that know an absent entry, and
//! `tenon_plugin.h`.

use std::marker::PhantomData;
use std::ptr::NonNull;

use abi_stable::StableAbi;
use abi_stable::std_types::RStr;

// `Field`, the description of one field, stands at the end: it is a record itself.

impl Field {
    /// A field.
    pub const fn new(name: &'static str, ty: &'static str, offset: usize, size: usize) -> Self {
        let (offset, size) = (offset as u32, size as u32);
        Self { name: RStr::from_str(name), ty: RStr::from_str(ty), offset, size }
    }
}

/// How the C header writes a type.
pub trait CType {
    /// The C type. `[32]` at its end stands behind the name that it declares.
    const C: &'static str;
}

/// A record or table with all that the C header says of it.
pub struct Description {
    /// Its name in Rust.
    pub name: &'static str,
    /// Its name in C.
    pub c_name: &'static str,
    /// The id of a table's interface.
    pub id: Option<&'static str>,
    /// What it is, one line each.
    pub doc: &'static [&'static str],
    /// Bytes that it takes.
    pub size: usize,
    /// Its fields.
    pub layout: &'static [Field],
    /// What each of them is, one line each.
    pub docs: &'static [&'static [&'static str]],
    /// Names and types of a function's parameters; `None` for what is no function.
    pub params: &'static [Option<&'static [(&'static str, &'static str)]>],
    /// What a function returns; empty for what is no function.
    pub results: &'static [&'static str],
}

impl Description {
    /// Whether it never grows.
    pub fn is_frozen(&self) -> bool {
        self.doc.iter().any(|line| line.ends_with("Frozen."))
    }
}

/// A type that is described, with an all-zero value that means "nothing".
///
/// # Safety
/// The type is `repr(C)`, plain data, valid when all of its bytes are zero, and `LAYOUT` is its layout.
pub unsafe trait Record: Copy {
    /// Its fields in order.
    const LAYOUT: &'static [Field];
    /// All that the C header says of it.
    const DESCRIPTION: Description;
}

/// A table of functions that only grows, at its end.
///
/// # Safety
/// The type is `repr(C)`: its size in bytes as a `usize`, then function pointers, as `LAYOUT` lists them.
pub unsafe trait RawTable: 'static {
    /// Id of its interface.
    const ID: &'static str;
    /// Its entries in order, the size first.
    const LAYOUT: &'static [Field];
    /// Bytes that it had in 1.0; no table is shorter.
    const BASE_SIZE: usize;
    /// All that the C header says of it.
    const DESCRIPTION: Description;
}

/// A table of the other side: entries behind its end read as absent.
pub struct Table<T: RawTable> {
    raw: NonNull<T>,
    table: PhantomData<&'static T>,
}

impl<T: RawTable> Clone for Table<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: RawTable> Copy for Table<T> {}

// SAFETY: a table is never written once it is handed over, and lives for ever.
unsafe impl<T: RawTable> Send for Table<T> {}
// SAFETY: as above.
unsafe impl<T: RawTable> Sync for Table<T> {}

impl<T: RawTable> Table<T> {
    /// Borrows a table for ever. The error says what it lacks of what every 1.x has.
    ///
    /// # Safety
    /// `raw` is null, or a table of this interface that is valid for ever.
    pub unsafe fn new(raw: *const T) -> Result<Self, String> {
        let Some(raw) = NonNull::new(raw.cast_mut()) else {
            return Err(format!("{} has no table", T::ID));
        };
        let table = Self { raw, table: PhantomData };
        let (size, least) = (table.size(), T::BASE_SIZE);
        if size < least {
            return Err(format!("{} has a table of {size} bytes, the least is {least}", T::ID));
        }
        let base = T::LAYOUT.iter().filter(|entry| entry.offset as usize + 8 <= least).skip(1);
        for entry in base {
            // SAFETY: the entry lies in the table, whose size was just checked.
            let function = unsafe { table.word(entry.offset as usize) };
            if function == 0 {
                return Err(format!("{}: `{}` is null", T::ID, entry.name));
            }
        }
        Ok(table)
    }

    /// Bytes of the table.
    pub fn size(self) -> usize {
        // SAFETY: every table starts with its size.
        unsafe { self.word(0) }
    }

    /// A function that every 1.x has.
    ///
    /// # Safety
    /// `F` is the type of the function pointer at `offset`, and `offset` is below `BASE_SIZE`.
    pub unsafe fn base_entry<F: Copy>(self, offset: usize) -> F {
        // SAFETY: by this function's contract; `new` has looked at these entries.
        unsafe { self.raw.cast::<u8>().add(offset).cast::<F>().read() }
    }

    /// A function that a later version added; `None` where the table ends before it, or it is null.
    ///
    /// # Safety
    /// `F` is the type of the function pointer at `offset`.
    pub unsafe fn later_entry<F: Copy>(self, offset: usize) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<Option<F>>(), "a function pointer") };
        if offset + size_of::<F>() > self.size() {
            return None;
        }
        // SAFETY: the entry lies in the table, and null is `None`.
        unsafe { self.raw.cast::<u8>().add(offset).cast::<Option<F>>().read() }
    }

    /// # Safety
    /// `offset + 8` is at most the size of the table.
    unsafe fn word(self, offset: usize) -> usize {
        // SAFETY: by this function's contract; a table consists of words.
        unsafe { self.raw.cast::<u8>().add(offset).cast::<usize>().read() }
    }
}

/// Texts one after the other; `N` is their length.
pub const fn joined<const N: usize>(parts: &[&str]) -> [u8; N] {
    let mut bytes = [0; N];
    let (mut part, mut at) = (0, 0);
    while part < parts.len() {
        let text = parts[part].as_bytes();
        let mut i = 0;
        while i < text.len() {
            bytes[at] = text[i];
            (i, at) = (i + 1, at + 1);
        }
        part += 1;
    }
    assert!(at == N);
    bytes
}

/// The length of texts one after the other.
pub const fn joined_len(parts: &[&str]) -> usize {
    let (mut part, mut len) = (0, 0);
    while part < parts.len() {
        len += parts[part].len();
        part += 1;
    }
    len
}

/// The type of a function pointer as C text, known when this crate is compiled.
macro_rules! signature {
    (($($ty:ty),*) $ret:ty) => {{
        const PARTS: &[&str] = {
            use $crate::abi::layout::CType;
            const PARAMS: &[&str] = &[$(<$ty as CType>::C),*];
            &$crate::abi::layout::signature_parts::<{ 2 * PARAMS.len() + 4 }>(<$ret as CType>::C, PARAMS)
        };
        const BYTES: &[u8] = &$crate::abi::layout::joined::<{ $crate::abi::layout::joined_len(PARTS) }>(PARTS);
        match std::str::from_utf8(BYTES) {
            Ok(text) => text,
            Err(_) => panic!("the names of types are text"),
        }
    }};
}
pub(crate) use signature;

/// `result(parameter, parameter)` in parts; unused ones are empty.
pub const fn signature_parts<const N: usize>(
    result: &'static str,
    params: &[&'static str],
) -> [&'static str; N] {
    let mut parts = [""; N];
    parts[0] = result;
    parts[1] = "(";
    let mut i = 0;
    while i < params.len() {
        parts[2 + 2 * i] = if i == 0 { "" } else { ", " };
        parts[3 + 2 * i] = params[i];
        i += 1;
    }
    parts[N - 1] = ")";
    parts
}

/// Names types for C.
macro_rules! c_types {
    ($($ty:ty => $c:literal,)*) => {$(
        impl $crate::abi::layout::CType for $ty {
            const C: &'static str = $c;
        }
    )*};
}
pub(crate) use c_types;

/// Defines a record: `/// doc` `#[derive(…)]` `Name = "c_name" { /// doc` `field: Type, … }`.
macro_rules! record {
    (
        $(#[doc = $doc:literal])*
        #[derive($($derive:ident),*)]
        $name:ident = $c:literal {
            $($(#[doc = $field_doc:literal])* $field:ident: $ty:ty,)*
        }
    ) => {
        $(#[doc = $doc])*
        #[repr(C)]
        #[derive($($derive),*)]
        pub struct $name {
            $($(#[doc = $field_doc])* pub $field: $ty,)*
        }

        // SAFETY: the fields are integers, pointers and records of such; the layout is the compiler's.
        unsafe impl $crate::abi::layout::Record for $name {
            const LAYOUT: &'static [$crate::abi::layout::Field] = &[
                $($crate::abi::layout::Field::new(
                    stringify!($field),
                    <$ty as $crate::abi::layout::CType>::C,
                    std::mem::offset_of!($name, $field),
                    size_of::<$ty>(),
                ),)*
            ];
            const DESCRIPTION: $crate::abi::layout::Description = $crate::abi::layout::Description {
                name: stringify!($name),
                c_name: $c,
                id: None,
                doc: &[$($doc),*],
                size: size_of::<$name>(),
                layout: <$name as $crate::abi::layout::Record>::LAYOUT,
                docs: &[$(&[$($field_doc),*],)*],
                params: &[],
                results: &[],
            };
        }
    };
}
pub(crate) use record;

/// Defines a table: `/// doc` `Name = "c_name" "id" { /// doc` `fn entry(param: Type) -> Type; … }`, and
/// behind it, for each later version, `since "1.1" { … }` with the entries that it added.
macro_rules! table {
    (
        $(#[doc = $doc:literal])*
        $name:ident = $c:literal $id:literal {
            $($(#[doc = $base_doc:literal])*
              fn $base:ident($($base_param:ident: $base_ty:ty),* $(,)?) -> $base_ret:ty;)*
        }
        $(since $version:literal {
            $($(#[doc = $later_doc:literal])*
              fn $later:ident($($later_param:ident: $later_ty:ty),* $(,)?) -> $later_ret:ty;)*
        })*
    ) => {
        $(#[doc = $doc])*
        #[repr(C)]
        pub struct $name {
            /// Bytes of this table. An entry that ends behind them is absent.
            pub size: usize,
            $($(#[doc = $base_doc])*
              pub $base: unsafe extern "C" fn($($base_param: $base_ty),*) -> $base_ret,)*
            $($($(#[doc = $later_doc])*
              #[doc = concat!("\n\nSince ", $version, ".")]
              pub $later: unsafe extern "C" fn($($later_param: $later_ty),*) -> $later_ret,)*)*
        }

        // SAFETY: the fields are a size and function pointers; the layout is the compiler's.
        unsafe impl $crate::abi::layout::RawTable for $name {
            const ID: &'static str = $id;
            const LAYOUT: &'static [$crate::abi::layout::Field] = &[
                $crate::abi::layout::Field::new("size", "size_t", 0, size_of::<usize>()),
                $($crate::abi::layout::Field::new(
                    stringify!($base),
                    $crate::abi::layout::signature!(($($base_ty),*) $base_ret),
                    std::mem::offset_of!($name, $base),
                    size_of::<usize>(),
                ),)*
                $($($crate::abi::layout::Field::new(
                    stringify!($later),
                    $crate::abi::layout::signature!(($($later_ty),*) $later_ret),
                    std::mem::offset_of!($name, $later),
                    size_of::<usize>(),
                ),)*)*
            ];
            const BASE_SIZE: usize = size_of::<usize>() * (1 + [$(stringify!($base)),*].len());
            const DESCRIPTION: $crate::abi::layout::Description = $crate::abi::layout::Description {
                name: stringify!($name),
                c_name: $c,
                id: Some($id),
                doc: &[$($doc),*],
                size: size_of::<$name>(),
                layout: <$name as $crate::abi::layout::RawTable>::LAYOUT,
                docs: &[
                    &[" Bytes of this table. An entry that ends behind them is absent."],
                    $(&[$($base_doc),*],)*
                    $($(&[$($later_doc,)* concat!(" Since ", $version, ".")],)*)*
                ],
                params: &[
                    None,
                    $(Some(&[
                        $((stringify!($base_param), <$base_ty as $crate::abi::layout::CType>::C)),*
                    ]),)*
                    $($(Some(&[
                        $((stringify!($later_param), <$later_ty as $crate::abi::layout::CType>::C)),*
                    ]),)*)*
                ],
                results: &[
                    "",
                    $(<$base_ret as $crate::abi::layout::CType>::C,)*
                    $($(<$later_ret as $crate::abi::layout::CType>::C,)*)*
                ],
            };
        }

        impl $crate::abi::layout::Table<$name> {
            $($(#[doc = $base_doc])*
              pub fn $base(self) -> unsafe extern "C" fn($($base_ty),*) -> $base_ret {
                  // SAFETY: the type is that of the entry, which 1.0 has.
                  unsafe { self.base_entry(std::mem::offset_of!($name, $base)) }
              })*
            $($($(#[doc = $later_doc])*
              pub fn $later(self) -> Option<unsafe extern "C" fn($($later_ty),*) -> $later_ret> {
                  // SAFETY: the type is that of the entry.
                  unsafe { self.later_entry(std::mem::offset_of!($name, $later)) }
              })*)*
        }
    };
}
pub(crate) use table;

record! {
    /// One field of a record, or one entry of a table. Frozen.
    #[derive(StableAbi, Clone, Copy, PartialEq, Eq, Debug)]
    Field = "tenon_field" {
        /// Its name.
        name: RStr<'static>,
        /// Its type, as this header writes it; of a function `result(parameters)`.
        ty: RStr<'static>,
        /// Bytes before it.
        offset: u32,
        /// Bytes that it takes.
        size: u32,
    }
}
