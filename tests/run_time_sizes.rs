//! Compiled functions whose sizes only a call can tell, beside the reference evaluator.

#[path = "support/compiled.rs"]
mod compiled;

use tenon_host::diagnostics::Source;
use tenon_host::eval::{Evaluator, Tensor, Value};
use tenon_host::infer::infer_module;
use tenon_host::ir::Module;
use tenon_host::text::{NoWeights, parse_module};

fn module(text: &str) -> Module {
    let parsed = parse_module(&compiled::cx(), &Source::new("sizes", text), &mut NoWeights);
    let parsed = parsed.unwrap_or_else(|errors| panic!("{}", errors.render(false)));
    infer_module(&parsed).unwrap_or_else(|errors| panic!("{}", errors[0].1))
}

/// `shape` filled with numbers of which some are zero and some are equal.
fn floats(shape: &[usize]) -> Tensor {
    let count = shape.iter().product::<usize>();
    let number = |at: usize| ((at * 7 + 3) % 11) as f32 - 4.0;
    Tensor::from_vec(shape.to_vec(), (0..count).map(number).collect())
}

fn sizes(numbers: &[i64]) -> Tensor {
    Tensor::from_vec(vec![numbers.len()], numbers.to_vec())
}

fn evaluate(module: &Module, inputs: &[Tensor]) -> Result<Vec<Tensor>, String> {
    let inputs = inputs.iter().cloned().map(Value::Tensor).collect();
    let value = Evaluator::new(module).call("main", inputs).map_err(|error| error.to_string())?;
    let fields = match value {
        Value::Tuple(tuple) => tuple.fields().to_vec(),
        value => vec![value],
    };
    Ok(fields.iter().map(|field| field.to_tensor().expect("a tensor")).collect())
}

/// Compiles a function once, and compares what it gives for each of the inputs.
fn check(text: &str, calls: &[&[Tensor]]) {
    let module = module(text);
    let model = compiled::compile(&module).unwrap_or_else(|error| panic!("{error}"));
    for inputs in calls {
        let expected = evaluate(&module, inputs);
        let found = compiled::run(&model, inputs);
        match (&expected, &found) {
            (Ok(expected), Ok(found)) => {
                let told = |tensors: &[Tensor]| -> Vec<(Vec<usize>, Vec<u8>)> {
                    let parts = tensors.iter();
                    parts.map(|it| (it.shape().to_vec(), it.bytes().to_vec())).collect()
                };
                assert_eq!(told(expected), told(found), "of {inputs:?}");
            }
            _ => panic!("{expected:?} and {found:?} of {inputs:?}"),
        }
    }
}

/// Compiles a function, which refuses these inputs and says so.
fn refuses(text: &str, inputs: &[Tensor], says: &str) {
    let module = module(text);
    let model = compiled::compile(&module).unwrap_or_else(|error| panic!("{error}"));
    let error = compiled::run(&model, inputs).expect_err("it is refused");
    assert!(error.contains(says), "{error}");
}

const TOPK: &str = "fn @main(%x: f32[n, 6], %k: shape[k]) {
  %e = reshape(%x, shape(max(k, n), 6))
  %t = topk(%e, shape(k)) { axis = 0 }
  ret %t
}";

#[test]
fn as_many_of_the_largest_elements_as_a_call_says() {
    let call = |rows, count| [floats(&[rows, 6]), sizes(&[count])];
    let calls = [call(9, 3), call(9, 9), call(4, 0), call(1, 1), call(0, 0), call(700, 90)];
    check(TOPK, &calls.each_ref().map(|call| &call[..]));
    refuses(TOPK, &[floats(&[2, 6]), sizes(&[3])], "do not fit together");
}

#[test]
fn of_fewer_elements_all_are_the_largest() {
    let text = "fn @main(%x: f32[n, 6]) {
  %t = topk(%x, shape(3)) { axis = 0, largest = false }
  ret %t
}";
    check(text, &[&[floats(&[9, 6])], &[floats(&[2, 6])], &[floats(&[0, 6])]]);
}

#[test]
fn more_than_was_said_to_be_the_most_is_refused() {
    let text = "fn @main(%x: i64[1]) {
  %s: shape[k] = bind_dims(%x) { ty = shape[k], most = shape[3] }
  %y = arange(shape(k))
  ret %y
}";
    let number = |value: i64| [Tensor::from_vec(vec![1], vec![value])];
    check(text, &[&number(3), &number(0), &number(1)]);
    refuses(text, &number(4), "no size");
    refuses(text, &number(-1), "no size");
}
