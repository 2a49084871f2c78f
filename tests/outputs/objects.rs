//! `--emit obj`: one object that a C program is linked with, and nothing else.

use std::fs;
use std::process::Command;

use crate::house::{House, said};

/// Links `main.c` with `model.o` and runs the program.
pub(crate) fn run_c(house: &House, code: &str) -> String {
    run_c_with(house, code, &["model.o"])
}

/// Links `main.c` with objects and runs the program.
pub(crate) fn run_c_with(house: &House, code: &str, objects: &[&str]) -> String {
    fs::write(house.at("main.c"), code).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-Wall", "-Wextra", "-Werror", "-Wl,--fatal-warnings", "-o", "main"]);
    let linked = compiler.arg("main.c").args(objects).current_dir(house.at("")).output();
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

/// Two models of one program have functions of equal names inside, and do not see each other's.
#[test]
fn a_program_is_linked_with_two_models() {
    let house = House::new();
    let model = |by: u32| {
        let relu = format!("  %a = nn.relu(%x)\n  %y = multiply(%a, const(f32[], {by}.0))\n");
        format!("fn @main(%x: f32[4]) {{\n{relu}  ret %y\n}}\n")
    };
    for (name, by) in [("first", 2), ("second", 3)] {
        let (text, object) = (format!("{name}.ir"), format!("{name}.o"));
        fs::write(house.at(&text), model(by)).unwrap();
        house.run(&["compile", &text, "--emit", "obj", "--prefix", &name[..1], "-o", &object]);
    }
    let code = r#"#include "first.h"
#include "second.h"
#include <stdio.h>
int main(void) {
  float x[4] = {-1, 1, 2, 3}, y[4], z[4];
  if (f_call(x, y) != TENON_OK || s_call(x, z) != TENON_OK) return 1;
  printf("%g %g\n", y[3], z[3]);
  return 0;
}
"#;
    assert_eq!(run_c_with(&house, code, &["first.o", "second.o"]), "6 9\n");
    // One that is missing is missed when the program is linked.
    let mut compiler = Command::new("cc");
    compiler.args(["-o", "main", "main.c", "first.o"]).current_dir(house.at(""));
    let missing = compiler.output().expect("a C compiler");
    assert!(!missing.status.success() && said(&missing).contains("s_"), "{}", said(&missing));
}

#[test]
fn a_module_may_say_what_the_names_of_its_functions_begin_with() {
    let house = House::new();
    let text = "module { system_lib_prefix = \"net_\" }\nfn @main(%x: f32[n, 3]) {\n  %t = nonzero(%x)\n  \
                %s: shape[k] = bind_dims(%t.1) { ty = shape[k], most = shape[3*n] }\n  \
                %y = dynamic_slice(%t.0, const(i64[2], [0, 0]), shape(2, k))\n  ret (%y, %x)\n}\n";
    fs::write(house.at("net.ir"), text).unwrap();
    for (kind, file) in [("so", "some.so"), ("obj", "some.o")] {
        house.run(&["compile", "net.ir", "--emit", kind, "-o", file]);
        let told = house.run(&["show", file, "--json"]);
        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        assert_eq!(told["kind"], if kind == "so" { "library" } else { "object" });
        assert_eq!(
            (&told["prefix"], &told["signature"]["function"]),
            (&"net".into(), &"main".into())
        );
        assert_eq!(told["signature"]["outputs"][0]["shape"], serde_json::json!([2, "k"]));
        assert_eq!(told["signature"]["found"], serde_json::json!([[0, 1]]));
        let symbols = told["symbols"].as_array().unwrap();
        let is_shared = symbols.iter().any(|name| name == "tenon_library_info");
        assert_eq!(is_shared, kind == "so");
        assert!(symbols.iter().any(|name| name == "net_run"), "{symbols:?}");
    }
    let told = house.run(&["show", "some.so"]);
    assert!(told.contains("inputs       x f32[n, 3]"), "{told}");
    assert!(told.contains("output0 i64[2, found k], output1 f32[n, 3]"), "{told}");
    assert!(told.contains("workspace    as net_sizes() says"), "{told}");
    fs::write(house.at("text.so"), "no library").unwrap();
    let refused = house.refused(&["show", "text.so"]);
    assert!(refused.contains("text.so is not a library that Tenon has made"), "{refused}");
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
