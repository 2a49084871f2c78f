//! Whether compiled code computes what the evaluator does.

use thiserror::Error;

use super::inputs::Numbers;
use super::{Mismatch, Reference};
use crate::eval::{Tensor, Tuple, Value};
use crate::executable::{CompileError, CompileOptions, Executable};
use crate::ir::{Bytes, Context, DType, Module};
use crate::runtime::dlpack::{DataType, TensorBuffer, TensorError, TensorRef};
use crate::runtime::model::{Model, ModelError};
use crate::runtime::signature::data_type;
use crate::target::Target;

/// Why compiled code was not compared, or that it computes something else.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum CompiledError {
    #[error("what was compiled of @{0} cannot be compared with the evaluator: @{0}: {1}")]
    NoReference(String, String),
    #[error("code for {target} cannot be run on this machine")]
    OtherMachine { target: String },
    #[error(
        "what was compiled of @{function} computes something else than the evaluator: {mismatch}"
    )]
    Result { function: String, mismatch: Mismatch },
    #[error(transparent)]
    Compile(#[from] CompileError),
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

/// Compiles a function of a lowered module, runs the code on the inputs of a reference, and compares.
pub fn compare_compiled(
    reference: &Reference,
    module: &Module,
    target: &Target,
    function: &str,
) -> Result<(), CompiledError> {
    let function = function.to_owned();
    let options = CompileOptions { function: Some(function.clone()), ..CompileOptions::default() };
    let Some(computed) = reference.computed(module.cx().symbol(&function)) else {
        let why = reference.notes().find(|(name, _)| *name == function);
        let why = why.map_or("it is not among the module's public functions", |(_, why)| why);
        return Err(CompiledError::NoReference(function, why.to_owned()));
    };
    if !target.runs_here() {
        return Err(CompiledError::OtherMachine { target: target.to_string() });
    }
    let model = Executable::compile(module, target, &options)?.jit()?;
    // What an infinity is as an integer, a processor decides.
    for run in computed.runs.iter().filter(|run| run.numbers != Numbers::Infinite) {
        let found = run_compiled(&model, &run.inputs)?;
        let expected = tuple_of(&run.result);
        let compared =
            reference.tolerance().compare(&expected, &found, &run.undefined, run.numbers);
        if let Err(mismatch) = compared {
            return Err(CompiledError::Result { function, mismatch });
        }
    }
    Ok(())
}

/// A result as compiled code gives it: a tuple of its tensors.
pub(super) fn tuple_of(result: &Value) -> Value {
    Value::Tuple(Tuple::new(tensors_of(result).into_iter().map(Value::Tensor).collect()))
}

/// Inputs as compiled code takes them.
pub(super) fn inputs_of(model: &Model, inputs: &[Value]) -> Result<Vec<TensorBuffer>, TensorError> {
    let inputs = inputs.iter().flat_map(tensors_of).enumerate().map(|(number, tensor)| {
        // Sizes may be given as a number. Whether there are as many inputs says the model.
        let is_number = model.inputs().get(number).is_some_and(|spec| spec.shape.is_empty());
        let shape = if is_number { Vec::new() } else { tensor.shape().to_vec() };
        buffer(&tensor, &shape)
    });
    inputs.collect()
}

/// The outputs of compiled code, as a tuple.
pub(crate) fn run_compiled(model: &Model, inputs: &[Value]) -> Result<Value, CompiledError> {
    let inputs = inputs_of(model, inputs)?;
    let inputs: Vec<TensorRef<'_>> = inputs.iter().map(TensorBuffer::as_ref).collect();
    let outputs = model.run(&inputs, None)?;
    let outputs = outputs.iter().zip(model.outputs());
    let found: Vec<Option<Value>> =
        outputs.map(|(output, spec)| value(output, spec.dtype)).collect::<Result<_, _>>()?;
    let found: Option<Vec<Value>> = found.into_iter().collect();
    Ok(Value::Tuple(Tuple::new(found.unwrap_or_default())))
}

/// The tensors of a value, in order; a shape is one of its extents. Compiled code takes and gives nothing else.
pub(crate) fn tensors_of(value: &Value) -> Vec<Tensor> {
    let mut found = Vec::new();
    let mut waiting = vec![value.clone()];
    while let Some(value) = waiting.pop() {
        match &value {
            Value::Tuple(tuple) => waiting.extend(tuple.fields().iter().rev().cloned()),
            Value::Shape(dims) => found.push(Tensor::from_vec(vec![dims.len()], dims.clone())),
            value => found.extend(value.to_tensor()),
        }
    }
    found
}

fn buffer(tensor: &Tensor, shape: &[usize]) -> Result<TensorBuffer, TensorError> {
    let shape: Vec<i64> = shape.iter().map(|&extent| extent as i64).collect();
    let dtype = data_type(tensor.dtype()).unwrap_or(DataType::U8);
    TensorBuffer::from_bytes(tensor.bytes(), &shape, dtype)
}

fn value(output: &TensorBuffer, dtype: DType) -> Result<Option<Value>, TensorError> {
    let shape = output.shape().iter().map(|&extent| extent as usize).collect();
    let bytes = Bytes::new(output.to_vec()?);
    Ok(Tensor::new(dtype, shape, bytes).map(Value::Tensor))
}
