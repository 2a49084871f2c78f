//! What a model gives, kept for Python.

use std::ffi::c_void;
use std::ptr::null_mut;

use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use tenon_compiler::ir::DType;
use tenon_compiler::runtime::dlpack::{DataType, Device, RawTensor, TensorBuffer};
use tenon_compiler::runtime::signature::{TensorSpec, data_type};

use crate::dlpack::give;

/// An array that a model has computed, in memory of its own. NumPy and everything that knows DLPack use it where it lies.
#[pyclass(frozen, module = "tenon._core")]
pub(crate) struct Array {
    buffer: TensorBuffer,
    dtype: DType,
}

impl Array {
    pub(crate) fn new(buffer: TensorBuffer, spec: &TensorSpec) -> Array {
        Array { buffer, dtype: spec.dtype }
    }

    /// A copy of some bytes.
    pub(crate) fn of_bytes(dtype: DType, shape: &[i64], bytes: &[u8]) -> PyResult<Array> {
        let of_dlpack = data_type(dtype);
        let of_dlpack = of_dlpack
            .ok_or_else(|| PyBufferError::new_err(format!("arrays have no elements of {dtype}")))?;
        let buffer = TensorBuffer::from_bytes(bytes, shape, of_dlpack);
        let buffer = buffer.map_err(|error| PyBufferError::new_err(error.to_string()))?;
        Ok(Array { buffer, dtype })
    }

    fn raw(&self) -> RawTensor {
        RawTensor {
            data: self.buffer.bytes().as_ptr().cast_mut().cast::<c_void>(),
            device: Device::CPU,
            ndim: self.buffer.shape().len() as i32,
            dtype: self.buffer.dtype(),
            shape: self.buffer.shape().as_ptr().cast_mut(),
            strides: null_mut(),
            byte_offset: 0,
        }
    }
}

#[pymethods]
impl Array {
    /// The extents.
    #[getter]
    fn shape(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let shape = PyTuple::new(py, self.buffer.shape())?;
        Ok(shape.into_any().unbind())
    }

    /// The element type, by its name in the IR: `f32`, `i64`, `bf16`.
    #[getter]
    fn dtype(&self) -> String {
        self.dtype.to_string()
    }

    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let DataType { code, bits, .. } = self.buffer.dtype();
        let kind = match code {
            DataType::INT => "i",
            DataType::UINT => "u",
            DataType::FLOAT => "f",
            DataType::BOOL => "b",
            // NumPy has no such type: bytes, for who knows what they are.
            _ => "V",
        };
        let order = if bits == 8 || kind == "V" { "|" } else { "<" };
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("typestr", format!("{order}{kind}{}", bits / 8))?;
        interface.set_item("shape", PyTuple::new(py, self.buffer.shape())?)?;
        interface.set_item("data", (self.buffer.bytes().as_ptr().addr(), false))?;
        Ok(interface)
    }

    /// A DLPack capsule. The memory is the CPU's; `copy=True` is refused.
    #[pyo3(signature = (*, stream = None, max_version = None, dl_device = None, copy = None))]
    fn __dlpack__<'py>(
        slf: Bound<'py, Self>,
        stream: Option<i64>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if stream.is_some() || dl_device.is_some_and(|device| device != (1, 0)) {
            return Err(PyBufferError::new_err("the array lies in the memory of the CPU"));
        }
        if copy == Some(true) {
            return Err(PyBufferError::new_err("the array is not copied; copy what you get"));
        }
        let is_versioned = max_version.is_some_and(|version| version >= (1, 0));
        let raw = slf.get().raw();
        give(slf.py(), raw, slf.clone().into_any().unbind(), is_versioned)
    }

    /// The CPU, as DLPack says it.
    fn __dlpack_device__(&self) -> (i32, i32) {
        (Device::CPU.device_type, Device::CPU.device_id)
    }

    fn __repr__(&self) -> String {
        let shape = self.buffer.shape().iter().map(i64::to_string).collect::<Vec<_>>();
        format!("tenon.Array({}[{}])", self.dtype, shape.join(", "))
    }
}
