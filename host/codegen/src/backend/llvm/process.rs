//! Compiled functions in this process.

use std::{any::Any, ffi::c_void};

use super::{LlvmError, externals, jit::Jit};
use crate::backend::{Loadable, WEIGHTS};
use crate::object::externals::Externals;
use tenon_runtime::{
    dlpack::{DataType, TensorBuffer},
    functions::Library,
    model::{Functions, RawRunIn, RawRunUntil, RawSizes, Run},
    profile::{MARK, mark},
    signature::LibraryInfo,
};

/// From where constants are counted: their table has addresses.
static BEGIN: usize = 0;

/// Links the objects of `code`, which define the functions of `info`, with its constants and what others define. The constants are
/// shared, except those that do not lie on a boundary of 64.
pub fn load_library(
    info: LibraryInfo,
    code: &Loadable<'_>,
    externals: &Externals,
) -> Result<Library, LlvmError> {
    let mut jit = Jit::new()?;
    let mut table: Vec<usize> = Vec::with_capacity(code.constants.len());
    for (symbol, bytes) in code.constants {
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
        table.push(address.expose_provenance());
        jit.keep(owner);
    }
    let table = table.into_boxed_slice();
    let entries = [
        (code.table, table.as_ptr().cast()),
        (WEIGHTS, (&raw const BEGIN).cast()),
        (MARK, mark as *const c_void),
    ];
    jit.keep(Box::new(table));
    // SAFETY: a table of the constants in their order, each as large as its type says, aligned, and kept by the JIT as the table is; a
    // `Bytes` gives the same address as long as it lives. The last one is a function that takes a number and gives nothing, as the
    // entry calls it.
    unsafe { jit.define_all(&entries) }?;
    for object in code.objects {
        jit.add_object(object)?;
    }
    externals::define(&mut jit, externals)?;
    let mut functions = Vec::with_capacity(code.names.len());
    for ([run, sizes], signature) in code.names.iter().zip(&info.functions) {
        let run = if signature.arena {
            // SAFETY: the type of the function that callers call where it takes memory; the address goes no further than the
            // library, which keeps the JIT.
            let run: RawRunIn = unsafe { jit.function(run) }?;
            Run::In(run)
        } else {
            // SAFETY: as above, where it takes none.
            let run: RawRunUntil = unsafe { jit.function(run) }?;
            Run::Until(run)
        };
        // SAFETY: as above, of the function that tells sizes.
        let sizes: RawSizes = unsafe { jit.function(sizes) }?;
        functions.push(Functions { run, sizes: Some(sizes) });
    }
    // SAFETY: the code was generated for these signatures, and the library keeps the JIT.
    Ok(unsafe { Library::new(info, functions, std::sync::Arc::new(jit)) })
}
