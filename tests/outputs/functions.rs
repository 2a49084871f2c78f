//! Which function of a module is compiled.

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
fn house(text: &str) -> House {
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
    let said = house.refused(&["compile", "m.ir", "-o", "m.so"]);
    assert!(said.contains("(`--function`); it has `up`, `down`"), "{said}");
    let said = house.refused(&["compile", "m.ir", "--function", "left", "-o", "m.so"]);
    assert!(said.contains("the module has no function `left`; it has `up`, `down`"), "{said}");
    assert!(!house.at("m.so").exists() && !house.at("m.h").exists());
}
