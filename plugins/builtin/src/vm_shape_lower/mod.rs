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
//! it. All is known at the beginning of the function, so shapes are made there. What is declared of a tensor whose
//! shape is found out in between is compared behind its binding.
//!
//! No code depends on a symbol then: they stay in types, which say what is known, and in messages. The attribute
//! `matches_parameters` says that the function compares its arguments itself. One without symbols and without such
//! declarations is left alone: its arguments are compared with its type.
//!
//! Attributes have no dimensions any more where `relax.VMBuiltinLower` ran before.

mod heap;

use std::collections::{BTreeMap, HashMap};

use tenon_plugin_api::ir::Terms;
use tenon_plugin_api::prelude::*;

use crate::dims::is_symbolic;
use crate::entry::{enter, refuse_nested};
use heap::{Checked, Heap, checked};

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
        let code = Code::of(&func, terms.str(name))?;
        if code.is_static {
            return Ok(func);
        }
        refuse_nested(&func, terms.str(name))?;
        lower(&func, terms.str(name), &code, module, cx)
    })?;
    Ok(module)
}

/// What depends on shapes in a function.
#[derive(Default)]
struct Code {
    /// Shapes of which a dimension is no integer.
    shapes: Vec<(Expr, Type)>,
    /// Dimensions that are passed on and are no integers.
    dims: Vec<(Expr, Dim)>,
    /// Variables of which more is declared than their values say.
    declared: BTreeMap<Expr, Type>,
    /// The type of the result, when more is declared than its value says.
    result: Option<Type>,
    /// Whether there is nothing of all that, and no parameter has a symbol.
    is_static: bool,
}

impl Code {
    fn of(func: &Function, name: &str) -> Result<Self> {
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
                    let declared = bindings.bindings().filter_map(|(var, value)| {
                        let ty = body.ty(var).filter(|&ty| body.ty(value) != Some(ty))?;
                        Some((var, ty))
                    });
                    code.declared.extend(declared);
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
                    code.result = result.filter(|&ty| {
                        let found = body.ty(value).map(|ty| terms.ty(ty));
                        !matches!(terms.ty(ty), TypeView::Tensor { dims: None, .. })
                            && matches!(found, Some(TypeView::Tensor { dims: None, .. }))
                    });
                }
                _ => {}
            }
        }
        let mut params = func.param_types().into_iter().flatten();
        code.is_static = code.shapes.is_empty()
            && code.dims.is_empty()
            && code.declared.is_empty()
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
    let params: Vec<Checked> =
        params.iter().flat_map(|param| checked(&mut rw, &mut fields, param, name)).collect();

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
    for &ty in code.declared.values().chain(&code.result) {
        heap.place(dims_of(terms, ty), &here)?;
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

    let compare = |rw: &mut Rewriter, list: &mut LetList, value: Expr, ty: Type, what: String| {
        let declared = Checked { value, ty, what };
        let steps = heap.compare(declared.dims(terms));
        declared.check(rw, list, memory, &steps);
    };
    let behind = |rw: &mut Rewriter, list: &mut LetList, var: Expr| {
        if let Some(&ty) = code.declared.get(&var) {
            let what = format!("`%{}` in `@{name}`", name_of(rw, var));
            compare(rw, list, var, ty, what);
        }
    };
    let outermost = func.result();
    for expr in body.post_order().filter(|&expr| body.kind(expr) == Kind::LET) {
        if Some(expr) != outermost {
            rw.rewrite_bindings(expr, |rw, list, is_dataflow, var, value| {
                list.bind(is_dataflow, var, value);
                behind(rw, list, var);
                Ok(())
            })?;
        }
    }
    let attrs = cx.with_attr(func.attrs(), MATCHES_PARAMETERS, true.into());
    enter(rw, func, list, attrs, behind, |rw, list, result| {
        if let Some(ty) = code.result {
            compare(rw, list, result, ty, format!("the result of `@{name}`"));
        }
    })
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
