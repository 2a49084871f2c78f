//! Libraries for several processors, as a user makes, looks at and runs them.

use std::fs;

use tenon_compiler::target::Target;

use crate::house::House;

const ARRAYS: &str = "fn @main(%x: f32[4]) -> f32[4] {\n  %y = add(%x, %x)\n  ret %y\n}\n";

#[test]
fn a_library_is_compiled_for_several_processors_shown_and_run() {
    let house = House::new();
    let compile = ["compile", "a.ir", "-o", "m.so", "--target", "x86-64-v2/x86-64-v3"];
    house.run(&compile);
    let shown = house.run(&["show", "m.so"]);
    assert!(shown.contains("for x86_64-unknown-linux-gnu,cpu=x86-64-v3"), "{shown}");
    assert!(shown.contains("or x86_64-unknown-linux-gnu,cpu=x86-64-v2"), "{shown}");
    let told = house.run(&["--json", "show", "m.so"]);
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    let target = told["signature"]["target"].as_str().unwrap();
    assert_eq!(target.split('/').count(), 2, "{target}");
    let header = String::from_utf8(house.read("m.h")).unwrap();
    assert!(header.contains("cpu=x86-64-v3,vector-width=256,\n   or x86_64"), "{header}");
    // The weights of both are there once.
    let row: Vec<u8> = [4094f32, 4095f32].iter().flat_map(|it| it.to_le_bytes()).collect();
    assert_eq!(house.read("m.so").windows(8).filter(|window| *window == row).count(), 1);

    let input = "x=x.npy";
    write_zeros(&house);
    house.run(&["run", "m.so", "--input", input, "--output", "best.npz"]);
    let words = ["run", "m.so", "--input", input, "--processor", "x86-64-v2"];
    house.run(&[&words[..], &["--output", "v2.npz"]].concat());
    assert_eq!(house.read("best.npz"), house.read("v2.npz"));
    let text = house.refused(&["run", "m.so", "--input", input, "--processor", "z80"]);
    assert!(text.contains("no code for a processor `z80`; it has some for x86_64"), "{text}");
    let text = house.refused(&["run", "a.ir", "--input", input, "--processor", "x86-64-v2"]);
    assert!(text.contains("--processor is of a library"), "{text}");
    if !Target::native().unwrap().has("amx-fp16") {
        house.run(&["compile", "a.ir", "-o", "n.so", "--target", "graniterapids/x86-64-v2"]);
        let words = ["run", "n.so", "--input", input, "--processor", "graniterapids"];
        let text = house.refused(&words);
        assert!(text.contains("n.so has no code that this machine can run; it needs"), "{text}");
        house.run(&["run", "n.so", "--input", input]);
        // One for that processor alone is refused as well, and what is compiled in memory.
        house.run(&["compile", "a.ir", "-o", "o.so", "--target", "graniterapids"]);
        for words in [&["run", "o.so"][..], &["run", "a.ir", "--target", "graniterapids"]] {
            let text = house.refused(&[words, &["--input", input]].concat());
            assert!(text.contains("cpu=graniterapids") && text.contains("lacks `amx-"), "{text}");
        }
    }
}

/// Writes the input of the models as a file of NumPy's.
fn write_zeros(house: &House) {
    let header =
        format!("{:<117}\n", "{'descr': '<f4', 'fortran_order': False, 'shape': (4096,), }");
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(vec![0; 4 * 4096]);
    fs::write(house.at("x.npy"), file).unwrap();
}

#[test]
fn several_processors_are_for_what_is_linked() {
    let house = House::new();
    fs::write(house.at("c.ir"), ARRAYS).unwrap();
    let several = ["--target", "x86-64-v2/x86-64-v3"];
    for words in [
        &["compile", "c.ir", "--emit", "asm"][..],
        &["compile", "c.ir", "--emit", "ir"],
        &["opt", "c.ir", "-p", "default"],
    ] {
        let text = house.refused(&[words, &several].concat());
        assert!(text.contains("one target is expected here"), "{text}");
    }
    for (targets, why) in [
        ("x86-64-v2/x86-64-v2", "it is named twice"),
        ("neoverse-n1/neoverse-v1", "found out on x86-64 alone"),
        ("x86-64-v2/z80", "there is no target `z80`"),
    ] {
        let text = house.refused(&["compile", "c.ir", "--target", targets]);
        assert!(text.contains(why), "{text}");
    }
    // A cache knows them apart, and an object is for several as well.
    let kept = ["compile", "c.ir", "-o", "c.o", "--emit", "obj", "--cache", "cache", "--target"];
    let is_kept =
        |target: &str| house.run(&[&kept[..], &[target]].concat()).contains("compiled before");
    assert!(!is_kept("x86-64-v3") && !is_kept("x86-64-v2/x86-64-v3"));
    assert!(is_kept("x86-64-v2/x86-64-v3") && is_kept("x86-64-v3/x86-64-v2"));
}
