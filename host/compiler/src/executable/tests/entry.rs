//! What the entry function does with memory.

use super::run::{check, compile, module};

/// `out = x + y` and `out = 2 * x`, in parallel.
pub(super) const PROGRAMS: &str = r#"
prim @add(%x: f32[6, 4], %y: f32[6, 4], out %z: f32[6, 4]) {
  for %i in 0..6 parallel {
    for %j in 0..4 {
      %z[%i, %j] = %x[%i, %j] + %y[%i, %j]
    }
  }
}

prim @twice(%x: f32[6, 4], out %z: f32[6, 4]) {
  for %i in 0..6 {
    %z[%i, ramp(0, 1, 4)] = %x[%i, ramp(0, 1, 4)] * broadcast(2.0, 4)
  }
}
"#;

fn with_programs(main: &str) -> String {
    format!("{main}\n{PROGRAMS}")
}

#[test]
fn planned_memory_is_used() {
    let text = with_programs(
        r#"fn @main(%x: f32[6, 4]) {
  %storage: object<storage> = memory.alloc_storage() { size = 256, align = 64 }
  %a: f32[6, 4] = memory.alloc_tensor(%storage) { offset = 0, ty = f32[6, 4] }
  %_0 = @twice(%x, %a)
  %b: f32[6, 4] = memory.alloc_tensor(%storage) { offset = 128, ty = f32[6, 4] }
  %_1 = @add(%a, %x, %b)
  %_2 = memory.kill(%a)
  %c: f32[6, 4] = builtin.alloc_tensor() { ty = f32[6, 4] }
  %_3 = @add(%b, const(f32[6, 4], 0.5), %c)
  ret %c
}"#,
    );
    let executable = check(&text);
    let signature = executable.signature();
    // The result is made where the caller wants it.
    assert_eq!(signature.workspace_size, Some(256));
    assert_eq!((signature.inputs[0].name.as_str(), signature.outputs.len()), ("x", 1));
}

#[test]
fn memory_need_not_be_planned() {
    let text = with_programs(
        r#"fn @main(%x: f32[6, 4], %y: f32[6, 4]) {
  %a: f32[6, 4] = call_tir(@add, %x, %y) { out = f32[6, 4] }
  %b: f32[6, 4] = call_tir(@twice, %a) { out = f32[6, 4] }
  %t = (%a, %b)
  %c: f32[6, 4] = call_tir(@add, %t.0, %t.1) { out = f32[6, 4] }
  ret %c
}"#,
    );
    assert_eq!(check(&text).signature().workspace_size, Some(256));
}

#[test]
fn results_are_copied_where_they_cannot_be_written_in_place() {
    // A tuple of an input, a constant, one tensor twice, a view, and two tensors of one storage.
    let text = with_programs(
        r#"fn @main(%x: f32[6, 4]) {
  %a: f32[6, 4] = builtin.alloc_tensor() { ty = f32[6, 4] }
  %_0 = @twice(%x, %a)
  %v: f32[24] = memory.view(%a) { ty = f32[24] }
  %w: f32[4, 6] = memory.view(%x) { ty = f32[4, 6] }
  %storage: object<storage> = memory.alloc_storage() { size = 192 }
  %b: f32[6, 4] = memory.alloc_tensor(%storage) { ty = f32[6, 4] }
  %c: f32[6, 4] = memory.alloc_tensor(%storage) { offset = 96, ty = f32[6, 4] }
  %_1 = @add(%a, %x, %b)
  %_2 = @add(%b, %a, %c)
  ret (%x, const(f32[3], [1, 2, 3]), %a, %a, %v, (%b, %c), %w)
}"#,
    );
    assert_eq!(check(&text).signature().outputs.len(), 8);
}

#[test]
fn parts_lie_in_the_whole() {
    // Of a result, which programs write and read, of an input, and of a part.
    let text = with_programs(
        r#"fn @main(%x: f32[6, 4]) {
  %whole: f32[12, 4] = builtin.alloc_tensor() { ty = f32[12, 4] }
  %a: f32[6, 4] = memory.part(%whole) { ty = f32[6, 4] }
  %b: f32[6, 4] = memory.part(%whole) { offset = 96, ty = f32[6, 4] }
  %_0 = @twice(%x, %a)
  %_1 = @add(%a, %x, %b)
  %rows: f32[3, 4] = memory.part(%x) { offset = 32, ty = f32[3, 4] }
  %row: f32[1, 4] = memory.part(%rows) { offset = 16, ty = f32[1, 4] }
  ret (%whole, %row, %b)
}"#,
    );
    assert_eq!(check(&text).signature().workspace_size, Some(0));
}

#[test]
fn several_outputs_of_one_program() {
    check(
        r#"fn @main(%x: i32[5]) {
  %r: (i32[5], f32[5]) = call_tir(@both, %x) { out = (i32[5], f32[5]) }
  ret %r
}

prim @both(%x: i32[5], out %y: i32[5], out %z: f32[5]) {
  for %i in 0..5 {
    %y[%i] = %x[%i] floordiv 3i32
    %z[%i] = f32(%x[%i] % 3i32)
  }
}"#,
    );
}

#[test]
fn a_function_without_calls_copies() {
    check("fn @main(%x: f32[7]) {\n  ret %x\n}");
    check("fn @main() {\n  ret const(f32[2], [1, 2.5])\n}");
}

#[test]
fn scalars_and_empty_tensors_are_tensors() {
    check(
        r#"fn @main(%x: f32[], %e: f32[0, 3]) {
  %y: f32[] = call_tir(@next, %x) { out = f32[] }
  ret (%y, %e)
}

prim @next(%x: f32[], out %y: f32[]) {
  %y[] = %x[] + 1.0
}"#,
    );
}

#[test]
fn large_buffers_of_programs_lie_in_the_workspace() {
    let executable = check(
        r#"fn @main(%x: f32[200, 200]) {
  %y: f32[200, 200] = call_tir(@flip, %x) { out = f32[200, 200] }
  %z: f32[200, 200] = call_tir(@flip, %y) { out = f32[200, 200] }
  ret %z
}

prim @flip(%x: f32[200, 200], out %y: f32[200, 200]) {
  alloc %t: f32[200, 200]
  for %i in 0..200 parallel {
    for %j in 0..200 {
      %t[%j, 199 - %i] = %x[%i, %j]
    }
  }
  for %i in 0..200 parallel {
    for %j in 0..200 {
      %y[%i, %j] = %t[%i, %j]
    }
  }
}"#,
    );
    assert_eq!(executable.signature().workspace_size, Some(2 * 160_000));
}

#[test]
fn programs_that_are_the_same_are_compiled_once() {
    let module = module(
        r#"fn @main(%x: f32[4]) {
  %a: f32[4] = call_tir(@one, %x) { out = f32[4] }
  %b: f32[4] = call_tir(@same, %a) { out = f32[4] }
  %c: f32[4] = call_tir(@other, %b) { out = f32[4] }
  ret %c
}

prim @one(%x: f32[4], out %y: f32[4]) { op_name = "a" } {
  for %i in 0..4 {
    %y[%i] = %x[%i] + 1.0
  }
}

prim @same(%a: f32[4], out %b: f32[4]) {
  for %k in 0..4 {
    %b[%k] = %a[%k] + 1.0
  }
}

prim @other(%x: f32[4], out %y: f32[4]) {
  for %i in 0..4 {
    %y[%i] = %x[%i] + 2.0
  }
}"#,
    );
    let names: Vec<String> =
        compile(&module).objects().iter().map(|unit| unit.name.clone()).collect();
    assert_eq!(names, ["main", "one", "other"]);
}

#[test]
fn names_come_from_the_model() {
    let text = r#"module { "onnx.inputs" = ["data:0"], "onnx.outputs" = ["prob/1"] }
fn @main(%x: f32[7]) {
  ret %x
}"#;
    let executable = compile(&module(text));
    assert_eq!(executable.signature().inputs[0].name, "data:0");
    assert_eq!(executable.signature().outputs[0].name, "prob/1");
}
