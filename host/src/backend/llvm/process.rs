//! A compiled model in this process.

use std::{any::Any, ffi::c_void};

use super::{LlvmError, jit::Jit};
use crate::{
    ir::Bytes,
    plan::{ENTRY_SYMBOL, SIZES_SYMBOL},
    runtime::{
        dlpack::{DataType, TensorBuffer},
        model::{Functions, Model, RawRun, RawSizes},
        profile::{MARK, mark},
        signature::Signature,
    },
};

/// Links `objects`, one of which defines the entry function of `signature`, with constants by their
/// symbols. The constants are shared, except those that do not lie on a boundary of 64.
pub fn load_model(
    signature: Signature,
    objects: &[&[u8]],
    constants: &[(&str, Bytes)],
) -> Result<Model, LlvmError> {
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
    // SAFETY: the type of the entry function; the address goes no further than the model, which
    // keeps the JIT.
    let run: RawRun = unsafe { jit.function(ENTRY_SYMBOL) }?;
    // SAFETY: as above, of the function that tells sizes.
    let sizes: RawSizes = unsafe { jit.function(SIZES_SYMBOL) }?;
    let functions = Functions { run, sizes: Some(sizes) };
    // SAFETY: the code was generated for this signature, and the model keeps the JIT.
    Ok(unsafe { Model::new(signature, functions, Box::new(jit)) })
}
