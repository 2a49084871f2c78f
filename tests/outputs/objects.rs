//! `--emit obj`: one object that a C program is linked with, and nothing else.

use std::fs;
use std::process::Command;

use crate::house::{House, said};

/// Links `main.c` with `model.o` and runs the program.
fn run_c(house: &House, code: &str) -> String {
    fs::write(house.at("main.c"), code).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-Wall", "-Wextra", "-Werror", "-Wl,--fatal-warnings", "-o", "main"]);
    let linked = compiler.args(["main.c", "model.o"]).current_dir(house.at("")).output();
    let linked = linked.expect("a C compiler");
    assert!(linked.status.success(), "{}", said(&linked));
    let output = Command::new(house.at("main")).output().unwrap();
    assert!(output.status.success(), "{}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

const MAIN: &str = r#"#include "model.h"
#include <stdio.h>
int main(void) {
  static float x[4096], y[4096];
  for (int i = 0; i < 4096; i++) x[i] = 0.5f * i;
  if (model_call(x, y) != TENON_OK) return 1;
  for (int i = 0; i < 4096; i++)
    if (y[i] != EXPECTED) return 2;
  printf("%g\n", y[4095]);
  return 0;
}
"#;

#[test]
fn a_program_is_linked_with_a_model_and_its_constants() {
    let house = House::new();
    house.run(&["compile", "a.ir", "--emit", "obj", "-o", "model.o"]);
    let names = house.names();
    assert_eq!(names, ["a.ir", "b.ir", "model.h", "model.o"]);
    assert_eq!(run_c(&house, &MAIN.replace("EXPECTED", "1.5f * i")), "6142.5\n");
}

#[test]
fn a_program_is_linked_with_what_a_vendor_made() {
    let house = House::new();
    let text = "fn @main(%x: f32[4096]) {\n  %a = add(%x, %x)\n  %b = nn.relu(%a)\n  \
                %c = exp(%b)\n  %y = multiply(%b, const(f32[], 2.0))\n  ret %y\n}\n";
    fs::write(house.at("model.ir"), text).unwrap();
    let enabled = "schema = 1\n[passes.\"relax.FuseOpsByPattern\"]\n\
                   options = { vendors = [\"example\"] }\n";
    fs::write(house.at("enabled.toml"), enabled).unwrap();
    let compile = ["compile", "model.ir", "--emit", "obj", "--registry", "enabled.toml"];
    house.run(&[&compile[..], &["-o", "model.o"]].concat());
    // The vendor's function is in it, and was called above.
    let object = house.read("model.o");
    assert!(object.windows(8).any(|window| window == b"_example"));
    assert_eq!(run_c(&house, &MAIN.replace("EXPECTED", "2.0f * i")), "8190\n");
}

/// The embedding of a language model, which is its last product as well.
#[test]
fn weights_that_are_gathered_and_multiplied_are_stored_once() {
    let house = House::new();
    let elements: Vec<String> = (0..1001 * 64).map(|element| (element % 509).to_string()).collect();
    let text = format!(
        "fn @main(%ids: i64[3]) {{\n  \
         %w = const(f32[1001, 64], [{}])\n  \
         %e = take(%w, %ids) {{ axis = 0 }}\n  \
         %h = nn.relu(%e)\n  \
         %t = transpose(%w) {{ axes = [1, 0] }}\n  \
         %y = matmul(%h, %t)\n  ret %y\n}}\n",
        elements.join(", ")
    );
    fs::write(house.at("tied.ir"), text).unwrap();
    house.run(&["compile", "tied.ir", "-o", "tied.so"]);
    let (weights, library) = (4 * 1001 * 64, house.read("tied.so").len());
    assert!((weights..weights * 3 / 2).contains(&library), "{library} bytes for {weights}");
}
