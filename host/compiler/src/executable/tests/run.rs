//! Parses, compiles and runs modules.

use std::num::NonZeroUsize;

use crate::diagnostics::Source;
use crate::eval::{Evaluator, Tensor, Value};
use crate::ir::{Bytes, DType, Module};
use crate::runtime::{
    dlpack::{TensorBuffer, TensorRef},
    model::Model,
    parallel::ThreadPool,
    signature::{Extent, TensorSpec, data_type},
};
use crate::target::Target;
use crate::text::{NoWeights, parse_module};

use super::super::{CompileOptions, Executable};

pub(super) fn module(text: &str) -> Module {
    parse_module(&crate::testing::cx(), &Source::new("test.ir", text), &mut NoWeights)
        .unwrap_or_else(|errors| panic!("{errors:?}"))
}

pub(super) fn compile(module: &Module) -> Executable {
    let options = CompileOptions { threads: 1, ..CompileOptions::default() };
    Executable::compile(module, &Target::native().unwrap(), &options)
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Some small numbers for an input whose symbolic extents are `extents`, one after the other.
fn numbers_of(spec: &TensorSpec, extents: &mut impl Iterator<Item = i64>) -> Tensor {
    let mut known = |extent: &Extent| extent.known().or_else(|| extents.next()).unwrap() as usize;
    let shape: Vec<usize> = spec.shape.iter().map(&mut known).collect();
    let count = shape.iter().product::<usize>();
    let value = |i: usize| ((i * 7 + 3) % 23) as f32 - 11.0;
    match spec.dtype {
        DType::F32 => Tensor::from_vec(shape, (0..count).map(value).collect()),
        DType::I32 => Tensor::from_vec(shape, (0..count).map(|i| value(i) as i32).collect()),
        dtype => panic!("no numbers of {dtype}"),
    }
}

/// What the evaluator makes of the inputs, tuples flattened.
pub(super) fn reference(module: &Module, inputs: &[Tensor]) -> Vec<Tensor> {
    let args = inputs.iter().cloned().map(Value::Tensor).collect();
    let result = Evaluator::new(module).call("main", args).unwrap_or_else(|e| panic!("{e}"));
    let mut tensors = Vec::new();
    let mut pending = vec![result];
    while let Some(value) = pending.pop() {
        match value {
            Value::Tuple(tuple) => pending.extend(tuple.fields().iter().rev().cloned()),
            value => tensors.push(value.to_tensor().unwrap()),
        }
    }
    tensors
}

/// Inputs as a model takes them.
pub(super) fn buffers(model: &Model, inputs: &[Tensor]) -> Vec<TensorBuffer> {
    inputs
        .iter()
        .zip(model.inputs())
        .map(|(input, spec)| {
            let dtype = data_type(spec.dtype).unwrap();
            let shape: Vec<i64> = input.shape().iter().map(|&extent| extent as i64).collect();
            TensorBuffer::from_bytes(input.bytes(), &shape, dtype).unwrap()
        })
        .collect()
}

/// Runs a model on `threads` threads; 0 for no pool.
pub(super) fn run(model: &Model, inputs: &[Tensor], threads: usize) -> Vec<Tensor> {
    let pool = NonZeroUsize::new(threads).map(|threads| ThreadPool::new(threads).unwrap());
    let buffers = buffers(model, inputs);
    let inputs: Vec<TensorRef<'_>> = buffers.iter().map(TensorBuffer::as_ref).collect();
    let outputs = model.run(&inputs, pool.as_ref()).unwrap_or_else(|error| panic!("{error}"));
    outputs
        .iter()
        .zip(model.outputs())
        .map(|(tensor, spec)| {
            let shape = tensor.shape().iter().map(|&extent| extent as usize).collect();
            Tensor::new(spec.dtype, shape, Bytes::new(tensor.bytes().to_vec())).unwrap()
        })
        .collect()
}

/// Small numbers for an input of known shape.
pub(super) fn numbers(spec: &TensorSpec) -> Tensor {
    numbers_of(spec, &mut std::iter::empty())
}

/// Compiles `text`, runs it on no, one, two and three threads, and compares with the evaluator.
pub(super) fn check(text: &str) -> Executable {
    check_at(text, &[&[]])
}

/// The same for symbolic extents of the inputs, each list of them for one run, with what is compiled once.
pub(super) fn check_at(text: &str, runs: &[&[i64]]) -> Executable {
    check_on(text, &|specs| {
        let inputs = |extents: &&[i64]| {
            let mut given = extents.iter().copied();
            specs.iter().map(|spec| numbers_of(spec, &mut given)).collect()
        };
        runs.iter().map(inputs).collect()
    })
}

/// The same on inputs that are made for those that the function takes, one list for each run.
pub(super) fn check_on(text: &str, runs: &dyn Fn(&[TensorSpec]) -> Vec<Vec<Tensor>>) -> Executable {
    let module = module(text);
    let executable = compile(&module);
    let model = executable.jit().unwrap_or_else(|error| panic!("{error}"));
    for inputs in runs(&executable.signature().inputs) {
        let expected = reference(&module, &inputs);
        let shapes: Vec<&[usize]> = inputs.iter().map(Tensor::shape).collect();
        for threads in 0..=3 {
            let found = run(&model, &inputs, threads);
            assert_eq!(found.len(), expected.len());
            for (found, expected) in found.iter().zip(&expected) {
                let case = format!("{shapes:?} on {threads} threads");
                assert_eq!(found.shape(), expected.shape(), "{case}");
                assert_eq!(found.bytes().to_vec(), expected.bytes().to_vec(), "{case}");
            }
        }
    }
    executable
}
