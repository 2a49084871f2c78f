//! Small modules built by hand, run in this process and as a library.

use std::{ffi::c_void, num::NonZeroUsize, path::Path, process::Command, ptr::null};

use inkwell::{
    AddressSpace, IntPredicate,
    builder::{Builder, BuilderError},
    context::Context,
    intrinsics::Intrinsic,
    module::{Linkage, Module},
    values::{FunctionValue, GlobalValue, IntValue, PointerValue},
};

use super::{
    LlvmError,
    attributes::{Pointer, decorate, decorate_pointer},
    jit::Jit,
    units::{CompileOptions, Pipeline, compile_units},
};
use crate::backend::Emit;
use crate::object::{
    ObjectError,
    constants::ConstantArray,
    externals::NONE,
    link::{LinkForm, LinkPlan, Part, link},
    linker::{self, Linker},
    symbols,
};
use crate::target::Target;
use tenon_runtime::{
    library::ExportedLibrary,
    parallel::{RawParallel, ThreadPool},
};

/// The units of these tests.
#[derive(Debug, Clone, Copy)]
enum Unit {
    /// `void saxpy(float a, const float *x, float *y, int64_t n)`, a scalar loop.
    Saxpy,
    /// `int scale(const struct tenon_parallel *, float *y, int64_t blocks)`: adds the constant
    /// `weights` times itself to each block of 16 floats, in parallel.
    Scale,
    /// `float bad(float)`, which calls `expf`.
    CallsExp,
    /// `float odd(float)`, which calls `llvm.exp.f32`.
    ExpIntrinsic,
    /// A function that returns the wrong type.
    Malformed,
}

fn build<'cx>(target: &Target, cx: &'cx Context, unit: Unit) -> Result<Module<'cx>, LlvmError> {
    let module = cx.create_module(&format!("{unit:?}"));
    let built = match unit {
        Unit::Saxpy => build_saxpy(target, cx, &module),
        Unit::Scale => build_scale(target, cx, &module),
        Unit::CallsExp => build_call(cx, &module, "bad", "expf"),
        Unit::ExpIntrinsic => build_call(cx, &module, "odd", "llvm.exp.f32"),
        Unit::Malformed => build_malformed(cx, &module),
    };
    built.expect("the builder is positioned and the types agree");
    Ok(module)
}

fn build_saxpy<'cx>(
    target: &Target,
    cx: &'cx Context,
    module: &Module<'cx>,
) -> Result<(), BuilderError> {
    let (float, int) = (cx.f32_type(), cx.i64_type());
    let pointer = cx.ptr_type(AddressSpace::default());
    let parameters = [float.into(), pointer.into(), pointer.into(), int.into()];
    let func = module.add_function("saxpy", cx.void_type().fn_type(&parameters, false), None);
    decorate(func, target);
    decorate_pointer(func, 1, Pointer { noalias: true, readonly: true, ..Pointer::default() });
    decorate_pointer(func, 2, Pointer { noalias: true, ..Pointer::default() });
    let b = cx.create_builder();
    let [x, y] = [1, 2].map(|n| func.get_nth_param(n).unwrap().into_pointer_value());
    let a = func.get_nth_param(0).unwrap().into_float_value();
    let n = func.get_nth_param(3).unwrap().into_int_value();
    let fma = Intrinsic::find("llvm.fmuladd").unwrap().get_declaration(module, &[float.into()]);
    count_up(cx, &b, func, int.const_zero(), n, |i| {
        // SAFETY: the caller gives `n` elements, and `i` is below `n`.
        let [px, py] = [x, y].map(|p| unsafe { b.build_in_bounds_gep(float, p, &[i], "p") });
        let (px, py) = (px?, py?);
        let (x, y) = (b.build_load(float, px, "x")?, b.build_load(float, py, "y")?);
        let sum = b.build_call(fma.unwrap(), &[a.into(), x.into(), y.into()], "s")?;
        b.build_store(py, sum.try_as_basic_value().unwrap_basic()).map(drop)
    })?;
    b.build_return(None).map(drop)
}

fn build_scale<'cx>(
    target: &Target,
    cx: &'cx Context,
    module: &Module<'cx>,
) -> Result<(), BuilderError> {
    let (float, int, status) = (cx.f32_type(), cx.i64_type(), cx.i32_type());
    let vector = float.vec_type(16);
    let pointer = cx.ptr_type(AddressSpace::default());
    let b = cx.create_builder();
    let weights: GlobalValue = module.add_global(vector, None, "weights");

    // The body of the loop: int body(void *y, int64_t begin, int64_t end).
    let parameters = [pointer.into(), int.into(), int.into()];
    let body = module.add_function(
        "scale.body",
        status.fn_type(&parameters, false),
        Some(Linkage::Internal),
    );
    decorate(body, target);
    let y = body.get_nth_param(0).unwrap().into_pointer_value();
    let [begin, end] = [1, 2].map(|n| body.get_nth_param(n).unwrap().into_int_value());
    let fma = Intrinsic::find("llvm.fmuladd").unwrap().get_declaration(module, &[vector.into()]);
    count_up(cx, &b, body, begin, end, |i| {
        // SAFETY: the loop runs over the blocks that the caller has.
        let place = unsafe { b.build_in_bounds_gep(vector, y, &[i], "place") }?;
        let w = b.build_load(vector, weights.as_pointer_value(), "w")?;
        let old = b.build_load(vector, place, "old")?;
        let sum = b.build_call(fma.unwrap(), &[w.into(), w.into(), old.into()], "total")?;
        b.build_store(place, sum.try_as_basic_value().unwrap_basic()).map(drop)
    })?;
    b.build_return(Some(&status.const_zero()))?;

    // The function: calls `parallel_for` with it, or the body itself where there are no threads.
    let parameters = [pointer.into(), pointer.into(), int.into()];
    let func = module.add_function("scale", status.fn_type(&parameters, false), None);
    decorate(func, target);
    let [parallel, y] = [0, 1].map(|n| func.get_nth_param(n).unwrap().into_pointer_value());
    let n = func.get_nth_param(2).unwrap().into_int_value();
    let [entry, threads, alone] =
        ["entry", "threads", "alone"].map(|name| cx.append_basic_block(func, name));
    b.position_at_end(entry);
    let none = b.build_is_null(parallel, "none")?;
    b.build_conditional_branch(none, alone, threads)?;
    b.position_at_end(alone);
    let zero = int.const_zero();
    let result = b.build_call(body, &[y.into(), zero.into(), n.into()], "status")?;
    b.build_return(Some(&result.try_as_basic_value().unwrap_basic()))?;
    b.position_at_end(threads);
    let field = |offset: u64| -> Result<PointerValue<'cx>, BuilderError> {
        let offset = [int.const_int(offset, false)];
        // SAFETY: an offset within `struct tenon_parallel`.
        let place = unsafe { b.build_in_bounds_gep(cx.i8_type(), parallel, &offset, "field") }?;
        Ok(b.build_load(pointer, place, "value")?.into_pointer_value())
    };
    let (pool, parallel_for) = (field(0)?, field(16)?);
    let ty = status
        .fn_type(&[pointer.into(), pointer.into(), pointer.into(), int.into(), int.into()], false);
    let task = body.as_global_value().as_pointer_value();
    let arguments = [pool.into(), task.into(), y.into(), zero.into(), n.into()];
    let result = b.build_indirect_call(ty, parallel_for, &arguments, "status")?;
    b.build_return(Some(&result.try_as_basic_value().unwrap_basic())).map(drop)
}

fn build_call<'cx>(
    cx: &'cx Context,
    module: &Module<'cx>,
    name: &str,
    callee: &str,
) -> Result<(), BuilderError> {
    let ty = cx.f32_type().fn_type(&[cx.f32_type().into()], false);
    let func = module.add_function(name, ty, None);
    let callee = module.add_function(callee, ty, None);
    let b = cx.create_builder();
    b.position_at_end(cx.append_basic_block(func, "entry"));
    let result = b.build_call(callee, &[func.get_nth_param(0).unwrap().into()], "result")?;
    b.build_return(Some(&result.try_as_basic_value().unwrap_basic())).map(drop)
}

fn build_malformed<'cx>(cx: &'cx Context, module: &Module<'cx>) -> Result<(), BuilderError> {
    let func = module.add_function("malformed", cx.i32_type().fn_type(&[], false), None);
    let b = cx.create_builder();
    b.position_at_end(cx.append_basic_block(func, "entry"));
    b.build_return(None).map(drop)
}

/// `for (i = begin; i < end; ++i) body(i)` from a new entry block on; leaves the builder behind it.
fn count_up<'cx>(
    cx: &'cx Context,
    b: &Builder<'cx>,
    func: FunctionValue<'cx>,
    begin: IntValue<'cx>,
    end: IntValue<'cx>,
    body: impl FnOnce(IntValue<'cx>) -> Result<(), BuilderError>,
) -> Result<(), BuilderError> {
    let [entry, head, inside, after] =
        ["entry", "head", "inside", "after"].map(|name| cx.append_basic_block(func, name));
    b.position_at_end(entry);
    b.build_unconditional_branch(head)?;
    b.position_at_end(head);
    let i = b.build_phi(begin.get_type(), "i")?;
    let index = i.as_basic_value().into_int_value();
    let more = b.build_int_compare(IntPredicate::SLT, index, end, "more")?;
    b.build_conditional_branch(more, inside, after)?;
    b.position_at_end(inside);
    body(index)?;
    let next = b.build_int_nsw_add(index, begin.get_type().const_int(1, false), "next")?;
    b.build_unconditional_branch(head)?;
    i.add_incoming(&[(&begin, entry), (&next, inside)]);
    b.position_at_end(after);
    Ok(())
}

fn compile(target: &Target, emit: Emit, units: &[Unit]) -> Result<Vec<Vec<u8>>, LlvmError> {
    let options = CompileOptions { emit, pipeline: Pipeline::Default(3), threads: 2 };
    compile_units(target, &options, units, |cx, unit| build(target, cx, *unit))
}

fn text(target: &Target, emit: Emit, unit: Unit) -> String {
    String::from_utf8(compile(target, emit, &[unit]).unwrap().remove(0)).unwrap()
}

/// 1 to 16, on a boundary that vector loads like.
#[repr(align(64))]
struct Weights([f32; 16]);

static WEIGHTS: Weights = {
    let mut values = [0.0; 16];
    let mut i = 0;
    while i < 16 {
        values[i] = (i + 1) as f32;
        i += 1;
    }
    Weights(values)
};

impl Weights {
    fn bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|value| value.to_le_bytes()).collect()
    }
}

type Saxpy = unsafe extern "C" fn(f32, *const f32, *mut f32, i64);
type Scale = unsafe extern "C" fn(*const RawParallel, *mut f32, i64) -> i32;

fn check_saxpy(saxpy: Saxpy) {
    let x: Vec<f32> = (0..37).map(|i| i as f32).collect();
    let mut y = vec![1.0f32; 37];
    // SAFETY: both have 37 elements.
    unsafe { saxpy(2.0, x.as_ptr(), y.as_mut_ptr(), 37) };
    assert!(y.iter().zip(&x).all(|(y, x)| *y == 2.0 * x + 1.0), "{y:?}");
}

fn check_scale(scale: Scale) {
    let pool = ThreadPool::new(NonZeroUsize::new(2).unwrap()).unwrap();
    for parallel in [null(), pool.raw()] {
        let mut blocks: Vec<Weights> = (0..9).map(|i| Weights([i as f32; 16])).collect();
        // SAFETY: there are nine blocks, and the pool lives.
        let status = unsafe { scale(parallel, blocks.as_mut_ptr().cast(), 9) };
        assert_eq!(status, 0);
        for (i, block) in blocks.iter().enumerate() {
            for (value, w) in block.0.iter().zip(WEIGHTS.0) {
                assert_eq!(*value, i as f32 + w * w);
            }
        }
    }
}

#[test]
fn objects_run_in_this_process() {
    let target = Target::native().unwrap();
    let objects = compile(&target, Emit::Object, &[Unit::Saxpy, Unit::Scale]).unwrap();
    let mut jit = Jit::new().unwrap();
    // SAFETY: a static of the type that the code reads.
    unsafe { jit.define("weights", (&raw const WEIGHTS).cast::<c_void>()) }.unwrap();
    for object in &objects {
        jit.add_object(object).unwrap();
    }
    // SAFETY: the type of `saxpy`, called while the JIT lives.
    check_saxpy(unsafe { jit.function("saxpy") }.unwrap());
    // SAFETY: the type of `scale`, called while the JIT lives.
    check_scale(unsafe { jit.function("scale") }.unwrap());
}

/// Links saxpy, scale and the weights into `k.so` in `directory`.
fn export(linker: &Linker, directory: &Path) -> Result<std::path::PathBuf, ObjectError> {
    let target = Target::native().unwrap();
    let objects = compile(&target, Emit::Object, &[Unit::Saxpy, Unit::Scale]).unwrap();
    let weights = WEIGHTS.bytes();
    let constants = [ConstantArray::new("weights", &weights)];
    let output = directory.join("k.so");
    let parts = [Part::Object(&objects[0]), Part::Object(&objects[1]), Part::Constants(&constants)];
    let exports = ["saxpy", "scale"];
    let form = LinkForm::Library;
    let plan = LinkPlan {
        target: &target,
        form,
        parts: &parts,
        exports: &exports,
        name: &output,
        externals: &NONE,
    };
    link(linker, &plan, &output)?;
    Ok(output)
}

#[test]
fn the_same_objects_run_as_a_library() {
    let directory = tempfile::tempdir().unwrap();
    let output = export(&Linker::find().unwrap(), directory.path()).unwrap();
    // SAFETY: we have just made it.
    let library = unsafe { ExportedLibrary::open(&output) }.unwrap();
    // SAFETY: the type of `saxpy`, called while the library is open.
    check_saxpy(unsafe { library.function("saxpy") }.unwrap());
    // SAFETY: the type of `scale`, called while the library is open.
    check_scale(unsafe { library.function("scale") }.unwrap());
    for hidden in ["weights", "scale.body"] {
        assert!(library.symbol(hidden).is_err(), "{hidden} is hidden");
    }
    let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().flatten().collect();
    assert_eq!(left.len(), 1, "nothing but the library: {left:?}");
}

#[test]
fn a_library_in_the_place_of_a_loaded_one_is_another_one() {
    let directory = tempfile::tempdir().unwrap();
    let linker = Linker::find().unwrap();
    let output = export(&linker, directory.path()).unwrap();
    // SAFETY: we have just made it, here and below.
    let [first, again] = [0, 1].map(|_| unsafe { ExportedLibrary::open(&output) }.unwrap());
    assert_eq!(first.symbol("scale").unwrap(), again.symbol("scale").unwrap());
    export(&linker, directory.path()).unwrap();
    // SAFETY: as above.
    let [second, third] = [0, 1].map(|_| unsafe { ExportedLibrary::open(&output) }.unwrap());
    for library in [&second, &third] {
        assert_ne!(first.symbol("scale").unwrap(), library.symbol("scale").unwrap());
        // SAFETY: the type of `scale`, called while the library is open.
        check_scale(unsafe { library.function("scale") }.unwrap());
    }
    drop((first, again, second, third));
    // SAFETY: as above.
    let last = unsafe { ExportedLibrary::open(&output) }.unwrap();
    // SAFETY: the type of `scale`, called while the library is open.
    check_scale(unsafe { last.function("scale") }.unwrap());
}

#[test]
fn every_linker_of_this_machine_will_do() {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories: Vec<_> = std::env::split_paths(&path).collect();
    let candidates = ["ld.lld-22", "cc"];
    let mut linkers: Vec<Linker> = candidates
        .iter()
        .filter_map(|name| directories.iter().map(|d| d.join(name)).find(|path| path.is_file()))
        .map(|path| Linker::at(&path))
        .collect();
    linkers.extend(linker::rust_lld(&directories).map(|path| Linker::at(&path)));
    for linker in &linkers {
        let directory = tempfile::tempdir().unwrap();
        let output = export(linker, directory.path())
            .unwrap_or_else(|error| panic!("{}: {error}", linker.program().display()));
        // SAFETY: we have just made it.
        let library = unsafe { ExportedLibrary::open(&output) }.unwrap();
        // SAFETY: the type of `scale`, called while the library is open.
        check_scale(unsafe { library.function("scale") }.unwrap());
    }
}

#[test]
fn a_c_program_can_link_the_library() {
    let directory = tempfile::tempdir().unwrap();
    let output = export(&Linker::find().unwrap(), directory.path()).unwrap();
    let source = directory.path().join("main.c");
    let program = directory.path().join("main");
    let code = "void saxpy(float, const float *, float *, long);\n\
                int main(void) { float x[3] = {1, 2, 3}, y[3] = {1, 1, 1};\n\
                saxpy(2, x, y, 3); return y[2] == 7 ? 0 : 1; }\n";
    std::fs::write(&source, code).unwrap();
    let compiled = Command::new("cc").arg(&source).arg(&output).arg("-o").arg(&program).status();
    let Ok(compiled) = compiled else {
        eprintln!("skipped: no C compiler here");
        return;
    };
    assert!(compiled.success());
    let status = Command::new(&program).env("LD_LIBRARY_PATH", directory.path()).status().unwrap();
    assert!(status.success());
}

#[test]
fn an_unlowered_libm_call_is_our_error() {
    let target = Target::native().unwrap();
    let object = compile(&target, Emit::Object, &[Unit::CallsExp]).unwrap().remove(0);
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("k.so");
    let parts = [Part::Object(&object)];
    let form = LinkForm::Library;
    let plan = LinkPlan {
        target: &target,
        form,
        parts: &parts,
        exports: &["bad"],
        name: &output,
        externals: &NONE,
    };
    let error = link(&Linker::find().unwrap(), &plan, &output).unwrap_err().to_string();
    assert!(error.contains("`expf`") && error.contains("`memcpy`"), "{error}");

    let mut jit = Jit::new().unwrap();
    jit.add_object(&object).unwrap();
    let error = jit.lookup("bad").unwrap_err().to_string();
    assert!(error.contains("expf"), "{error}");
}

#[test]
fn modules_that_llvm_would_die_of_are_errors() {
    let target = Target::native().unwrap();
    let error = compile(&target, Emit::Object, &[Unit::ExpIntrinsic]).unwrap_err().to_string();
    assert!(error.contains("llvm.exp.f32"), "{error}");
    let units = [Unit::Saxpy, Unit::Malformed, Unit::ExpIntrinsic];
    let error = compile(&target, Emit::Object, &units).unwrap_err();
    assert!(matches!(&error, LlvmError::InvalidModule { unit, .. } if unit == "Malformed"));
    assert!(error.to_string().contains("return type"), "{error}");
    let options = CompileOptions {
        pipeline: Pipeline::Passes("no-such-pass".to_owned()),
        ..CompileOptions::default()
    };
    let result = compile_units(&target, &options, &[Unit::Saxpy], |cx, u| build(&target, cx, *u));
    let error = result.unwrap_err().to_string();
    assert!(error.contains("no-such-pass"), "{error}");
}

#[test]
fn vectors_are_as_wide_as_the_target_says() {
    for (target, register, others) in [
        ("x86_64-linux-gnu,cpu=znver4", "zmm", &[][..]),
        ("x86_64-linux-gnu,cpu=znver4,vector-width=256", "ymm", &["zmm"]),
        ("x86_64-linux-gnu,cpu=haswell", "ymm", &["zmm"]),
        ("x86_64-linux-gnu", "xmm", &["zmm", "ymm"]),
        ("aarch64-linux-gnu", "fmla\tv", &["zmm"]),
    ] {
        let assembly = text(&target.parse().unwrap(), Emit::Assembly, Unit::Saxpy);
        assert!(assembly.contains(register), "{target}: {assembly}");
        assert!(others.iter().all(|other| !assembly.contains(other)), "{target}: {assembly}");
    }
}

#[test]
fn every_pipeline_gives_the_same_function() {
    let target = Target::native().unwrap();
    let own = Pipeline::Passes("function(instcombine,simplifycfg)".to_owned());
    for pipeline in [Pipeline::None, Pipeline::Lean, Pipeline::Default(1), own] {
        let options = CompileOptions { pipeline, ..CompileOptions::default() };
        let units = [Unit::Saxpy, Unit::Scale];
        let objects = compile_units(&target, &options, &units, |cx, u| build(&target, cx, *u));
        let objects: Vec<Vec<u8>> = objects.unwrap_or_else(|error: LlvmError| panic!("{error}"));
        let mut jit = Jit::new().unwrap();
        // SAFETY: a static of the type that the code reads.
        unsafe { jit.define("weights", (&raw const WEIGHTS).cast::<c_void>()) }.unwrap();
        objects.iter().for_each(|object| jit.add_object(object).unwrap());
        // SAFETY: the type of `saxpy`, called while the JIT lives.
        check_saxpy(unsafe { jit.function("saxpy") }.unwrap());
        // SAFETY: the type of `scale`, called while the JIT lives.
        check_scale(unsafe { jit.function("scale") }.unwrap());
    }
}

#[test]
fn every_form_can_be_had() {
    let target = Target::native().unwrap();
    let raw = text(&target, Emit::RawText, Unit::Saxpy);
    assert!(raw.contains("@llvm.fmuladd.f32(float") && raw.contains("target triple"), "{raw}");
    assert!(text(&target, Emit::Text, Unit::Saxpy).contains("vector.body"));
    let malformed = text(&target, Emit::RawText, Unit::Malformed);
    assert!(malformed.contains("ret void"), "a module that is refused can be looked at");
}

#[test]
fn the_jit_says_what_is_missing_or_wrong() {
    let mut jit = Jit::new().unwrap();
    let error = jit.lookup("nothing").unwrap_err().to_string();
    assert!(error.contains("nothing"), "{error}");
    assert!(jit.lookup("a\0b").is_err());
    assert!(jit.add_object(b"no object at all").is_err());
    // SAFETY: nothing uses them.
    let twice = unsafe { jit.define_all(&[("twice", null()), ("memcpy", null())]) };
    assert!(twice.unwrap_err().to_string().contains("memcpy"));
}

#[test]
fn the_c_library_is_there_for_what_llvm_calls() {
    let target = Target::native().unwrap();
    let options = CompileOptions::default();
    let object = compile_units(&target, &options, &[()], |cx, ()| Ok::<_, LlvmError>(clearing(cx)))
        .unwrap()
        .remove(0);
    let mut jit = Jit::new().unwrap();
    jit.add_object(&object).unwrap();
    // SAFETY: the type of `clear`, called while the JIT lives.
    let clear: unsafe extern "C" fn(*mut u8, i64) = unsafe { jit.function("clear") }.unwrap();
    let mut bytes = [1u8; 1000];
    // SAFETY: there are a thousand.
    unsafe { clear(bytes.as_mut_ptr(), 1000) };
    assert_eq!(bytes, [0; 1000]);

    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("k.so");
    let parts = [Part::Object(&object)];
    let form = LinkForm::Library;
    let plan = LinkPlan {
        target: &target,
        form,
        parts: &parts,
        exports: &["clear"],
        name: &output,
        externals: &NONE,
    };
    link(&Linker::find().unwrap(), &plan, &output).unwrap();
    let file = std::fs::read(&output).unwrap();
    assert_eq!(symbols::undefined("k.so", &file).unwrap(), ["memset"]);
}

/// `void clear(char *, int64_t)`, by `memset`.
fn clearing(cx: &Context) -> Module<'_> {
    let module = cx.create_module("clear");
    let (pointer, int) = (cx.ptr_type(AddressSpace::default()), cx.i64_type());
    let ty = cx.void_type().fn_type(&[pointer.into(), int.into()], false);
    let func = module.add_function("clear", ty, None);
    let b = cx.create_builder();
    b.position_at_end(cx.append_basic_block(func, "entry"));
    let place = func.get_nth_param(0).unwrap().into_pointer_value();
    let count = func.get_nth_param(1).unwrap().into_int_value();
    b.build_memset(place, 1, cx.i8_type().const_zero(), count).unwrap();
    b.build_return(None).unwrap();
    module
}
