//! Operators on element types that are stored and not computed with: floats of a byte or less, integers below a byte.
//!
//! ```text
//! %x: i4[n] as f32   storage.decode(storage.bytes(%x))       unpacked where they are read
//! %y: f32[n] as i4   storage.from_bytes(storage.encode(%y))  packed where they are written
//! ```
//!
//! Programs see bytes alone, so no code generator and no schedule knows of such types. Their first element lies in the lowest bits
//! of a byte.

pub mod bytes;
pub(crate) mod codes;
pub mod decode;
pub mod encode;
pub mod from_bytes;
mod types;
