//! What Python gives as an input, read where it lies.

use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tenon_compiler::ir::DType;
use tenon_compiler::runtime::dlpack::{DataType, Device, RawTensor, TensorBuffer, TensorRef};
use tenon_compiler::runtime::signature::{TensorSpec, data_type};

use crate::dlpack::Taken;
use crate::errors::failure;

/// An array that somebody gives, dense and row-major.
pub(crate) struct Given {
    memory: Memory,
    shape: Vec<i64>,
    dtype: DataType,
}

enum Memory {
    /// The owner's, who is kept.
    There { data: *const u8, length: usize, _owner: Owner },
    /// A copy, of one that is not dense or not aligned.
    Copied(TensorBuffer),
}

/// Keeps the memory.
enum Owner {
    Object { _object: Py<PyAny> },
    Capsule { _taken: Taken },
}

// SAFETY: the memory is read only, and its owner is kept; owners may be dropped on any thread.
unsafe impl Send for Given {}
// SAFETY: as above.
unsafe impl Sync for Given {}

/// Where an array lies; strides are in bytes.
struct Layout {
    data: *const u8,
    shape: Vec<i64>,
    strides: Option<Vec<i64>>,
    dtype: DataType,
}

impl Given {
    /// What `object` is for the input `spec`: a NumPy array, anything with `__dlpack__`, or a number for one without axes.
    pub(crate) fn of(object: &Bound<'_, PyAny>, spec: &TensorSpec) -> PyResult<Given> {
        if let Ok(interface) = object.getattr("__array_interface__") {
            let layout = of_interface(object, &interface.cast_into::<PyDict>()?, spec)?;
            return Given::new(layout, Owner::Object { _object: object.clone().unbind() });
        }
        if object.hasattr("__dlpack__")? {
            let taken = Taken::of(&with_signs(object)?)?;
            let layout = of_tensor(&taken.tensor(), spec)?;
            return Given::new(layout, Owner::Capsule { _taken: taken });
        }
        number(object, spec)
    }

    fn new(layout: Layout, owner: Owner) -> PyResult<Given> {
        let Layout { data, shape, strides, dtype } = layout;
        let count = shape
            .iter()
            .try_fold(1usize, |count, &extent| count.checked_mul(usize::try_from(extent).ok()?));
        let length = count.and_then(|count| dtype.bytes(count));
        let length = length.ok_or_else(|| PyBufferError::new_err("the array is too large"))?;
        let item = usize::from(dtype.bits) / 8;
        let strides = strides.unwrap_or_else(|| dense(&shape, item));
        let stays = is_dense(&shape, &strides, item) && data.addr().is_multiple_of(item);
        let memory = match length == 0 || stays {
            true => Memory::There { data, length, _owner: owner },
            // SAFETY: the owner says that elements lie at these strides.
            false => Memory::Copied(unsafe { copied(data, &shape, &strides, dtype) }?),
        };
        Ok(Given { memory, shape, dtype })
    }

    /// For a run. Nobody may write the array before the run has ended, as with any library that lets go of the
    /// interpreter.
    pub(crate) fn tensor(&self) -> TensorRef<'_> {
        let bytes = match &self.memory {
            Memory::Copied(buffer) => buffer.bytes(),
            Memory::There { length: 0, .. } => &[],
            // SAFETY: the owner is kept, and says that so many bytes lie there.
            Memory::There { data, length, .. } => unsafe {
                std::slice::from_raw_parts(*data, *length)
            },
        };
        TensorRef::new(bytes, &self.shape, self.dtype).expect("the length is that of the shape")
    }

    pub(crate) fn is_copy(&self) -> bool {
        matches!(self.memory, Memory::Copied(_))
    }
}

/// What a tensor of PyTorch is whose signs are still to be changed when it is read, as an imaginary part of a conjugate: DLPack has no word for
/// that, and its memory has the other signs.
fn with_signs<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let is_negated = object.call_method0("is_neg").and_then(|answer| answer.is_truthy());
    match is_negated {
        Ok(true) => object.call_method0("resolve_neg"),
        _ => Ok(object.clone()),
    }
}

/// Whether elements lie one behind the other, the last axis fastest.
fn is_dense(shape: &[i64], strides: &[i64], item: usize) -> bool {
    let mut expected = item as i64;
    shape.iter().zip(strides).rev().all(|(&extent, &stride)| {
        let fits = extent == 1 || stride == expected;
        expected *= extent;
        fits
    })
}

fn dense(shape: &[i64], item: usize) -> Vec<i64> {
    let mut strides = vec![item as i64; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis].saturating_mul(shape[axis]);
    }
    strides
}

/// The elements one behind the other.
///
/// # Safety
/// An element can be read at each index.
unsafe fn copied(
    data: *const u8,
    shape: &[i64],
    strides: &[i64],
    dtype: DataType,
) -> PyResult<TensorBuffer> {
    let mut buffer =
        TensorBuffer::zeros(shape, dtype).map_err(|error| failure("RunError", &error))?;
    let mut index = vec![0i64; shape.len()];
    let mut at = 0i64;
    for element in buffer.bytes_mut().chunks_exact_mut(usize::from(dtype.bits) / 8) {
        // SAFETY: `at` is the place of the element at `index`.
        element.copy_from_slice(unsafe {
            std::slice::from_raw_parts(data.offset(at as isize), element.len())
        });
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            at += strides[axis];
            if index[axis] < shape[axis] {
                break;
            }
            at -= strides[axis] * shape[axis];
            index[axis] = 0;
        }
    }
    Ok(buffer)
}

/// NumPy's: <https://numpy.org/doc/stable/reference/arrays.interface.html>
fn of_interface(
    object: &Bound<'_, PyAny>,
    interface: &Bound<'_, PyDict>,
    spec: &TensorSpec,
) -> PyResult<Layout> {
    let item = |name: &str| {
        interface.get_item(name)?.ok_or_else(|| PyBufferError::new_err(format!("no `{name}`")))
    };
    let typestr: String = item("typestr")?.extract()?;
    let (data, _): (usize, bool) = item("data")?.extract()?;
    let shape: Vec<i64> = item("shape")?.extract()?;
    let strides = interface.get_item("strides")?.filter(|strides| !strides.is_none());
    let strides: Option<Vec<i64>> = strides.map(|strides| strides.extract()).transpose()?;
    if let Some(strides) = strides.as_ref().filter(|strides| strides.len() != shape.len()) {
        let (axes, count) = (shape.len(), strides.len());
        let why = format!("input {spec}: the array has {axes} axes and strides of {count}");
        return Err(PyBufferError::new_err(why));
    }
    let dtype = match of_typestr(&typestr) {
        Some(dtype) => dtype,
        None => of_name(object, &typestr, spec)?,
    };
    Ok(Layout { data: data as *const u8, shape, strides, dtype })
}

fn of_typestr(typestr: &str) -> Option<DataType> {
    let (kind, bytes) = typestr.strip_prefix(['<', '|'])?.split_at_checked(1)?;
    let bits = bytes.parse::<u8>().ok().filter(|bytes| [1, 2, 4, 8].contains(bytes))? * 8;
    match kind {
        "f" => Some(DataType::new(DataType::FLOAT, bits)),
        "i" => Some(DataType::new(DataType::INT, bits)),
        "u" => Some(DataType::new(DataType::UINT, bits)),
        "b" => Some(DataType::new(DataType::BOOL, bits)),
        _ => None,
    }
}

/// Types that NumPy has not itself are known by their names.
fn of_name(object: &Bound<'_, PyAny>, typestr: &str, spec: &TensorSpec) -> PyResult<DataType> {
    let name = object.getattr("dtype").and_then(|dtype| dtype.getattr("name")?.extract());
    let name: String = name.unwrap_or_else(|_| format!("elements {typestr:?}"));
    if name == "bfloat16" {
        return Ok(DataType::new(DataType::BFLOAT, 16));
    }
    let order = if typestr.starts_with('>') { ", in the other byte order" } else { "" };
    Err(PyTypeError::new_err(format!(
        "input {spec}: an array of {name}{order} cannot be given to a model"
    )))
}

fn of_tensor(tensor: &RawTensor, spec: &TensorSpec) -> PyResult<Layout> {
    if tensor.device != Device::CPU {
        let Device { device_type, device_id } = tensor.device;
        return Err(PyBufferError::new_err(format!(
            "input {spec}: the array lies on device {device_type}:{device_id} of DLPack, and the model runs on the CPU"
        )));
    }
    if tensor.dtype.lanes != 1 || !tensor.dtype.bits.is_multiple_of(8) {
        return Err(PyTypeError::new_err(format!(
            "input {spec}: elements of {} bits cannot be given to a model",
            tensor.dtype.bits
        )));
    }
    let rank = usize::try_from(tensor.ndim).unwrap_or(0);
    let item = i64::from(tensor.dtype.bits / 8);
    // SAFETY: the producer has as many extents there as it says.
    let list = |at: *const i64| unsafe { std::slice::from_raw_parts(at, rank) }.to_vec();
    let shape = if rank == 0 { Vec::new() } else { list(tensor.shape) };
    let strides = (rank > 0 && !tensor.strides.is_null())
        .then(|| list(tensor.strides).iter().map(|stride| stride * item).collect());
    let data = tensor.data.cast::<u8>().wrapping_add(tensor.byte_offset as usize);
    Ok(Layout { data, shape, strides, dtype: tensor.dtype })
}

/// A number of Python's, for an input without axes.
fn number(object: &Bound<'_, PyAny>, spec: &TensorSpec) -> PyResult<Given> {
    let refused = || {
        PyTypeError::new_err(format!(
            "input {spec}: {} is neither an array (NumPy, DLPack) nor a number for an input without axes",
            object.get_type()
        ))
    };
    let dtype = data_type(spec.dtype).ok_or_else(refused)?;
    if !spec.shape.is_empty() || object.extract::<f64>().is_err() {
        return Err(refused());
    }
    let bytes = match spec.dtype {
        DType::F32 => object.extract::<f32>()?.to_ne_bytes().to_vec(),
        DType::F64 => object.extract::<f64>()?.to_ne_bytes().to_vec(),
        DType::BOOL => vec![u8::from(object.is_truthy()?)],
        DType::I8 => object.extract::<i8>()?.to_ne_bytes().to_vec(),
        DType::I16 => object.extract::<i16>()?.to_ne_bytes().to_vec(),
        DType::I32 => object.extract::<i32>()?.to_ne_bytes().to_vec(),
        DType::I64 => object.extract::<i64>()?.to_ne_bytes().to_vec(),
        DType::U8 => object.extract::<u8>()?.to_ne_bytes().to_vec(),
        DType::U16 => object.extract::<u16>()?.to_ne_bytes().to_vec(),
        DType::U32 => object.extract::<u32>()?.to_ne_bytes().to_vec(),
        DType::U64 => object.extract::<u64>()?.to_ne_bytes().to_vec(),
        _ => return Err(refused()),
    };
    let buffer = TensorBuffer::from_bytes(&bytes, &[], dtype);
    let buffer = buffer.map_err(|error| failure("RunError", &error))?;
    Ok(Given { memory: Memory::Copied(buffer), shape: Vec::new(), dtype })
}
