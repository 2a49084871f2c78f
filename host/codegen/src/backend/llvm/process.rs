//! Compiled functions in this process.

use std::{any::Any, ffi::c_void};

use super::{LlvmError, externals, jit::Jit};
use crate::object::externals::Externals;
use tenon_ir::Bytes;
use tenon_runtime::{
    dlpack::{DataType, TensorBuffer},
    functions::Library,
    model::{Functions, RawRunUntil, RawSizes, Run},
    profile::{MARK, mark},
    signature::LibraryInfo,
};

/// Links `objects`, which define the functions of `info` under their names, with constants by their symbols and what others
/// define. The constants are shared, except those that do not lie on a boundary of 64.
pub fn load_library(
    info: LibraryInfo,
    names: &[[&str; 2]],
    objects: &[&[u8]],
    constants: &[(&str, Bytes)],
    externals: &Externals,
) -> Result<Library, LlvmError> {
    let mut jit = Jit::new()?;
    let mut entries: Vec<(&str, *const c_void)> = Vec::with_capacity(constants.len());
    for (symbol, bytes) in constants {
        let (address, owner): (*const u8, Box<dyn Any + Send + Sync>) =
            if bytes.as_ptr().addr().is_multiple_of(TensorBuffer::ALIGN) {
                (bytes.as_ptr(), Box::new(bytes.clone()))
            } else {
                let copy = TensorBuffer::from_bytes(bytes, &[bytes.len() as i64], DataType::U8)
                    .map_err(|error| LlvmError::Constant {
                        symbol: (*symbol).to_owned(),
                        message: error.to_string(),
                    })?;
                (copy.bytes().as_ptr(), Box::new(copy))
            };
        entries.push((symbol, address.cast()));
        jit.keep(owner);
    }
    entries.push((MARK, mark as *const c_void));
    // SAFETY: each is the constant of its symbol, as large as its type says, aligned, and kept by
    // the JIT; a `Bytes` gives the same address as long as it lives. The last one is a function that takes a
    // number and gives nothing, as the entry calls it.
    unsafe { jit.define_all(&entries) }?;
    for object in objects {
        jit.add_object(object)?;
    }
    externals::define(&mut jit, externals)?;
    let mut functions = Vec::with_capacity(names.len());
    for [run, sizes] in names {
        // SAFETY: the type of the function that callers call; the address goes no further than the library, which
        // keeps the JIT.
        let until: RawRunUntil = unsafe { jit.function(run) }?;
        // SAFETY: as above, of the function that tells sizes.
        let sizes: RawSizes = unsafe { jit.function(sizes) }?;
        functions.push(Functions { run: Run::Until(until), sizes: Some(sizes) });
    }
    // SAFETY: the code was generated for these signatures, and the library keeps the JIT.
    Ok(unsafe { Library::new(info, functions, std::sync::Arc::new(jit)) })
}
