//! The capsules in which Python's libraries hand tensors to each other: DLPack 1.x, with the form before it.
//!
//! A capsule called `dltensor_versioned` (or `dltensor`) holds a managed tensor; who takes it calls the capsule
//! `used_dltensor_versioned` and calls the deleter when it needs the memory no longer.
//! Source: <https://dmlc.github.io/dlpack/latest/python_spec.html>

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use tenon_compiler::runtime::dlpack::RawTensor;

const VERSIONED: &CStr = c"dltensor_versioned";
const USED_VERSIONED: &CStr = c"used_dltensor_versioned";
const UNVERSIONED: &CStr = c"dltensor";
const USED_UNVERSIONED: &CStr = c"used_dltensor";

/// `DLManagedTensorVersioned`.
#[repr(C)]
struct Versioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Versioned)>,
    flags: u64,
    tensor: RawTensor,
}

/// `DLManagedTensor`.
#[repr(C)]
struct Unversioned {
    tensor: RawTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Unversioned)>,
}

/// A tensor of another library's, which is given back when this is dropped.
pub(crate) struct Taken(Managed);

enum Managed {
    Versioned(NonNull<Versioned>),
    Unversioned(NonNull<Unversioned>),
}

// SAFETY: DLPack lets the deleter be called on any thread, and the tensor is only read.
unsafe impl Send for Taken {}
// SAFETY: as above.
unsafe impl Sync for Taken {}

impl Taken {
    /// The tensor that `object.__dlpack__()` gives.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Taken> {
        let py = object.py();
        let asked = pyo3::types::PyDict::new(py);
        asked.set_item("max_version", (1, 1))?;
        let capsule = match object.call_method("__dlpack__", (), Some(&asked)) {
            // Libraries from before DLPack 1.0 do not know the argument.
            Err(error) if error.is_instance_of::<pyo3::exceptions::PyTypeError>(py) => {
                object.call_method0("__dlpack__")?
            }
            capsule => capsule?,
        };
        let taken = take(&capsule, VERSIONED, USED_VERSIONED)?;
        if let Some(managed) = taken {
            let taken = Taken(Managed::Versioned(managed.cast()));
            return taken.of_known_version();
        }
        match take(&capsule, UNVERSIONED, USED_UNVERSIONED)? {
            Some(managed) => Ok(Taken(Managed::Unversioned(managed.cast()))),
            None => Err(PyBufferError::new_err("__dlpack__ gave no DLPack capsule")),
        }
    }

    /// Of another major version, nothing is known but where version and deleter stand.
    fn of_known_version(self) -> PyResult<Taken> {
        if let Managed::Versioned(managed) = &self.0 {
            // SAFETY: the producer keeps it until the deleter is called.
            let major = unsafe { managed.as_ref() }.major;
            if major != 1 {
                let why = format!("version {major} of DLPack is given, and version 1 is known");
                return Err(PyBufferError::new_err(why));
            }
        }
        Ok(self)
    }

    pub(crate) fn tensor(&self) -> RawTensor {
        match &self.0 {
            // SAFETY: the producer keeps it until the deleter is called.
            Managed::Versioned(managed) => unsafe { managed.as_ref() }.tensor,
            // SAFETY: as above.
            Managed::Unversioned(managed) => unsafe { managed.as_ref() }.tensor,
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        match self.0 {
            Managed::Versioned(managed) => {
                // SAFETY: it is ours until the deleter is called, which is called once.
                let deleter = unsafe { managed.as_ref() }.deleter;
                // SAFETY: as above.
                deleter.into_iter().for_each(|delete| unsafe { delete(managed.as_ptr()) });
            }
            Managed::Unversioned(managed) => {
                // SAFETY: as above.
                let deleter = unsafe { managed.as_ref() }.deleter;
                // SAFETY: as above.
                deleter.into_iter().for_each(|delete| unsafe { delete(managed.as_ptr()) });
            }
        }
    }
}

/// What a capsule of this name holds, which from then on is called otherwise; None if it is called otherwise already.
fn take(
    capsule: &Bound<'_, PyAny>,
    name: &'static CStr,
    used: &'static CStr,
) -> PyResult<Option<NonNull<c_void>>> {
    // SAFETY: any object may be asked; the names are constants.
    let managed = unsafe {
        if ffi::PyCapsule_IsValid(capsule.as_ptr(), name.as_ptr()) == 0 {
            return Ok(None);
        }
        let managed = ffi::PyCapsule_GetPointer(capsule.as_ptr(), name.as_ptr());
        if ffi::PyCapsule_SetName(capsule.as_ptr(), used.as_ptr()) != 0 {
            return Err(PyErr::fetch(capsule.py()));
        }
        managed
    };
    Ok(NonNull::new(managed))
}

/// A capsule with a tensor that lies in memory of `owner`, which lives as long as the capsule or who took it.
pub(crate) fn give<'py>(
    py: Python<'py>,
    tensor: RawTensor,
    owner: Py<PyAny>,
    is_versioned: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let context = owner.into_ptr().cast();
    let (pointer, name): (*mut c_void, &CStr) = match is_versioned {
        true => {
            let deleter = Some(delete_versioned as unsafe extern "C" fn(*mut Versioned));
            let made = Versioned { major: 1, minor: 1, context, deleter, flags: 0, tensor };
            (Box::into_raw(Box::new(made)).cast(), VERSIONED)
        }
        false => {
            let deleter = Some(delete_unversioned as unsafe extern "C" fn(*mut Unversioned));
            let made = Unversioned { tensor, context, deleter };
            (Box::into_raw(Box::new(made)).cast(), UNVERSIONED)
        }
    };
    // SAFETY: the pointer is not null and the name a constant; the destructor takes capsules of these names.
    unsafe {
        let capsule = ffi::PyCapsule_New(pointer, name.as_ptr(), Some(destroy));
        Bound::from_owned_ptr_or_err(py, capsule)
    }
}

/// What becomes of a capsule that nobody took.
unsafe extern "C" fn destroy(capsule: *mut ffi::PyObject) {
    // SAFETY: Python calls this with a capsule that `give` has made; under these names it holds what `give` put there.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) == 1 {
            delete_versioned(ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr()).cast());
        } else if ffi::PyCapsule_IsValid(capsule, UNVERSIONED.as_ptr()) == 1 {
            delete_unversioned(ffi::PyCapsule_GetPointer(capsule, UNVERSIONED.as_ptr()).cast());
        }
    }
}

unsafe extern "C" fn delete_versioned(managed: *mut Versioned) {
    // SAFETY: a box of `give`'s, and this is called once.
    let context = unsafe { Box::from_raw(managed) }.context;
    release(context);
}

unsafe extern "C" fn delete_unversioned(managed: *mut Unversioned) {
    // SAFETY: a box of `give`'s, and this is called once.
    let context = unsafe { Box::from_raw(managed) }.context;
    release(context);
}

/// Gives an owner's reference back, on any thread. Where the interpreter has ended, nothing is left to give it to.
fn release(context: *mut c_void) {
    if context.is_null() {
        return;
    }
    let _ = Python::try_attach(|py| {
        // SAFETY: the reference that `give` took.
        drop(unsafe { Bound::<PyAny>::from_owned_ptr(py, context.cast()) });
    });
}
