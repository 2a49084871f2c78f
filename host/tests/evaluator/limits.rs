//! What ends an evaluation, and what types say of values.

use super::runtime::{parsed, zeros};
use super::*;

/// What `@main` says of arguments, within limits.
fn said(text: &str, args: &[Value], limits: Limits) -> String {
    let module = parsed(text);
    match Evaluator::new(&module).with_limits(limits).call("main", args.to_vec()) {
        Ok(value) => {
            value.ty(module.cx()).map_or_else(String::new, |ty| module.cx().terms().type_text(ty))
        }
        Err(error) => error.to_string(),
    }
}

#[test]
fn recursion_without_an_end_is_an_error() {
    let text = "fn @main(%x: f32[4]) -> f32[4] { %y = @main(%x) ret %y }";
    let found = said(text, &[zeros(&[4])], Limits::default());
    assert!(found.contains("more than 262144 functions run at the same time"), "{found}");
    let growing =
        "fn @main(%x: f32[n]) -> f32[*] { %y = test.joined((%x, %x)) %z = @main(%y) ret %z }";
    let found = said(growing, &[zeros(&[4])], Limits { bytes: 1 << 20, ..Limits::default() });
    assert!(found.contains("the limit of an evaluation is 1048576 bytes at a time"), "{found}");
}

#[test]
fn loops_without_an_end_are_an_error() {
    let text = "prim @main(%A: f32[4], out %B: f32[4]) {
                  for %i in 0..1000000000000 { for %j in 0..4 { %B[%j] = %A[%j] } } }";
    let found = said(text, &[zeros(&[4])], Limits::default());
    assert!(found.contains("more than 17179869184 steps"), "{found}");
    // Two calls of itself, and two of each: few at a time, and no end.
    let text = "fn @main(%n: i64[]) -> i64[] {
                  %more = test.above(%n, const(i64[], 0))
                  %r = if %more {
                    %m = test.less(%n, const(i64[], 1))
                    %a = @main(%m)
                    %b = @main(%m)
                    ret %b
                  } else { ret %n }
                  ret %r }";
    let found = said(
        text,
        &[Value::Tensor(Tensor::scalar(60i64))],
        Limits { steps: 10_000, ..Limits::default() },
    );
    assert!(found.contains("more than 10000 steps"), "{found}");
}

#[test]
fn memory_has_a_limit() {
    for text in [
        "fn @main(%x: f32[4]) { %y = test.zeros(shape(1099511627776)) ret %y }",
        "fn @main(%x: f32[4]) { %y = builtin.alloc_tensor() { ty = f32[1099511627776] } ret %y }",
        "fn @main(%x: f32[4]) { %s = memory.alloc_storage() { size = 4398046511104 }
                                %y = memory.alloc_tensor(%s) { ty = f32[1099511627776] } ret %y }",
        "prim @main(%A: f32[4], out %B: f32[4]) { alloc %C: f32[1099511627776]  %B[0] = %A[0] }",
        "prim @main(%A: f32[4], out %B: f32[1099511627776]) { %B[0] = %A[0] }",
    ] {
        let found = said(text, &[zeros(&[4])], Limits::default());
        assert!(found.contains("4398046511104 bytes more are needed"), "{text}\n{found}");
    }
    // What is not needed any more is free again.
    let text = "fn @main(%n: i64[]) -> i64[] {
                  %big = test.zeros(shape(1000))
                  ret %n }
                fn @many(%n: i64[]) { %a = @main(%n) %b = @main(%a) %c = @main(%b) ret %c }";
    let module = parsed(text);
    let limits = Limits { bytes: 5000, ..Limits::default() };
    let args = vec![Value::Tensor(Tensor::scalar(1i64))];
    assert!(Evaluator::new(&module).with_limits(limits).call("many", args).is_ok());
}

#[test]
fn what_is_declared_is_compared() {
    let limits = Limits::default;
    let text = "fn @main(%x: f32[q]) -> f32[300] { ret %x }";
    assert_eq!(said(text, &[zeros(&[300])], limits()), "f32[300]");
    assert_eq!(
        said(text, &[zeros(&[4])], limits()),
        "in `@main`: the result is f32[4], but it is declared as f32[300]"
    );
    let text = "fn @main(%t: i64[2]) { %s: shape[n, 3] = test.shape(%t) ret %s }";
    let shape = |x: i64, y: i64| Value::Tensor(Tensor::from_vec(vec![2], vec![x, y]));
    assert_eq!(said(text, &[shape(2, 3)], limits()), "shape[2, 3]");
    assert_eq!(
        said(text, &[shape(3, 2)], limits()),
        "in `@main`: `%s` is shape[3, 2], but it is declared as shape[3, 3]"
    );
    // A closure may be another function than its type says.
    let text = "fn @main(%x: f32[n]) { %r = @apply(@same, %x) ret %r }
                fn @apply(%f: fn(f32[k]) -> f32[3], %x: f32[n]) -> f32[3] { %r = %f(%x) ret %r }
                fn @same(%x: f32[k]) -> f32[k] { ret %x }";
    assert_eq!(said(text, &[zeros(&[3])], limits()), "f32[3]");
    assert_eq!(
        said(text, &[zeros(&[4])], limits()),
        "in `@same`: the result for its caller is f32[4], but it is declared as f32[3]"
    );
    // A symbol may come behind what is made of it.
    let text = "fn @main(%x: f32[2*n], %y: f32[n]) { ret %y }";
    assert_eq!(said(text, &[zeros(&[6]), zeros(&[3])], limits()), "f32[3]");
    assert_eq!(
        said(text, &[zeros(&[7]), zeros(&[3])], limits()),
        "argument 1 is f32[7], but the parameter is f32[2*n]"
    );
    assert_eq!(
        said(text, &[zeros(&[8]), zeros(&[3])], limits()),
        "argument 2 is f32[3], but the parameter is f32[4]"
    );
    let text = "prim @main(%A: f32[n + 1], out %B: f32[n]) { %B[0] = %A[0] }";
    assert_eq!(said(text, &[zeros(&[6])], limits()), "f32[5]");
    let found = said(text, &[zeros(&[0])], limits());
    assert!(found.contains("argument 1 is f32[0]"), "{found}");
}

/// The functions of scalars that the checker knows are those that have a meaning.
#[test]
fn every_function_of_scalars_is_evaluated() {
    use tenon_ir::{DType, INTRINSICS, IntrinsicResult};
    let is_evaluated = |dtype: DType| dtype.bits() >= if dtype.is_float() { 16 } else { 8 };
    for function in INTRINSICS {
        for dtype in
            DType::all().filter(|&dtype| function.takes.accepts(dtype) && is_evaluated(dtype))
        {
            let result = match function.gives {
                IntrinsicResult::Bool => DType::BOOL,
                IntrinsicResult::Same | IntrinsicResult::SameBits => dtype,
            };
            let args = vec!["%A[0]"; function.args].join(", ");
            let name = function.name;
            let text = format!(
                "prim @main(%A: {dtype}[1], out %B: {result}[1]) {{ %B[0] = {name}<{result}>({args}) }}"
            );
            let module = parsed(&text);
            assert!(tenon_ir::check::check(&module).is_empty(), "{text}");
            let one = vec![0u8; dtype.bits() as usize / 8];
            let arg = Tensor::new(dtype, vec![1], tenon_ir::Bytes::new(one)).unwrap();
            let found = said(&text, &[Value::Tensor(arg)], Limits::default());
            assert_eq!(found, format!("{result}[1]"), "{text}");
        }
    }
}
