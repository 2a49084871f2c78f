//! Cases: a function with one call, its inputs, and what comes out.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use tenon_compiler::diagnostics::Source;
use tenon_compiler::eval::Tensor;
use tenon_compiler::infer::infer_module;
use tenon_compiler::io::{Array, NpyType, read_npz};
use tenon_compiler::ir::{Bytes, Context, DType, Expr, Function, Module, Symbol, Type, View};
use tenon_compiler::text::{NoWeights, parse_module};

use super::compiled;
use super::fill::fill;

/// A case.
pub(crate) struct Case {
    /// Its name, which is that of its function.
    pub(crate) name: String,
    /// The module whose only function `main` it is.
    pub(crate) module: Module,
    /// The same with a symbol for each extent of the parameters, equal ones for equal extents; `None` where the operator
    /// is none of such shapes.
    pub(crate) dynamic: Option<Module>,
    /// The values of the parameters.
    pub(crate) inputs: Vec<Tensor>,
    expected: Vec<Tensor>,
}

/// How far a result may be from what is expected: `atol + rtol * |expected|`.
#[derive(Clone, Copy)]
pub(crate) struct Tolerance {
    pub(crate) rtol: f64,
    pub(crate) atol: f64,
}

/// The cases of a file.
pub(crate) struct Family {
    /// The name of the file.
    pub(crate) name: String,
    pub(crate) cases: Vec<Case>,
}

/// All families in a folder.
pub(crate) fn families(folder: &Path) -> Vec<Family> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("the folder of cases is there")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "ir"))
        .collect();
    files.sort();
    let name = |file: &Path| file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    files.iter().map(|file| Family { name: name(file), cases: cases(file) }).collect()
}

fn cases(file: &Path) -> Vec<Case> {
    let written = read(&fs::read_to_string(file).expect("a family can be read"));
    let module = match infer_module(&written) {
        Ok(module) => module,
        Err(errors) => panic!("{}: {}", file.display(), errors[0].1),
    };
    let arrays = read_npz(&file.with_extension("npz")).expect("the expected numbers can be read");
    let mut expected: HashMap<String, Array> = arrays.into_iter().collect();
    let cases = module.iter().map(|(name, func)| {
        let name = module.cx().terms().str(name).to_owned();
        let expected = (0..)
            .map_while(|index| expected.remove(&format!("{name}/{index}")))
            .map(tensor)
            .collect();
        let mut main = Module::new(module.cx().clone());
        main.insert(module.cx().symbol("main"), func.clone());
        let dynamic = written.get_str(&name).and_then(|func| {
            let mut main = Module::new(module.cx().clone());
            main.insert(module.cx().symbol("main"), symbolic(func)?);
            infer_module(&main).ok()
        });
        let inputs = func.params().iter().map(|&param| input(&name, func, param)).collect();
        Case { name, module: main, dynamic, inputs, expected }
    });
    cases.collect()
}

/// The function with symbols for the extents of its parameters: `s3` for 3. What is 1 stays, because it broadcasts.
fn symbolic(func: &Arc<Function>) -> Option<Arc<Function>> {
    let (body, cx) = (func.view(), func.cx());
    let mut types: Vec<Type> =
        (0..body.len()).map(|node| body.ty(Expr(node as u32)).unwrap_or(Type(0))).collect();
    let params = func.params();
    for &param in &params {
        let (dtype, shape) = cx.terms().static_tensor(body.ty(param)?)?;
        let dim = |&extent: &i64| match extent {
            2.. => cx.dim_symbol(&format!("s{extent}")),
            extent => cx.dim(extent),
        };
        let dims: Vec<_> = shape.iter().map(dim).collect();
        types[param.index()] = cx.tensor_type(dtype, &dims);
    }
    let is_changed = params.iter().any(|param| body.ty(*param) != Some(types[param.index()]));
    is_changed.then(|| func.with_types(&types))
}

/// Reads a module from text.
pub(crate) fn read(text: &str) -> Module {
    match parse_module(&compiled::cx(), &Source::new("suite", text), &mut NoWeights) {
        Ok(module) => module,
        Err(errors) => panic!("{}", errors.render(false)),
    }
}

fn tensor(array: Array) -> Tensor {
    let dtype = match array.dtype {
        NpyType::Bool => DType::BOOL,
        NpyType::I8 => DType::I8,
        NpyType::I16 => DType::I16,
        NpyType::I32 => DType::I32,
        NpyType::I64 => DType::I64,
        NpyType::U8 => DType::U8,
        NpyType::U16 => DType::U16,
        NpyType::U32 => DType::U32,
        NpyType::U64 => DType::U64,
        NpyType::F16 => DType::F16,
        NpyType::BF16 => DType::BF16,
        NpyType::F32 => DType::F32,
        NpyType::F64 => DType::F64,
    };
    Tensor::new(dtype, array.shape, Bytes::new(array.data)).expect("an array has its bytes")
}

/// The value of a parameter: see `make_suite.py`.
fn input(case: &str, func: &Function, param: Expr) -> Tensor {
    let body = func.view();
    let View::Var { name } = body.view(param) else { panic!("a parameter is a variable") };
    let name = body.terms().str(Symbol(name.0));
    let (dtype, shape) = body
        .ty(param)
        .and_then(|ty| body.terms().static_tensor(ty))
        .expect("an input has a static type");
    let shape: Vec<usize> = shape.iter().map(|&dim| dim as usize).collect();
    let x = fill(&format!("{case}/{name}"), shape.iter().product());
    let float = |x: &f32| match name {
        _ if name.starts_with("pos") => x + 1.0625,
        _ if name.starts_with("small") => x / 64.0,
        _ => 4.0 * x,
    };
    let int = |x: &f32| {
        let x = (8.0 * if dtype.is_signed() { *x } else { x + 1.0 }).floor() as i64;
        if name == "nonzero" && x >= 0 { x + 1 } else { x }
    };
    let bytes: Vec<u8> = x
        .iter()
        .flat_map(|x| match dtype {
            DType::BOOL => vec![(*x > 0.0) as u8],
            DType::F32 => float(x).to_le_bytes().to_vec(),
            DType::F64 => (float(x) as f64).to_le_bytes().to_vec(),
            DType::F16 => half::f16::from_f32(float(x)).to_le_bytes().to_vec(),
            DType::BF16 => half::bf16::from_f32(float(x)).to_le_bytes().to_vec(),
            _ => int(x).to_le_bytes()[..dtype.bits() as usize / 8].to_vec(),
        })
        .collect();
    Tensor::new(dtype, shape, Bytes::new(bytes)).expect("as many bytes as the shape says")
}

impl Case {
    /// Compares results with what is expected.
    pub(crate) fn check(&self, found: &[Tensor], tolerance: Tolerance) -> Result<(), String> {
        if found.len() != self.expected.len() {
            return Err(format!("{} results instead of {}", found.len(), self.expected.len()));
        }
        for (index, (found, expected)) in found.iter().zip(&self.expected).enumerate() {
            if (found.dtype(), found.shape()) != (expected.dtype(), expected.shape()) {
                return Err(format!(
                    "result {index} is {}{:?} instead of {}{:?}",
                    found.dtype(),
                    found.shape(),
                    expected.dtype(),
                    expected.shape()
                ));
            }
            let (values, wanted) = (numbers(found), numbers(expected));
            let wrong: Vec<usize> = (0..wanted.len())
                .filter(|&at| !is_close(values[at], wanted[at], tolerance.of(expected.dtype())))
                .collect();
            if let Some(&at) = wrong.first() {
                return Err(format!(
                    "{} of {} elements of result {index} are wrong; the first is element {at}: {} \
                     instead of {}",
                    wrong.len(),
                    wanted.len(),
                    values[at],
                    wanted[at]
                ));
            }
        }
        Ok(())
    }
}

impl Tolerance {
    /// The tolerance for elements of a type: a few units in the last place at least, none for integers.
    fn of(self, dtype: DType) -> Tolerance {
        match dtype {
            DType::F16 => Tolerance { rtol: self.rtol.max(2e-3), atol: self.atol.max(1e-3) },
            _ if dtype.is_float() => self,
            _ => Tolerance { rtol: 0.0, atol: 0.0 },
        }
    }
}

fn is_close(found: f64, expected: f64, tolerance: Tolerance) -> bool {
    found == expected
        || found.is_nan() && expected.is_nan()
        || (found - expected).abs() <= tolerance.atol + tolerance.rtol * expected.abs()
}

fn numbers(tensor: &Tensor) -> Vec<f64> {
    fn all<T: tenon_compiler::eval::Element>(tensor: &Tensor, f: impl Fn(T) -> f64) -> Vec<f64> {
        tensor.elements::<T>().iter().map(|&x| f(x)).collect()
    }
    match tensor.dtype() {
        DType::F64 => all(tensor, |x: f64| x),
        DType::F32 => all(tensor, |x: f32| x as f64),
        DType::F16 => all(tensor, half::f16::to_f64),
        DType::I8 => all(tensor, |x: i8| x as f64),
        DType::I16 => all(tensor, |x: i16| x as f64),
        DType::I32 => all(tensor, |x: i32| x as f64),
        DType::I64 => all(tensor, |x: i64| x as f64),
        DType::U8 | DType::BOOL => all(tensor, |x: u8| x as f64),
        DType::U16 => all(tensor, |x: u16| x as f64),
        DType::U32 => all(tensor, |x: u32| x as f64),
        DType::U64 => all(tensor, |x: u64| x as f64),
        other => panic!("elements of {other} are not compared"),
    }
}
