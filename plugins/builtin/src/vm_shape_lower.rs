//! Keeps the dimensions of a function on a heap of integers, which its arguments' shapes fill at run time.
//!
//! ```ir
//! fn @main(%x: f32[n, 4], %y: f32[2*n]) -> f32[2*n] {
//!   %size: i64 = …
//!   %storage: object<storage> = vm.alloc_storage(%size) { align = 64 }
//!   %a: f32[2*n] = vm.alloc_tensor(%storage, dim(0), shape(2*n)) { dtype = "f32" }
//!   …
//! ```
//! becomes
//! ```ir
//! fn @main(%x: f32[n, 4], %y: f32[2*n]) -> f32[2*n] { matches_parameters = true } {
//!   %heap: i64[2] = vm.alloc_shape_heap() { slots = 2 }
//!   %matched: () = vm.match_shape(%x, %heap) { codes = ["store", "assert_imm"], operands = [0, 4], … }
//!   %matched_1: () = vm.match_shape(%y) { codes = ["no_op"], operands = [0], … }
//!   %computed: () = @shape_func(%heap)
//!   %matched_2: () = vm.match_shape(%y, %heap) { codes = ["assert_load"], operands = [1], … }
//!   %shape: shape[2*n] = vm.make_shape(%heap) { codes = ["load"], operands = [1], … }
//!   …
//!   %a: f32[2*n] = vm.alloc_tensor(%storage, dim(0), %shape) { dtype = "f32" }
//!   …
//! }
//!
//! private prim @shape_func(out %heap: i64[2]) {
//!   %heap[1] = 2 * %heap[0]
//! }
//! ```
//!
//! There is a slot for each distinct dimension that is no integer. A parameter that has a symbol as a dimension
//! gives it its value; what follows is compared with it; what is an expression of symbols is computed by one tensor
//! program, and then compared. An expression whose symbols no parameter gives is itself taken from the first that has
//! it. All is known at the beginning of the function, so shapes are made there.
//!
//! What types leave open is compared as well: what is declared of a variable or of the result beyond what its value
//! says, what a closure gives, and what is passed to a tensor program, whose code compares nothing.
//!
//! No code depends on a symbol then: they stay in types, which say what is known, and in messages. The attribute
//! `matches_parameters` says that the function compares its arguments itself. One without symbols and without such
//! declarations is left alone: its arguments are compared with its type.
//!
//! Attributes have no dimensions any more where `relax.VMBuiltinLower` ran before.

mod heap;

use std::collections::{BTreeMap, HashMap};

use tenon_plugin_api::ir::{DimView, Substitution, Terms};
use tenon_plugin_api::prelude::*;

use crate::dims::{is_symbolic, symbols};
use crate::entry::{enter, refuse_nested};
use heap::{Checked, Heap, checked, compared};

/// The attribute of a function that compares its arguments itself.
const MATCHES_PARAMETERS: &str = "matches_parameters";

/// Keeps the dimensions of a function on a heap, which its arguments' shapes fill at run time.
#[pass(
    name = "relax.VMShapeLower",
    aliases = ["relax.transform.VMShapeLower"],
    phase = "builtin",
    after = ["relax.VMBuiltinLower", "relax.ComputePrimValue"],
    idempotent = true
)]
fn vm_shape_lower(mut module: Module, cx: &PassContext) -> Result<Module> {
    let terms = cx.terms();
    module.map_functions(cx, |module, name, func| {
        if terms.attrs(func.attrs()).bool(MATCHES_PARAMETERS) == Some(true) {
            return Ok(func);
        }
        let code = Code::of(&func, terms.str(name), module, cx)?;
        if code.is_static {
            return Ok(func);
        }
        refuse_nested(&func, terms.str(name))?;
        lower(&func, terms.str(name), &code, module, cx)
    })?;
    Ok(module)
}

/// An argument of a tensor program that may be another than the program takes.
struct Passed {
    arg: Expr,
    /// What the program takes, with the symbols of the caller, and what is known of the argument.
    types: (Type, Option<Type>),
    what: String,
}

/// What depends on shapes in a function.
#[derive(Default)]
struct Code {
    /// Shapes of which a dimension is no integer.
    shapes: Vec<(Expr, Type)>,
    /// Dimensions that are passed on and are no integers.
    dims: Vec<(Expr, Dim)>,
    /// Variables of which more is declared than is known of their values: both.
    declared: BTreeMap<Expr, (Type, Option<Type>)>,
    /// For a variable, what its value passes to a tensor program that may not fit.
    passed: BTreeMap<Expr, Vec<Passed>>,
    /// The type of the result and that of its value, when more is declared than the latter says.
    result: Option<(Type, Option<Type>)>,
    /// Whether there is nothing of all that, and no parameter has a symbol.
    is_static: bool,
}

impl Code {
    fn of(func: &Function, name: &str, module: &Module, cx: &PassContext) -> Result<Self> {
        let body = func.view();
        let terms = body.terms();
        let mut known = HashMap::new();
        let mut code = Self::default();
        for expr in body.post_order() {
            match body.view(expr) {
                View::Shape { ty } if is_symbolic(terms, ty, &mut known) => {
                    code.shapes.push((expr, ty));
                }
                View::Prim { dim } if terms.dim_value(dim).is_none() => code.dims.push((expr, dim)),
                View::Let(bindings) => {
                    for (var, value) in bindings.bindings() {
                        // A closure may be any function of its type, which leaves dimensions open.
                        let is_sure = !is_closure_call(body, value);
                        let known = body.ty(value).filter(|_| is_sure);
                        let ty = body.ty(var).filter(|&ty| !compared(terms, ty, known).is_empty());
                        code.declared.extend(ty.map(|ty| (var, (ty, known))));
                        let passed = passed(body, value, module, cx);
                        if !passed.is_empty() {
                            code.passed.insert(var, passed);
                        }
                    }
                }
                View::Call { callee, attrs, .. } => {
                    let op = body.op_name(callee).unwrap_or("a call");
                    // A name with a dot is a note of a pass's, not an attribute of the operator.
                    let mut attrs =
                        terms.attrs(attrs).iter().filter(|(name, _)| !name.contains('.'));
                    if !attrs.any(|(_, value)| is_symbolic(terms, value, &mut known)) {
                        continue;
                    }
                    let message = format!(
                        "in `@{name}` an attribute of `{op}` has a dimension that is no integer; \
                         run relax.VMBuiltinLower before"
                    );
                    return Err(PassError::new(message).at(expr));
                }
                View::Function { body: value, result, .. } => {
                    let known = body.ty(value);
                    let ty = result.filter(|&ty| !compared(terms, ty, known).is_empty());
                    code.result = ty.map(|ty| (ty, known));
                }
                _ => {}
            }
        }
        let mut params = func.param_types().into_iter().flatten();
        code.is_static = code.shapes.is_empty()
            && code.dims.is_empty()
            && code.declared.is_empty()
            && code.passed.is_empty()
            && code.result.is_none()
            && !params.any(|ty| is_symbolic(terms, ty, &mut known));
        Ok(code)
    }
}

fn lower(
    func: &Function,
    name: &str,
    code: &Code,
    module: &mut Module,
    cx: &PassContext,
) -> Result<Function> {
    let terms = cx.terms();
    let body = func.view();
    let View::Function { params, .. } = body.view(body.root()) else { return Ok(func.clone()) };
    let mut rw = func.edit();
    let mut fields = LetList::new();
    let params: Vec<Checked> = params
        .iter()
        .flat_map(|param| {
            let Some(ty) = body.ty(param) else { return Vec::new() };
            let path = format!("%{}", name_of(&rw, param));
            let what = |path: &str| format!("parameter `{path}` of `@{name}`");
            checked(&mut rw, &mut fields, param, (ty, None), path, what)
        })
        .collect();

    let here = format!("`@{name}`");
    let mut heap = Heap::new(terms, &params);
    let first: Vec<_> = params.iter().map(|param| heap.read(param.dims(terms))).collect();
    for param in &params {
        heap.place(param.dims(terms), &param.what)?;
    }
    for (_, ty) in &code.shapes {
        heap.place(dims_of(terms, *ty), &here)?;
    }
    for (_, dim) in &code.dims {
        heap.place(&[*dim], &here)?;
    }
    let passed = code.passed.values().flatten().map(|passed| &passed.types);
    for &(ty, known) in code.declared.values().chain(&code.result).chain(passed) {
        for ty in compared(terms, ty, known) {
            heap.place(dims_of(terms, ty), &here)?;
        }
    }

    let mut list = LetList::new();
    let memory = heap.alloc(&mut rw, &mut list);
    for (is_dataflow, var, value) in fields.iter() {
        list.bind(is_dataflow, var, value);
    }
    for (param, steps) in params.iter().zip(&first) {
        param.check(&mut rw, &mut list, memory, steps);
    }
    if let (Some(memory), Some(program)) = (memory, heap.program(cx)?) {
        let name = module.fresh_name("shape_func");
        module.insert(name, &program);
        let callee = rw.named(Kind::GLOBAL, name);
        let call = rw.call(callee, &[memory], Attrs::NONE, Some(cx.tuple_type(&[])));
        list.bind_new(&mut rw, false, "computed", call);
    }
    for (param, steps) in params.iter().zip(&first) {
        if let Some(rest) = heap.rest(param.dims(terms), steps) {
            param.check(&mut rw, &mut list, memory, &rest);
        }
    }
    let mut shapes: HashMap<Type, Expr> = HashMap::new();
    for &(expr, ty) in &code.shapes {
        let shape = *shapes.entry(ty).or_insert_with(|| heap.shape(&mut rw, &mut list, memory, ty));
        rw.replace(expr, shape);
    }
    let mut dims: HashMap<Dim, Expr> = HashMap::new();
    for &(expr, dim) in &code.dims {
        let value = *dims.entry(dim).or_insert_with(|| heap.load(&mut rw, &mut list, memory, dim));
        rw.replace(expr, value);
    }

    let compare = |rw: &mut Rewriter, list: &mut LetList, value, types, (of, at): (&str, &str)| {
        let what = |path: &str| format!("{of}{path}{at}");
        for declared in checked(rw, list, value, types, String::new(), what) {
            let steps = heap.compare(declared.dims(terms));
            declared.check(rw, list, memory, &steps);
        }
    };
    let bind = |rw: &mut Rewriter, list: &mut LetList, (is_dataflow, var, value)| {
        for passed in code.passed.get(&var).into_iter().flatten() {
            compare(rw, list, passed.arg, passed.types, (&passed.what, ""));
        }
        list.bind(is_dataflow, var, value);
        if let Some(&types) = code.declared.get(&var) {
            let what = format!("`%{}", name_of(rw, var));
            compare(rw, list, var, types, (&what, &format!("` in {here}")));
        }
    };
    let outermost = func.result();
    for expr in body.post_order().filter(|&expr| body.kind(expr) == Kind::LET) {
        if Some(expr) != outermost {
            rw.rewrite_bindings(expr, |rw, list, is_dataflow, var, value| {
                bind(rw, list, (is_dataflow, var, value));
                Ok(())
            })?;
        }
    }
    let attrs = cx.with_attr(func.attrs(), MATCHES_PARAMETERS, true.into());
    enter(rw, func, list, attrs, bind, |rw, list, result| {
        if let Some(types) = code.result {
            compare(rw, list, result, types, ("the result", &format!(" of {here}")));
        }
    })
}

/// Whether a value is what a closure gives.
fn is_closure_call(body: BodyView<'_>, value: Expr) -> bool {
    match body.view(value) {
        View::Call { callee, .. } => body.op_name(callee) == Some("vm.invoke_closure"),
        _ => false,
    }
}

/// What a call passes to a tensor program that may be another than the program takes.
fn passed(body: BodyView<'_>, call: Expr, module: &Module, cx: &PassContext) -> Vec<Passed> {
    let terms = body.terms();
    let View::Call { callee, args, .. } = body.view(call) else { return Vec::new() };
    let View::Global { name } = body.view(callee) else { return Vec::new() };
    let Some(program) = module.get(name).filter(|callee| callee.is_prim()) else {
        return Vec::new();
    };
    let pairs: Vec<(Type, Expr, Type)> = program
        .param_types()
        .into_iter()
        .zip(args.iter())
        .filter_map(|(param, arg)| Some((param?, arg, body.ty(arg)?)))
        .collect();
    let mut substitution = Substitution::new();
    for &(param, _, given) in &pairs {
        substitution.match_type(cx, param, given);
    }
    let mut found = Vec::new();
    for (index, (param, arg, given)) in pairs.into_iter().enumerate() {
        // A symbol that no argument gives is the program's own.
        let is_given = |&dim: &Dim| {
            symbols(terms, dim).iter().all(|&symbol| match terms.dim(symbol) {
                DimView::Symbol(name) => substitution.get(name).is_some(),
                _ => true,
            })
        };
        if !dims_of(terms, param).iter().all(is_given) {
            continue;
        }
        let types = (Type(substitution.apply(cx, param).0), Some(given));
        if !compared(terms, types.0, types.1).is_empty() {
            let what = format!("argument {} of `@{}`", index + 1, terms.str(name));
            found.push(Passed { arg, types, what });
        }
    }
    found
}

fn name_of(rw: &Rewriter, var: Expr) -> String {
    match rw.view(var) {
        View::Var { name } => rw.terms().str(name).to_owned(),
        _ => String::new(),
    }
}

/// The dimensions of a tensor or shape of known rank.
fn dims_of(terms: Terms<'_>, ty: Type) -> &[Dim] {
    match terms.ty(ty) {
        TypeView::Tensor { dims: Some(dims), .. } | TypeView::Shape(Some(dims)) => dims,
        _ => &[],
    }
}
