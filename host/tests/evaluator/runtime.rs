use super::*;
use tenon_ir::diagnostics::Source;
use tenon_ir::infer::infer_module;
use tenon_ir::text::{NoWeights, parse_module};

pub(super) fn parsed(text: &str) -> Module {
    let source = Source::new("runtime.ir", text);
    let module = parse_module(&tenon_compiler::testing::cx(), &source, &mut NoWeights);
    let module = module.unwrap_or_else(|errors| panic!("{}", errors.render(false)));
    infer_module(&module).unwrap_or_else(|errors| panic!("{}", errors[0].1))
}

pub(super) fn zeros(shape: &[usize]) -> Value {
    let count = shape.iter().product();
    Value::Tensor(Tensor::from_vec(shape.to_vec(), vec![0f32; count]))
}

/// What `@main` of the module says of its arguments.
fn said(module: &Module, args: &[Value]) -> String {
    match Evaluator::new(module).call("main", args.to_vec()) {
        Ok(Value::Shape(shape)) => format!("{shape:?}"),
        Ok(value) => value.kind().to_owned(),
        Err(error) => error.to_string(),
    }
}

/// `y` has as many rows as `x`, and twice as many columns as `x` has rows.
const MATCHED: &str = r#"
fn @main(%x: f32[n, 4], %y: f32[n, 2*n]) -> shape[2*n, 8] { matches_parameters = true } {
  %heap = vm.alloc_shape_heap() { slots = 2 }
  %m0 = vm.match_shape(%x, %heap) { codes = ["store", "assert_imm"], operands = [0, 4], ty = f32[n, 4], what = "parameter `%x` of `@main`" }
  %m1 = vm.match_shape(%y, %heap) { codes = ["assert_load", "no_op"], operands = [0, 0], ty = f32[n, 2*n], what = "parameter `%y` of `@main`" }
  %c = @shape_func(%heap)
  %m2 = vm.match_shape(%y, %heap) { codes = ["no_op", "assert_load"], operands = [0, 1], ty = f32[n, 2*n], what = "parameter `%y` of `@main`" }
  %s = vm.make_shape(%heap) { codes = ["load", "imm"], operands = [1, 8], ty = shape[2*n, 8] }
  ret %s
}

private prim @shape_func(out %heap: i64[2]) {
  %heap[1] = 2 * %heap[0]
}
"#;

#[test]
fn c347_shapes_are_matched_at_run_time() {
    let module = parsed(MATCHED);
    let ints = Value::Tensor(Tensor::from_vec(vec![3, 4], vec![0i32; 12]));
    for (args, expected) in [
        ([zeros(&[3, 4]), zeros(&[3, 6])], "[6, 8]"),
        ([zeros(&[5, 4]), zeros(&[5, 10])], "[10, 8]"),
        (
            [zeros(&[3, 5]), zeros(&[3, 6])],
            "in `@main`: parameter `%x` of `@main` is f32[3, 5], but f32[n, 4] is expected: dimension 1 is 5, not 4",
        ),
        (
            [zeros(&[3, 4]), zeros(&[2, 6])],
            "in `@main`: parameter `%y` of `@main` is f32[2, 6], but f32[n, 2*n] is expected: dimension 0 is 2, not 3",
        ),
        (
            [zeros(&[3, 4]), zeros(&[3, 7])],
            "in `@main`: parameter `%y` of `@main` is f32[3, 7], but f32[n, 2*n] is expected: dimension 1 is 7, not 6",
        ),
        (
            [zeros(&[12]), zeros(&[3, 6])],
            "in `@main`: parameter `%x` of `@main` is f32[12], but f32[n, 4] is expected",
        ),
        (
            [ints, zeros(&[3, 6])],
            "in `@main`: parameter `%x` of `@main` is i32[3, 4], but f32[n, 4] is expected",
        ),
        (
            [Value::Shape(vec![3, 4]), zeros(&[3, 6])],
            "in `@main`: parameter `%x` of `@main` is shape[3, 4], but f32[n, 4] is expected",
        ),
    ] {
        assert_eq!(said(&module, &args), expected);
    }
}

#[test]
fn symbols_mean_nothing_where_parameters_are_matched_by_the_function() {
    let module = parsed(&MATCHED.replace("ret %s", "ret shape(2*n, 8)"));
    let message = said(&module, &[zeros(&[3, 4]), zeros(&[3, 6])]);
    assert_eq!(
        message,
        "in `@main`: the dimensions of `shape[2*n, 8]` are not known from the arguments"
    );
}

#[test]
fn a_size_that_is_a_value_is_checked() {
    let module = parsed(
        r#"
fn @main(%size: i64, %offset: i64, %shape: shape[m], %x: f32[4]) -> f32[m] {
  %s = vm.alloc_storage(%size)
  %a = vm.alloc_tensor(%s, %offset, %shape) { dtype = "f32" }
  %b = vm.view(%x, %shape) { dtype = "f32" }
  ret %b
}
"#,
    );
    let args = |size, offset, extent| {
        [Value::Scalar(size), Value::Scalar(offset), Value::Shape(vec![extent]), zeros(&[4])]
    };
    for (args, expected) in [
        (args(24, 8, 4), "a tensor"),
        (args(-1, 0, 4), "in `@main`: a storage of -1 bytes cannot be made"),
        (
            args(16, 4, 4),
            "in `@main`: a tensor of type f32[4] at byte 4 lies outside of its storage",
        ),
        (
            args(16, -4, 4),
            "in `@main`: a tensor of type f32[4] at byte -4 lies outside of its storage",
        ),
        (
            args(16, 0, 3),
            "in `@main`: a tensor cannot be looked at as one of type f32[3]: it has another size",
        ),
    ] {
        assert_eq!(said(&module, &args), expected);
    }
}

#[test]
fn the_heap_has_as_many_slots_as_it_was_given() {
    let module = parsed(
        r#"
fn @main() -> i64 {
  %heap = vm.alloc_shape_heap() { slots = 2 }
  %d = vm.load_dim(%heap) { slot = 2 }
  ret %d
}
"#,
    );
    assert_eq!(said(&module, &[]), "in `@main`: the heap of dimensions has no slot 2");
}

#[test]
fn external_functions_are_not_evaluated_by_promise_either() {
    let module = parsed(
        r#"
fn @main(%x: f32[4]) -> f32[4] {
  %a = call_pure(extern "vendor_scale", %x) { out = f32[4] }
  ret %a
}
"#,
    );
    let message = said(&module, &[zeros(&[4])]);
    assert!(message.ends_with("`vendor_scale` is outside of the module and cannot be evaluated"));
}
