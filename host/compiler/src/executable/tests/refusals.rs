//! Modules that cannot be compiled, and what is said of them.

use crate::executable::{CompileOptions, Executable};
use crate::target::Target;

use super::entry::PROGRAMS;
use super::run::module;

/// Compiling `main` fails, and the message has all `words`.
fn refuse(main: &str, words: &[&str]) {
    let module = module(&format!("{main}\n{PROGRAMS}"));
    let options = CompileOptions { threads: 1, ..CompileOptions::default() };
    let error = Executable::compile(&module, &Target::native().unwrap(), &options).unwrap_err();
    let text = error.to_string();
    assert!(words.iter().all(|word| text.contains(word)), "{text}");
}

#[test]
fn operators_that_are_left() {
    refuse(
        "fn @main(%x: f32[6, 4]) {\n  %y = test.ramp(%x)\n  ret %y\n}",
        &["function `main`, binding `y`", "`test.ramp`", "pass"],
    );
    refuse("fn @main(%x: f32[6, 4]) {\n  ret test.ramp(%x)\n}", &["block_form"]);
}

#[test]
fn control_flow_and_functions() {
    refuse(
        "fn @main(%c: bool[], %x: f32[4], %z: f32[5]) {\n  %y: f32[*] = if %c {\n    ret %x\n  } else {\n    ret %z\n  }\n  ret %y\n}",
        &["its result", "a value has the type f32[*]"],
    );
    refuse(
        "fn @main(%c: bool[], %x: f32[4]) {\n  ret (if %c {\n    ret %x\n  } else {\n    ret %x\n  }, %x)\n}",
        &["its result", "block_form"],
    );
    refuse(
        "fn @main(%x: f32[4]) {\n  %f = fn (%p: f32[4]) {\n    ret %p\n  }\n  ret %x\n}",
        &["closure", "`closed`"],
    );
    refuse(
        "fn @main(%x: f32[4]) {\n  %y = extern\"f\"(%x)\n  ret %y\n}",
        &["external function `f`"],
    );
}

#[test]
fn symbolic_dimensions() {
    refuse(
        "fn @main(%x: f32[n, 4], %y: f32[m + k, n]) {\n  ret %x\n}",
        &["its parameters", "the dimension k + m, which no parameter says, cannot be compiled"],
    );
    refuse(
        "fn @main(%x: f32[n, 4]) {
  %a: f32[k] = builtin.alloc_tensor() { ty = f32[k] }
  ret %a
}",
        &["binding `a`", "the size 4*k", "does not follow from the shapes of the inputs"],
    );
    refuse("fn @main(%x: i32) {\n  ret %x\n}", &["parameter `x`", "i32"]);
}

#[test]
fn calls_that_do_not_fit() {
    let call = |call: &str| {
        format!(
            "fn @main(%x: f32[6, 4], %i: i32[6, 4]) {{
  %a: f32[6, 4] = builtin.alloc_tensor() {{ ty = f32[6, 4] }}
  %_0 = {call}
  ret %a
}}"
        )
    };
    refuse(&call("@add(%x, %a)"), &["takes 3 tensors, and 2 are given"]);
    refuse(&call("@twice(%i, %a)"), &["f32[6, 4] as argument 0, and i32[6, 4]"]);
    refuse(&call("@nothing(%x, %a)"), &["no tensor program `nothing`"]);
    refuse(&call("@twice(%x, %x)"), &["writes argument 1", "an input"]);
    refuse(&call("@twice(%x, const(f32[6, 4], 0))"), &["writes argument 1", "a constant"]);
    refuse(&call("@add(%a, %x, %a)"), &["arguments 0 and 2 of", "overlap"]);
}

#[test]
fn memory_that_does_not_fit() {
    refuse(
        "fn @main() {
  %s: object<storage> = memory.alloc_storage() { size = 100 }
  %a: f32[6, 4] = memory.alloc_tensor(%s) { offset = 8, ty = f32[6, 4] }
  ret %a
}",
        &["96 bytes at offset 8", "storage of 100"],
    );
    refuse(
        "fn @main() {
  %a: f32[4000000000, 4000000000, 4000000000] = builtin.alloc_tensor() { ty = f32[4000000000, 4000000000, 4000000000] }
  ret %a
}",
        &["more than any memory"],
    );
}
