//! Compiles a program and runs it.

use std::ffi::c_void;
use std::num::NonZeroUsize;
use std::sync::Arc;

use super::super::{build_kernel, pipeline_for, scratch_of};
use crate::backend::llvm::{
    jit::Jit,
    units::{CompileOptions, compile_units},
};
use crate::backend::{Emit, Kernel};
use crate::target::Target;
use tenon_eval::Tensor;
use tenon_ir::{Attrs, Build, BuildPrim, Context, DType, Expr, Function, Transaction, View};
use tenon_runtime::{
    dlpack::{DataType, TensorBuffer},
    parallel::{RawParallel, ThreadPool},
};

/// A program under construction.
pub(super) struct Program {
    pub(super) tx: Transaction,
    params: Vec<Expr>,
}

impl Program {
    pub(super) fn new() -> Program {
        Program { tx: Transaction::new(tenon_ir::Cx::new()), params: Vec::new() }
    }

    /// The next parameter: a buffer.
    pub(super) fn buffer(&mut self, name: &str, dtype: DType, shape: &[i64]) -> Expr {
        let buffer = self.made(name, dtype, shape, "");
        self.params.push(buffer);
        buffer
    }

    /// A buffer that the program makes.
    pub(super) fn made(&mut self, name: &str, dtype: DType, shape: &[i64], scope: &str) -> Expr {
        let ty = self.tx.cx().static_tensor_type(dtype, shape);
        self.tx.buffer(name, ty, scope)
    }

    pub(super) fn var(&mut self, name: &str) -> Expr {
        self.tx.scalar_var(name, DType::I64)
    }

    /// The finished program; the last `outputs` parameters are written.
    pub(super) fn finish(mut self, outputs: u32, body: Expr) -> Arc<Function> {
        let root = self.tx.prim_func(&self.params, outputs, body, Attrs::NONE);
        self.tx.set_root(root);
        self.tx.finish().unwrap()
    }
}

/// `func` in the form `emit`.
pub(super) fn compile(func: &Function, target: &Target, emit: Emit) -> Result<Vec<u8>, String> {
    let kernel = Kernel { name: "k", symbol: "k", function: func, intrinsics: &[] };
    let options = CompileOptions { emit, pipeline: pipeline_for(func), threads: 1 };
    compile_units(target, &options, &[kernel], |cx, kernel| build_kernel(cx, target, kernel))
        .map(|mut units| units.remove(0))
        .map_err(|error: crate::backend::BackendError| error.to_string())
}

/// Why `func` cannot be compiled.
pub(super) fn problem(func: &Function) -> String {
    compile(func, &Target::native().unwrap(), Emit::Object).unwrap_err()
}

/// Runs `func` for this machine on one thread.
pub(super) fn run(func: &Function, inputs: &[Tensor]) -> Vec<Tensor> {
    run_on(func, inputs, &Target::native().unwrap(), None)
}

/// Runs `func` on `threads` threads.
pub(super) fn run_parallel(func: &Function, inputs: &[Tensor], threads: usize) -> Vec<Tensor> {
    let pool = ThreadPool::new(NonZeroUsize::new(threads).unwrap()).unwrap();
    run_on(func, inputs, &Target::native().unwrap(), Some(&pool))
}

/// Runs `func`, compiled for `target`; the outputs are full of 0xa5 before.
pub(super) fn run_on(
    func: &Function,
    inputs: &[Tensor],
    target: &Target,
    pool: Option<&ThreadPool>,
) -> Vec<Tensor> {
    let object = compile(func, target, Emit::Object).unwrap_or_else(|error| panic!("{error}"));
    let kernel = Kernel { name: "k", symbol: "k", function: func, intrinsics: &[] };
    let scratch = scratch_of(&kernel).unwrap().bytes as i64;
    let mut scratch = TensorBuffer::zeros(&[scratch], DataType::U8).unwrap();
    let body = func.view();
    let View::PrimFunc { params, .. } = body.view(body.root()) else { panic!("no program") };
    let mut buffers: Vec<(DType, TensorBuffer)> = params
        .iter()
        .enumerate()
        .map(|(index, param)| {
            let (dtype, shape) = body.terms().static_tensor(body.ty(param).unwrap()).unwrap();
            let bytes = dtype.bytes(shape.iter().product::<i64>() as u64).unwrap();
            let mut buffer = TensorBuffer::zeros(&[bytes as i64], DataType::U8).unwrap();
            match inputs.get(index) {
                Some(input) => buffer.bytes_mut().copy_from_slice(input.bytes()),
                None => buffer.bytes_mut().fill(0xa5),
            }
            (dtype, buffer)
        })
        .collect();
    let mut pointers: Vec<*mut c_void> =
        buffers.iter_mut().map(|(_, buffer)| buffer.bytes_mut().as_mut_ptr().cast()).collect();
    pointers.push(scratch.bytes_mut().as_mut_ptr().cast());
    let parallel = pool.map_or(std::ptr::null(), |pool| std::ptr::from_ref(pool.raw()));
    let mut jit = Jit::new().unwrap();
    jit.add_object(&object).unwrap();
    assert_eq!(call(&jit, &pointers, parallel), 0);
    params
        .iter()
        .zip(buffers)
        .skip(inputs.len())
        .map(|(param, (dtype, buffer))| {
            let (_, shape) = body.terms().static_tensor(body.ty(param).unwrap()).unwrap();
            let shape = shape.iter().map(|&extent| extent as usize).collect();
            Tensor::new(dtype, shape, tenon_ir::Bytes::new(buffer.bytes().to_vec())).unwrap()
        })
        .collect()
}

fn call(jit: &Jit, p: &[*mut c_void], parallel: *const RawParallel) -> i32 {
    type P = *mut c_void;
    type T = *const RawParallel;
    macro_rules! call {
        ($($index:literal $ty:ty),*) => {{
            // SAFETY: the kernel's type: a pointer for each buffer, scratch, threads.
            let k: unsafe extern "C" fn($($ty,)* T) -> i32 = unsafe { jit.function("k") }.unwrap();
            // SAFETY: the buffers are as large as their types say, and live.
            unsafe { k($(p[$index],)* parallel) }
        }};
    }
    match p.len() {
        2 => call!(0 P, 1 P),
        3 => call!(0 P, 1 P, 2 P),
        4 => call!(0 P, 1 P, 2 P, 3 P),
        5 => call!(0 P, 1 P, 2 P, 3 P, 4 P),
        count => panic!("{count} pointers"),
    }
}
