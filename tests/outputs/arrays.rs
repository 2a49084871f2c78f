//! Arrays of short floats go in, come out and are shown.

use std::fs;

use tenon_compiler::io::{Array, NpyType, read_npz, write_npy};

use crate::house::House;

#[test]
fn short_floats_go_in_and_come_out() {
    let house = House::new();
    let text = "fn @main(%x: f16[3], %y: bf16[2], %z: bool[2]) -> (f16[3], bf16[2], bool[2]) {\n  \
                %a = add(%x, %x)\n  %b = add(%y, %y)\n  %c = logical_not(%z)\n  ret (%a, %b, %c)\n}\n";
    fs::write(house.at("short.ir"), text).unwrap();
    let array =
        |dtype, bytes: &[u8], count| Array { dtype, shape: vec![count], data: bytes.to_vec() };
    let inputs = [
        ("x", array(NpyType::F16, &[0x00, 0x38, 0x00, 0x3c, 0x00, 0xc0], 3)),
        ("y", array(NpyType::BF16, &[0x80, 0x3f, 0x20, 0x40], 2)),
        ("z", array(NpyType::Bool, &[1, 0], 2)),
    ];
    let mut words = vec!["run".to_owned(), "short.ir".to_owned()];
    for (name, array) in &inputs {
        let file = format!("{name}.npy");
        write_npy(&house.at(&file), array.view()).unwrap();
        words.extend(["--input".to_owned(), format!("{name}={file}")]);
    }
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    assert_eq!(
        house.run(&words),
        "output0: float16[3] [1, 2, -4]\noutput1: bfloat16[2] [2, 5]\noutput2: bool[2] [false, true]\n"
    );
    words.extend(["--output", "out.npz"]);
    house.run(&words);
    let outputs = read_npz(&house.at("out.npz")).unwrap();
    assert_eq!(outputs[1].1, array(NpyType::BF16, &[0x00, 0x40, 0xa0, 0x40], 2));
}
