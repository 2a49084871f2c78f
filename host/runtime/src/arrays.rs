//! Arrays of files as the inputs and outputs of a model.

use super::{
    dlpack::{TensorBuffer, TensorError},
    model::{Model, ModelError},
    parallel::ThreadPool,
    signature::{TensorSpec, data_type},
};
use crate::io::{Array, NpyType};
use tenon_plugin_api::ir::DType;

/// The array as a tensor; copied, to where generated code likes it.
pub fn from_array(array: &Array) -> Result<TensorBuffer, TensorError> {
    let shape: Vec<i64> =
        array.shape.iter().map(|&extent| i64::try_from(extent).unwrap_or(-1)).collect();
    let dtype = data_type(dtype_of(array.dtype)).unwrap_or(super::dlpack::DataType::U8);
    TensorBuffer::from_bytes(&array.data, &shape, dtype)
}

/// An output as an array.
pub fn to_array(tensor: &TensorBuffer, spec: &TensorSpec) -> Result<Array, ModelError> {
    let shape = tensor.shape().iter().map(|&extent| extent as usize).collect();
    match npy_type(spec.dtype) {
        Some(dtype) => Ok(Array { dtype, shape, data: tensor.to_vec()? }),
        None => Err(ModelError::DType(spec.clone())),
    }
}

impl Model {
    /// Arrays by name in the order of the model's inputs. Every input must be there, and no other.
    pub fn arrange<'a>(&self, named: &'a [(String, Array)]) -> Result<Vec<&'a Array>, ModelError> {
        let is_input = |name: &str| self.inputs().iter().any(|input| input.name == name);
        if let Some((name, _)) = named.iter().find(|(name, _)| !is_input(name)) {
            let inputs = self.inputs().to_vec();
            return Err(ModelError::UnknownInput { name: name.clone(), inputs });
        }
        let find = |input: &TensorSpec| {
            let found = named.iter().find(|(name, _)| *name == input.name);
            found.map(|(_, array)| array).ok_or_else(|| ModelError::MissingInput(input.clone()))
        };
        self.inputs().iter().map(find).collect()
    }

    /// Runs it once on arrays, in the order of its inputs.
    pub fn run_arrays(
        &self,
        inputs: &[&Array],
        pool: Option<&ThreadPool>,
    ) -> Result<Vec<Array>, ModelError> {
        let inputs = inputs.iter().map(|array| from_array(array));
        let inputs: Vec<TensorBuffer> = inputs.collect::<Result<_, _>>()?;
        let inputs: Vec<_> = inputs.iter().map(TensorBuffer::as_ref).collect();
        let outputs = self.run(&inputs, pool)?;
        outputs.iter().zip(self.outputs()).map(|(tensor, spec)| to_array(tensor, spec)).collect()
    }
}

const TYPES: [(NpyType, DType); 13] = [
    (NpyType::Bool, DType::BOOL),
    (NpyType::I8, DType::I8),
    (NpyType::I16, DType::I16),
    (NpyType::I32, DType::I32),
    (NpyType::I64, DType::I64),
    (NpyType::U8, DType::U8),
    (NpyType::U16, DType::U16),
    (NpyType::U32, DType::U32),
    (NpyType::U64, DType::U64),
    (NpyType::F16, DType::F16),
    (NpyType::BF16, DType::BF16),
    (NpyType::F32, DType::F32),
    (NpyType::F64, DType::F64),
];

/// The dtype for the element type of a file.
pub fn dtype_of(ty: NpyType) -> DType {
    TYPES.iter().find(|entry| entry.0 == ty).map_or(DType::U8, |entry| entry.1)
}

/// The element type of files for a dtype; those smaller than two bytes that are no integers have none.
pub fn npy_type(dtype: DType) -> Option<NpyType> {
    TYPES.iter().find(|entry| entry.1 == dtype).map(|entry| entry.0)
}
