//! Which functions of a module are compiled, and what they are called.

use std::fs;

use crate::house::House;

/// A module of tensor programs alone.
const PROGRAM: &str = "prim @add_one(%x: f32[n], out %y: f32[n]) {
  for %i in 0..dim(n) {
    block \"add\" (%vi: spatial = %i) {
      %y[%vi] = %x[%vi] + 1.0
    }
  }
}
";

const TWO: &str = "module { \"onnx.inputs\" = [\"given\"], \"onnx.outputs\" = [\"made\"] }
fn @up(%x: f32[n]) -> f32[n] {
  %y = add(%x, const(f32[], [1]))
  ret %y
}
fn @down(%z: f32[n]) -> f32[n] {
  %y = subtract(%z, const(f32[], [1]))
  ret %y
}
private fn @hidden(%x: f32[n]) -> f32[n] {
  ret %x
}
";

/// A folder with a text and three floats.
pub(crate) fn house(text: &str) -> House {
    let house = House::new();
    fs::write(house.at("m.ir"), text).unwrap();
    let mut npy = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }";
    npy.extend(format!("{header:<117}\n").bytes());
    npy.extend([1f32, 2.0, 3.0].iter().flat_map(|number| number.to_le_bytes()));
    fs::write(house.at("x.npy"), npy).unwrap();
    house
}

#[test]
fn a_module_of_tensor_programs_alone_compiles() {
    let house = house(PROGRAM);
    house.run(&["compile", "m.ir", "-o", "m.so", "--validate=compiled"]);
    let said = house.run(&["run", "m.so", "--input", "x=x.npy"]);
    assert_eq!(said, "y: float32[3] [2, 3, 4]\n");
    assert_eq!(house.run(&["run", "m.ir", "--input", "x=x.npy"]), said);
    let header = String::from_utf8(house.read("m.h")).unwrap();
    let call = "m_call(int64_t n, const float *x, float *y)";
    assert!(header.contains(call), "{header}");
}

#[test]
fn a_function_is_chosen_by_its_name() {
    let house = house(TWO);
    for (name, input, result) in [("up", "x", "[2, 3, 4]"), ("down", "z", "[0, 1, 2]")] {
        let compile = ["compile", "m.ir", "--function", name, "-o", "m.so"];
        house.run(&[&compile[..], &["--validate=compiled"]].concat());
        let input = format!("{input}=x.npy");
        // The names of the model's inputs and outputs are those of `main`.
        let result = format!("output: float32[3] {result}\n");
        assert_eq!(house.run(&["run", "m.so", "--input", &input]), result);
        let run = ["run", "m.ir", "--function", name, "--input", &input];
        assert_eq!(house.run(&run), result);
    }
}

#[test]
fn what_is_not_said_and_what_there_is_not_are_told() {
    let house = house(TWO);
    let said = house.refused(&["run", "m.ir", "--input", "x=x.npy"]);
    assert!(said.contains("(`--function`); it has `up`, `down`"), "{said}");
    let said = house.refused(&["compile", "m.ir", "--function", "left", "-o", "m.so"]);
    assert!(said.contains("the module has no function `left`; it has `up`, `down`"), "{said}");
    assert!(!house.at("m.so").exists() && !house.at("m.h").exists());
}

#[test]
fn every_public_function_is_a_function_of_the_library() {
    let house = house(&format!("{TWO}{PROGRAM}"));
    let said = house.run(&["compile", "m.ir", "-o", "m.so", "--validate=compiled"]);
    assert!(said.contains("m.so"), "{said}");
    for (name, input, result) in [
        ("up", "x", "output: float32[3] [2, 3, 4]\n"),
        ("down", "z", "output: float32[3] [0, 1, 2]\n"),
        ("add_one", "x", "y: float32[3] [2, 3, 4]\n"),
    ] {
        let input = format!("{input}=x.npy");
        let said = house.run(&["run", "m.so", "--function", name, "--input", &input]);
        assert_eq!(said, result);
    }
    let said = house.refused(&["run", "m.so", "--input", "x=x.npy"]);
    assert!(said.contains("no `main`") && said.contains("`up`, `down`, `add_one`"), "{said}");
    let said = house.refused(&["run", "m.so", "--function", "hidden", "--input", "x=x.npy"]);
    assert!(said.contains("there is no function `hidden`"), "{said}");
    let told = house.run(&["show", "m.so"]);
    for line in ["@up as m_up_run", "@down as m_down_run", "@add_one as m_add_one_run"] {
        assert!(told.contains(&format!("function     {line}")), "{told}");
    }
    let told = house.run(&["show", "m.so", "--json"]);
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["signature"], serde_json::Value::Null);
    assert_eq!(told["functions"][1]["function"], "down");
    assert_eq!(told["functions"][1]["inputs"][0]["shape"], serde_json::json!(["n"]));
    assert_eq!(
        (&told["functions"][2]["symbol"], &told["prefix"]),
        (&"m_add_one".into(), &"m".into())
    );
}

#[test]
fn a_function_may_say_what_its_names_in_c_begin_with() {
    let text = TWO.replace(
        "fn @down(%z: f32[n]) -> f32[n] {",
        "fn @down(%z: f32[n]) -> f32[n] { global_symbol = \"net_lower\" } {",
    );
    assert_ne!(text, TWO);
    let house = house(&text.replace("@up", "@main"));
    house.run(&["compile", "m.ir", "-o", "m.so"]);
    let header = String::from_utf8(house.read("m.h")).unwrap();
    for name in ["m_call(int64_t n,", "net_lower_call(int64_t n,", "#define NET_LOWER_NUM_INPUTS 1"]
    {
        assert!(header.contains(name), "{name}: {header}");
    }
    let told = house.run(&["show", "m.so"]);
    assert!(told.contains("@main as m_run") && told.contains("@down as net_lower_run"), "{told}");
    // The names that the model gives are those of `main`.
    let said = house.run(&["run", "m.so", "--input", "given=x.npy"]);
    assert_eq!(said, "made: float32[3] [2, 3, 4]\n");
}

/// Two programs of one function, of which each is for another processor.
const TARGETS: &str = "fn @main(%x: f32[4096]) -> f32[4096] {
  %a = call_tir(@narrow, %x) { out = f32[4096] }
  %b = call_tir(@wide, %a) { out = f32[4096] }
  ret %b
}
private prim @narrow(%x: f32[4096], out %y: f32[4096]) { target = \"x86_64-linux-gnu,cpu=x86-64-v3\" } {
  for %i in 0..4096 {
    block \"up\" (%vi: spatial = %i) {
      %y[%vi] = %x[%vi] + 1.0
    }
  }
}
private prim @wide(%x: f32[4096], out %y: f32[4096]) { target = \"znver4\" } {
  for %i in 0..4096 {
    block \"up\" (%vi: spatial = %i) {
      %y[%vi] = %x[%vi] + 1.0
    }
  }
}
";

#[test]
fn a_program_is_compiled_for_the_target_that_it_names() {
    let house = house(TARGETS);
    let compile = ["compile", "m.ir", "--target", "x86_64-linux-gnu", "--emit", "asm"];
    let text = house.run(&[&compile[..], &["-o", "/dev/stdout"]].concat());
    let code = |program: &str| {
        let label =
            text.lines().position(|line| line.starts_with("kernel") && line.contains(program));
        let lines = text.lines().skip(label.expect("the program has code"));
        lines.take_while(|line| !line.contains(".size")).collect::<Vec<_>>().join("\n")
    };
    let (narrow, wide) = (code(".narrow"), code(".wide"));
    assert!(narrow.contains("%ymm") && !narrow.contains("%zmm"), "{narrow}");
    assert!(wide.contains("%zmm"), "{wide}");
    fs::write(house.at("m.ir"), TARGETS.replace("znver4", "riscv64")).unwrap();
    let message = house.refused(&compile);
    let wanted = ", from m.ir:13: it is for riscv64-unknown-linux-gnu, and the library for x86_64-unknown-linux-gnu";
    assert!(message.contains(wanted), "{message}");
}

/// Functions for two processors of one architecture, called by one that is for neither.
const PROCESSORS: &str = "fn @main(%x: f32[3]) -> f32[3] {
  %a = exp(%x)
  %b = @old(%a)
  %c = @new(%b)
  ret %c
}
fn @old(%x: f32[3]) -> f32[3] { target = \"x86-64-v2\" } {
  ret tanh(add(%x, %x))
}
fn @new(%x: f32[3]) -> f32[3] { target = \"x86-64-v3\" } {
  ret nn.softmax(multiply(%x, %x))
}
";

#[test]
fn functions_of_one_library_are_for_several_processors() {
    let text = |new: &str| PROCESSORS.replace("[3]", "[4096]").replace("x86-64-v3", new);
    let house = house(&text("x86-64-v4"));
    let compile = ["compile", "m.ir", "--target", "x86-64", "--emit", "asm", "-o"];
    let made = house.run(&[&compile[..], &["/dev/stdout"]].concat());
    let of = |program: &str| -> String {
        // The part that threads share has a name of its own.
        let parts = made
            .split("\nkernel")
            .filter(|part| part.lines().next().is_some_and(|label| label.contains(program)));
        let code = parts.map(|part| part.split(".size").next().unwrap_or_default());
        code.collect::<Vec<_>>().join("\n")
    };
    let has = |code: &str, registers: &str| code.contains(registers);
    assert!(has(&of(".exp"), "%xmm") && !has(&of(".exp"), "%ymm"));
    assert!(has(&of("tanh"), "%xmm") && !has(&of("tanh"), "%ymm"));
    assert!(has(&of("softmax"), "%zmm"));
    // One is for another architecture: where it stands is said, and it is compiled by itself.
    fs::write(house.at("m.ir"), text("aarch64")).unwrap();
    let message = house.refused(&[&compile[..], &["m.s"]].concat());
    assert!(message.contains(", from m.ir:11: it is for aarch64-unknown-linux-gnu"), "{message}");
    let alone = ["compile", "m.ir", "--target", "aarch64", "--function", "new", "--emit", "asm"];
    house.run(&[&alone[..], &["-o", "m.s"]].concat());

    if !std::arch::is_x86_feature_detected!("avx2") {
        return println!("skipped: this processor has no AVX2");
    }
    fs::write(house.at("m.ir"), PROCESSORS).unwrap();
    house.run(&["compile", "m.ir", "--target", "x86-64", "-o", "m.so", "--validate=compiled"]);
    let said = house.run(&["run", "m.so", "--input", "x=x.npy"]);
    assert!(said.starts_with("output: float32[3] [0.333"), "{said}");
}
