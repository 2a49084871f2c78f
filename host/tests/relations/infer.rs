use std::sync::Arc;

use tenon_ir::infer::*;
use tenon_ir::{Attrs, Build, Context, Cx, DType, Expr, Function, Module, Transaction, Type};

fn tensor(cx: &Cx, shape: &[i64]) -> Type {
    cx.static_tensor_type(DType::F32, shape)
}

/// A function of one parameter `x` whose result is what `build` makes of it.
fn function(
    cx: &Cx,
    param: Type,
    build: impl FnOnce(&mut Transaction, Expr) -> Expr,
) -> Arc<Function> {
    let mut tx = Transaction::new(cx.clone());
    let x = tx.var("x", Some(param));
    let body = build(&mut tx, x);
    let root = tx.function(&[x], body, None, Attrs::NONE);
    tx.set_root(root);
    tx.finish().unwrap()
}

fn result_of(func: &Arc<Function>) -> Result<String, String> {
    match infer(func, &|_| None) {
        Ok(func) => {
            let body = func.view();
            Ok(body.terms().type_text(body.ty(body.root()).unwrap()))
        }
        Err(errors) => Err(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")),
    }
}

#[test]
fn bound_variables_have_the_type_of_their_value() {
    let cx = tenon_compiler::testing::cx();
    let func = function(&cx, tensor(&cx, &[2, 3]), |tx, x| {
        let first = tx.call_op("test.double", &[x], Attrs::NONE);
        let a = tx.var("a", None);
        let second = tx.call_op("test.total", &[a, x], Attrs::NONE);
        let b = tx.var("b", None);
        tx.let_blocks(&[(true, vec![(a, first), (b, second)])], b)
    });
    assert_eq!(result_of(&func).unwrap(), "fn(f32[2, 3]) -> f32[2, 3]");
    let typed = infer(&func, &|_| None).unwrap();
    assert!(Arc::ptr_eq(&typed, &infer(&typed, &|_| None).unwrap()));
}

#[test]
fn every_wrong_node_is_reported_once() {
    let cx = tenon_compiler::testing::cx();
    let func = function(&cx, tensor(&cx, &[2]), |tx, x| {
        let wrong = tx.call_op("test.rampp", &[x], Attrs::NONE);
        let after = tx.call_op("test.double", &[wrong], Attrs::NONE);
        let other = tx.call_op("test.double", &[x, x], Attrs::NONE);
        tx.tuple(&[after, other])
    });
    assert_eq!(
        result_of(&func).unwrap_err(),
        "`test.rampp`: there is no operator `test.rampp`; near it is `test.ramp`; \
         `test.double`: it takes 1 argument, not 2"
    );
}

#[test]
fn an_operator_is_no_value() {
    let cx = tenon_compiler::testing::cx();
    let func = function(&cx, tensor(&cx, &[2]), |tx, x| {
        let op = tx.op("test.double");
        let sum = tx.call_op("test.total", &[x, op], Attrs::NONE);
        tx.call_op("test.double", &[sum], Attrs::NONE)
    });
    assert_eq!(result_of(&func).unwrap_err(), "`test.double` can be called, but is no value");
}

#[test]
fn symbols_of_a_callee_stand_for_what_they_meet() {
    let cx = tenon_compiler::testing::cx();
    let n = cx.dim_symbol("n");
    let param = cx.tensor_type(DType::F32, &[n, cx.dim(4)]);
    let callee = function(&cx, param, |tx, x| {
        let pair = tx.tuple(&[x, x]);
        tx.call_op("test.joined", &[pair], Attrs::NONE)
    });
    let mut module = Module::new(cx.clone());
    let main = function(&cx, tensor(&cx, &[3, 4]), |tx, x| {
        let twice = tx.global("twice");
        tx.call(twice, &[x], Attrs::NONE, None)
    });
    module.insert(cx.symbol("main"), main);
    module.insert(cx.symbol("twice"), callee);
    let typed = infer_module(&module).unwrap();
    let text = |name| cx.terms().type_text(signature(typed.get_str(name).unwrap()).unwrap());
    assert_eq!(text("twice"), "fn(f32[n, 4]) -> f32[2*n, 4]");
    assert_eq!(text("main"), "fn(f32[3, 4]) -> f32[6, 4]");
}

#[test]
fn calls_are_checked_against_the_signature() {
    let cx = tenon_compiler::testing::cx();
    let n = cx.dim_symbol("n");
    let callee = cx.func_type(
        &[cx.tensor_type(DType::F32, &[n, n]), tensor(&cx, &[2])],
        cx.tensor_type(DType::F32, &[n]),
    );
    let call = |args: &[Type]| instantiate(&cx, callee, args).map(|ty| cx.terms().type_text(ty));
    let pair = tensor(&cx, &[2]);
    assert_eq!(call(&[tensor(&cx, &[5, 5]), pair]).unwrap(), "f32[5]");
    assert_eq!(
        call(&[tensor(&cx, &[5, 6]), pair]).unwrap_err().to_string(),
        "argument 1 is f32[5, 6], but the parameter is f32[5, 5]"
    );
    assert_eq!(call(&[pair]).unwrap_err().to_string(), "the function takes 2 arguments, not 1");
}

#[test]
fn branches_are_joined() {
    let cx = tenon_compiler::testing::cx();
    let cond = cx.static_tensor_type(DType::BOOL, &[]);
    let func = function(&cx, cond, |tx, x| {
        let ty = |shape: &[i64]| Some(tensor(&tx.cx(), shape));
        let (a, b) = (ty(&[2]), ty(&[3]));
        let (a, b) = (tx.var("a", a), tx.var("b", b));
        tx.if_else(x, a, b)
    });
    assert_eq!(result_of(&func).unwrap(), "fn(bool[]) -> f32[*]");
}

#[test]
fn a_recursive_closure_needs_a_type_on_its_variable() {
    let cx = tenon_compiler::testing::cx();
    let ty = tensor(&cx, &[2]);
    let func = |declared: Option<Type>| {
        function(&cx, ty, |tx, x| {
            let f = tx.var("f", declared);
            let p = tx.var("p", Some(ty));
            let inner = tx.call(f, &[p], Attrs::NONE, None);
            let closure = tx.function(&[p], inner, Some(ty), Attrs::NONE);
            let outer = tx.call(f, &[x], Attrs::NONE, None);
            let y = tx.var("y", None);
            tx.let_blocks(&[(false, vec![(f, closure), (y, outer)])], y)
        })
    };
    assert_eq!(result_of(&func(Some(cx.func_type(&[ty], ty)))).unwrap(), "fn(f32[2]) -> f32[2]");
    let message = result_of(&func(None)).unwrap_err();
    assert!(message.starts_with("`%f` has no type here"), "{message}");
}

#[test]
fn a_million_bindings_and_a_million_nested_calls_are_inferred_on_a_small_stack() {
    let infer_both = || {
        let cx = tenon_compiler::testing::cx();
        for is_nested in [false, true] {
            let func = function(&cx, tensor(&cx, &[4]), |tx, x| {
                let op = tx.op("test.total");
                let (mut last, mut bindings) = (x, Vec::new());
                for _ in 0..1_000_000 {
                    let call = tx.call(op, &[last, x], Attrs::NONE, None);
                    last = call;
                    if !is_nested {
                        last = tx.var("v", None);
                        bindings.push((last, call));
                    }
                }
                if is_nested { last } else { tx.let_blocks(&[(true, bindings)], last) }
            });
            assert_eq!(result_of(&func).unwrap(), "fn(f32[4]) -> f32[4]");
        }
    };
    std::thread::Builder::new().stack_size(512 << 10).spawn(infer_both).unwrap().join().unwrap();
}

/// A loop whose body is typed `body`, over a carried `f32[2]`, and that is declared to give `out`.
fn typed_loop(cx: &Cx, body: Type, out: Type) -> Result<String, String> {
    let func = function(cx, body, |tx, f| {
        let go = tx.constant(cx.static_tensor_type(DType::BOOL, &[]), &[1]);
        let carried = tx.constant(tensor(cx, &[2]), &[0; 8]);
        let limit = tx.prim(cx.dim(3));
        let carried = tx.tuple(&[carried]);
        let attrs = cx.attrs(&[("out", out.into())]);
        tx.call_op("loop", &[f, limit, go, carried], attrs)
    });
    result_of(&func)
}

#[test]
fn loops_carry_what_they_are_given() {
    let cx = tenon_compiler::testing::cx();
    let number = cx.static_tensor_type(DType::I64, &[]);
    let boolean = cx.static_tensor_type(DType::BOOL, &[]);
    let (two, rows) = (tensor(&cx, &[2]), tensor(&cx, &[3, 4]));
    let body = |params: &[Type], results: &[Type]| cx.func_type(params, cx.tuple_type(results));
    let good = body(&[number, two], &[boolean, two, tensor(&cx, &[4])]);
    let out = cx.tuple_type(&[two, rows]);
    let text = typed_loop(&cx, good, out).unwrap();
    assert!(text.ends_with("-> (f32[2], f32[3, 4])"), "{text}");
    let wrong = |body: Type, out: Type, words: &str| {
        let error = typed_loop(&cx, body, out).unwrap_err();
        assert!(error.contains("`loop`") && error.contains(words), "{error}");
    };
    wrong(number, out, "a function");
    wrong(body(&[number], &[boolean, two]), out, "a function of (i64[], f32[2])");
    wrong(body(&[two, two], &[boolean, two]), out, "a function of (i64[], f32[2])");
    wrong(body(&[number, two], &[two, two, two]), out, "result 0 is bool[], as before the trip");
    let grows = tensor(&cx, &[4]);
    wrong(body(&[number, two], &[boolean, grows, two]), out, "result 1 is f32[2]");
    wrong(body(&[number, two], &[boolean, two]), out, "gives a tuple of 3");
    wrong(good, cx.tuple_type(&[two, tensor(&cx, &[3, 5])]), "its field 1");
    wrong(good, cx.tuple_type(&[rows, rows]), "its field 0");
    wrong(good, two, "it is a tuple");
}
