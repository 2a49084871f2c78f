use super::*;
use tenon_ir::diagnostics::Source;
use tenon_ir::infer::infer_module;
use tenon_ir::text::{NoWeights, parse_module};

#[test]
fn bindings_and_graphs_mean_the_same() {
    let cx = tenon_compiler::testing::cx();
    let ty = f32s(&cx, &[2]);
    let graph = function(&cx, &[ty, ty], |tx, x| {
        let sum = tx.call_op("test.total", x, Attrs::NONE);
        tx.call_op("test.times", &[sum, sum], Attrs::NONE)
    });
    let bound = function(&cx, &[ty, ty], |tx, x| {
        let sum = tx.call_op("test.total", x, Attrs::NONE);
        let a = tx.var("a", None);
        let product = tx.call_op("test.times", &[a, a], Attrs::NONE);
        let b = tx.var("b", None);
        tx.let_blocks(&[(true, vec![(a, sum), (b, product)])], b)
    });
    for func in [graph, bound] {
        let module = module(&cx, func);
        let args = vec![vector(&[1.0, 2.0]), vector(&[3.0, 4.0])];
        let result = Evaluator::new(&module).call("main", args).unwrap();
        assert_eq!(elements(&result), [16.0, 36.0]);
    }
}

#[test]
fn only_the_branch_taken_is_evaluated() {
    let cx = tenon_compiler::testing::cx();
    let cond = cx.static_tensor_type(DType::BOOL, &[]);
    let ints = cx.static_tensor_type(DType::I32, &[1]);
    let func = function(&cx, &[cond, ints, ints], |tx, x| {
        let quotient = tx.call_op("test.parts", &x[1..], Attrs::NONE);
        tx.if_else(x[0], quotient, x[1])
    });
    let module = module(&cx, func);
    let ints = |value: i32| Value::Tensor(Tensor::from_vec(vec![1], vec![value]));
    let call = |cond: bool, divisor: i32| {
        let cond = Tensor::from_vec_as(DType::BOOL, vec![], vec![cond as u8]);
        let args = vec![Value::Tensor(cond), ints(12), ints(divisor)];
        let result = Evaluator::new(&module).call("main", args);
        result.map(|value| value.to_tensor().unwrap().elements::<i32>()[0])
    };
    assert_eq!(call(true, 4).unwrap(), 3);
    assert_eq!(call(false, 0).unwrap(), 12);
    let message = call(true, 0).unwrap_err().to_string();
    assert_eq!(message, "in `@main`: `test.parts`: an integer is divided by zero");
}

/// Counts down from the argument: `let f = fn(p) { if p > 0 { f(p - 1) } else { p } }; f(x)`.
fn countdown(cx: &Cx) -> Module {
    let scalar = cx.static_tensor_type(DType::I64, &[]);
    let func = function(cx, &[scalar], |tx, x| {
        let f = tx.var("f", Some(tx.cx().func_type(&[scalar], scalar)));
        let p = tx.var("p", Some(scalar));
        let zero = tx.constant(scalar, &0i64.to_le_bytes());
        let one = tx.constant(scalar, &1i64.to_le_bytes());
        let is_left = tx.call_op("test.above", &[p, zero], Attrs::NONE);
        let less = tx.call_op("test.less", &[p, one], Attrs::NONE);
        let again = tx.call(f, &[less], Attrs::NONE, None);
        let choice = tx.if_else(is_left, again, p);
        let closure = tx.function(&[p], choice, Some(scalar), Attrs::NONE);
        let call = tx.call(f, &[x[0]], Attrs::NONE, None);
        let y = tx.var("y", None);
        tx.let_blocks(&[(false, vec![(f, closure), (y, call)])], y)
    });
    module(cx, func)
}

#[test]
fn closures_call_themselves_to_any_depth() {
    let run = || {
        let cx = tenon_compiler::testing::cx();
        let module = countdown(&cx);
        let start = Value::Tensor(Tensor::scalar(100_000i64));
        let result = Evaluator::new(&module).call("main", vec![start]).unwrap();
        assert_eq!(result.to_tensor().unwrap().elements::<i64>()[0], 0);
    };
    std::thread::Builder::new().stack_size(512 << 10).spawn(run).unwrap().join().unwrap();
}

#[test]
fn long_and_deep_functions_are_evaluated_on_a_small_stack() {
    let run = || {
        let cx = tenon_compiler::testing::cx();
        let scalar = f32s(&cx, &[]);
        for is_nested in [false, true] {
            let func = function(&cx, &[scalar], |tx, x| {
                let op = tx.op("test.opposite");
                let (mut last, mut bindings) = (x[0], Vec::new());
                for _ in 0..300_000 {
                    let call = tx.call(op, &[last], Attrs::NONE, None);
                    last = call;
                    if !is_nested {
                        last = tx.var("v", None);
                        bindings.push((last, call));
                    }
                }
                let nested = (0..300_000).fold(last, |inner, _| tx.tuple(&[inner]));
                if is_nested { nested } else { tx.let_blocks(&[(true, bindings)], last) }
            });
            let module = module(&cx, func);
            let start = Value::Tensor(Tensor::scalar(1f32));
            let result = Evaluator::new(&module).call("main", vec![start]).unwrap();
            assert_eq!(matches!(result, Value::Tuple(_)), is_nested);
        }
    };
    std::thread::Builder::new().stack_size(512 << 10).spawn(run).unwrap().join().unwrap();
}

#[test]
fn symbols_are_bound_by_the_arguments() {
    let cx = tenon_compiler::testing::cx();
    let n = cx.dim_symbol("n");
    let param = cx.tensor_type(DType::F32, &[n, cx.dim(2)]);
    let func = function(&cx, &[param], |tx, x| {
        let flat = tx.cx().dim_mul(n, tx.cx().dim(2));
        let shape = tx.shape(&[flat]);
        tx.call_op("test.regrouped", &[x[0], shape], Attrs::NONE)
    });
    let module = module(&cx, func);
    let call = |shape: Vec<usize>| {
        let count = shape.iter().product();
        let arg = Value::Tensor(Tensor::from_vec(shape, vec![0f32; count]));
        Evaluator::new(&module).call("main", vec![arg])
    };
    assert_eq!(call(vec![3, 2]).unwrap().to_tensor().unwrap().shape(), [6]);
    assert_eq!(
        call(vec![2, 3]).unwrap_err().to_string(),
        "argument 1 is f32[2, 3], but the parameter is f32[2, 2]"
    );
}

#[test]
fn an_expression_is_evaluated_by_itself() {
    let cx = tenon_compiler::testing::cx();
    let ty = f32s(&cx, &[2]);
    let func = function(&cx, &[], |tx, _| {
        let bytes: Vec<u8> = [1f32, 2.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        let constant = tx.constant(ty, &bytes);
        let pair = tx.tuple(&[constant, constant]);
        tx.call_op("test.joined", &[pair], Attrs::NONE)
    });
    let body = func.view();
    let call = body.operands(body.root()).at(0);
    let value = evaluate_expr(&cx, body, func.constants(), None, call).unwrap();
    assert_eq!(elements(&value), [1.0, 2.0, 1.0, 2.0]);
}

#[test]
fn what_is_killed_loses_its_contents() {
    let text = |kill: &str| {
        format!(
            "fn @main(%x: f32[2]) {{\n  %s = memory.alloc_storage() {{ size = 16 }}\n  \
             %a = memory.alloc_tensor(%s) {{ offset = 8, ty = f32[2] }}\n  %d = @copy(%x, %a)\n  \
             {kill}\n  ret %a\n}}\n\
             private prim @copy(%A: f32[2], out %B: f32[2]) {{\n  for %i in 0..2 {{\n    \
             %B[%i] = %A[%i]\n  }}\n}}\n"
        )
    };
    for (kill, is_there) in [
        ("", true),
        ("%b = memory.alloc_tensor(%s) { ty = f32[2] }\n  %k = memory.kill(%b)", true),
        ("%k = memory.kill(%a)", false),
        ("%k = memory.kill(%s)", false),
    ] {
        let source = Source::new("kill.ir", text(kill));
        let module = parse_module(&tenon_compiler::testing::cx(), &source, &mut NoWeights);
        let module = module.unwrap_or_else(|errors| panic!("{}", errors.render(false)));
        let module = infer_module(&module).unwrap();
        let result = Evaluator::new(&module).call("main", vec![vector(&[1.0, 2.0])]).unwrap();
        assert_eq!(elements(&result) == [1.0, 2.0], is_there, "{kill}");
    }
}

#[test]
fn rows_of_a_loop_have_one_shape() {
    let text = r#"fn @main(%x: f32[2], %m: i64[]) {
  %r: (f32[2], f32[*]) = loop(@body, %m, const(bool[], true), (%x,)) { out = (f32[2], f32[t, k]) }
  ret %r
}

fn @body(%i: i64[], %x: f32[2]) -> (bool[], f32[2], f32[*]) {
  %b: bool[] = test.above(const(i64[], 1), %i)
  %y: f32[*] = if %b {
    ret %x
  } else {
    ret const(f32[3], 0)
  }
  ret (const(bool[], true), %x, %y)
}"#;
    let cx = tenon_compiler::testing::cx();
    let source = Source::new("t.ir", text);
    let module = parse_module(&cx, &source, &mut NoWeights).unwrap();
    let call = |limit: i64| {
        let args = vec![vector(&[1.0, 2.0]), Value::Tensor(Tensor::scalar(limit))];
        Evaluator::new(&module).call("main", args).map_err(|error| error.to_string())
    };
    let Value::Tuple(one) = call(1).unwrap() else { panic!("a loop gives a tuple") };
    assert_eq!(one.fields()[1].to_tensor().unwrap().shape(), [1, 2]);
    let error = call(2).unwrap_err();
    assert!(error.contains("the row of trip 1 is f32[3], but f32[2] is expected"), "{error}");
}
