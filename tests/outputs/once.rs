//! What is done once: constants are transformed when a model is compiled, weights that a caller gives before the first call, and memory
//! is made with a context.

use std::fs;

use tenon_compiler::runtime::dlpack::{DataType, TensorBuffer};
use tenon_compiler::runtime::functions::Library;
use tenon_compiler::runtime::model::{Model, RunContext};

use crate::house::House;

/// A weight as a model has it, and what a product reads of it.
const GIVEN: &str = "fn @main(%x: f32[n, 4], %w: f32[2, 4]) -> f32[n, 2] { num_input = 1 } {
  %t = transpose(%w)
  %e = abs(%t)
  %y = matmul(%x, %e)
  %z = nn.softmax(%y)
  ret %z
}
";
const CONSTANT: &str = "fn @main(%x: f32[n, 4]) -> f32[n, 2] {
  %w = const(f32[2, 4], [1, -2, 3, -4, 5, -6, 7, -8])
  %t = transpose(%w)
  %e = abs(%t)
  %y = matmul(%x, %e)
  %z = nn.softmax(%y)
  ret %z
}
";

fn tensor(shape: &[i64], numbers: &[f32]) -> TensorBuffer {
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    TensorBuffer::from_bytes(&bytes, shape, DataType::F32).unwrap()
}

fn run(context: &mut RunContext<&Model>, inputs: &[&TensorBuffer]) -> Vec<u8> {
    let inputs: Vec<_> = inputs.iter().map(|input| input.as_ref()).collect();
    context.run(&inputs, None).unwrap()[0].bytes().to_vec()
}

#[test]
fn weights_are_transformed_once_and_memory_stays() {
    let house = House::new();
    fs::write(house.at("given.ir"), GIVEN).unwrap();
    fs::write(house.at("constant.ir"), CONSTANT).unwrap();
    house.run(&["compile", "constant.ir", "-o", "constant.so"]);
    // Nothing of what depends on constants alone is left to a call.
    let text = house.run(&["compile", "constant.ir", "--emit", "ir", "-o", "/dev/stdout"]);
    assert!(!text.contains("abs(") && !text.contains("transpose"), "{text}");
    let pipeline = "relax.LiftTransformParams, default";
    house.run(&["compile", "given.ir", "--pipeline", pipeline, "-o", "given.so"]);

    let (x, w) = (tensor(&[1, 4], &[0.5, 0.25, -1.0, 0.125]), [1., -2., 3., -4., 5., -6., 7., -8.]);
    let constant = Library::open(&house.at("constant.so")).unwrap().main().unwrap();
    let mut context = constant.context().unwrap();
    let expected = run(&mut context, &[&x]);

    let given = Library::open(&house.at("given.so")).unwrap();
    let transform = given.function("main_transform_params").unwrap();
    let made = transform.run(&[tensor(&[2, 4], &w).as_ref()], None).unwrap();
    let main = given.main().unwrap();
    let mut context = main.context().unwrap();
    for _ in 0..3 {
        let before = context.workspace_size();
        assert_eq!(run(&mut context, &[&x, &made[0]]), expected);
        // The first call made the memory that the others use.
        assert!(before == 0 || before == context.workspace_size());
    }
}

/// As a recurrence whose steps are written out reads its weights at each of them.
#[test]
fn weights_that_many_calls_share_are_packed_once() {
    let house = House::new();
    let numbers: Vec<String> = (0..96 * 96).map(|at| (at % 101).to_string()).collect();
    let steps: String =
        (0..16).map(|step| format!("  %h{} = tanh(matmul(%h{step}, %w))\n", step + 1)).collect();
    let model = format!(
        "fn @main(%h0: f32[1, 96]) -> f32[1, 96] {{
  %w = const(f32[96, 96], [{}])
{steps}  ret %h16
}}
",
        numbers.join(", ")
    );
    fs::write(house.at("steps.ir"), model).unwrap();
    house.run(&["compile", "steps.ir", "-o", "steps.so"]);
    let (size, weights) = (fs::metadata(house.at("steps.so")).unwrap().len(), 4 * 96 * 96);
    assert!(size < 4 * weights, "{size} bytes for {weights} of weights");
}
