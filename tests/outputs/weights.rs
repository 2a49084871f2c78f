//! Weights of products and convolutions in fewer bits.

use std::fmt::Write;
use std::fs;

use crate::house::{House, said};

const SIDE: i64 = 128;

/// A folder with a product whose weights are multiples of a half up to 3.5, so that four bits hold them, and what it multiplies.
fn house() -> House {
    let house = House::new();
    let mut elements = String::new();
    for (row, column) in (0..SIDE).flat_map(|row| (0..SIDE).map(move |column| (row, column))) {
        write!(elements, "{}, ", ((row * 7 + column * 3) % 15 - 7) as f32 * 0.5).unwrap();
    }
    let text = format!(
        "fn @main(%x: f32[n, {SIDE}]) {{\n  %y = matmul(%x, const(f32[{SIDE}, {SIDE}], [{elements}]))\n  ret %y\n}}\n"
    );
    fs::write(house.at("m.ir"), text).unwrap();
    let mut npy = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': (2, {SIDE}), }}");
    npy.extend(format!("{header:<117}\n").bytes());
    npy.extend((0..2 * SIDE).flat_map(|number| ((number % 37 - 18) as f32).to_le_bytes()));
    fs::write(house.at("x.npy"), npy).unwrap();
    house
}

#[test]
fn a_library_holds_them_in_the_bits_that_are_asked_for() {
    let house = house();
    let run = ["run", "m.so", "--input", "x=x.npy"];
    house.run(&["compile", "m.ir", "-o", "m.so"]);
    let (whole, said) = (house.read("m.so").len(), house.run(&run));
    for (width, saved) in [("int8", 45_000), ("int4:32", 52_000), ("int4", 54_000)] {
        house.run(&["compile", "m.ir", "-o", "m.so", "--weights", width]);
        let size = house.read("m.so").len();
        assert!(size + saved < whole, "{width}: {size} of {whole} bytes");
        // All of them, but those of eight bits, are what they were.
        if width != "int8" {
            assert_eq!(house.run(&run), said, "{width}");
        }
    }
}

#[test]
fn floats_are_as_narrow_as_is_asked_for() {
    let house = house();
    let run = ["run", "m.so", "--input", "x=x.npy"];
    house.run(&["compile", "m.ir", "-o", "m.so"]);
    let (whole, said) = (house.read("m.so").len(), house.run(&run));
    for dtype in ["f16", "bf16"] {
        house.run(&["compile", "m.ir", "-o", "m.so", "--precision", dtype]);
        assert!(house.read("m.so").len() + 30_000 < whole, "{dtype}");
        // All numbers of it, and their sums in f32, are exact.
        assert_eq!(house.run(&run), said, "{dtype}");
    }
    let output =
        house.tenon(&["compile", "m.ir", "-o", "n.so", "--precision", "f8"]).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("f16, bf16"));
    assert!(!house.at("n.so").exists());
}

#[test]
fn convolutions_run_by_dot_products_of_bf16() {
    let house = house();
    let elements: Vec<String> =
        (0..32 * 16 * 9).map(|number| (((number % 15) - 7) as f32 * 0.5).to_string()).collect();
    let text = format!(
        "fn @main(%x: f32[2, {SIDE}]) {{\n  %image = reshape(%x, shape(1, 16, 4, 4))\n  %y = nn.conv2d(%image, \
         const(f32[32, 16, 3, 3], [{}])) {{ padding = [1, 1, 1, 1], strides = [2, 2] }}\n  ret %y\n}}\n",
        elements.join(", ")
    );
    fs::write(house.at("c.ir"), text).unwrap();
    let run = ["run", "c.so", "--input", "x=x.npy"];
    house.run(&["compile", "c.ir", "-o", "c.so"]);
    let said = house.run(&run);
    // All numbers of it, and their sums in f32, are exact.
    house.run(&["compile", "c.ir", "-o", "c.so", "--precision", "bf16"]);
    assert_eq!(house.run(&run), said);
    let narrow = ["--precision", "bf16", "--emit", "asm", "-o", "c.s"];
    for (target, is_fast) in [("znver4", true), ("haswell", false)] {
        house.run(&[&["compile", "c.ir", "--target", target], &narrow[..]].concat());
        let code = String::from_utf8(house.read("c.s")).unwrap();
        assert_eq!(code.contains("vdpbf16ps"), is_fast, "{target}");
    }
}

#[test]
fn what_is_no_width_is_refused() {
    let house = house();
    for width in ["int3", "int8:31", "int4:x"] {
        let said = house.refused(&["compile", "m.ir", "-o", "m.so", "--weights", width]);
        assert!(said.contains("is no way to store weights: int8, int4"), "{said}");
        assert!(!house.at("m.so").exists());
    }
}

#[test]
fn what_stays_in_floats_is_told() {
    let house = house();
    let told = |words: &[&str]| said(&house.tenon(words).output().expect("the program is there"));
    let text = told(&["compile", "m.ir", "-o", "m.so", "--weights", "int4:34"]);
    let expected = "1 constant matrix stays in floats: `int4:34` needs a depth of whole blocks";
    assert!(text.contains(expected), "{text}");
    let small =
        "fn @main(%x: f32[n, 4]) {\n  %y = matmul(%x, const(f32[4, 4], 0.5))\n  ret %y\n}\n";
    fs::write(house.at("small.ir"), small).unwrap();
    let text = told(&["compile", "small.ir", "-o", "m.so", "--weights", "int8"]);
    assert!(text.contains("below 16384 elements `int8` would gain nothing"), "{text}");
}
