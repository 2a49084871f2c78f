//! Where outputs may go.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::process::Stdio;

use crate::house::House;

/// Every command that writes.
const TO_NULL: &[&[&str]] = &[
    &["compile", "a.ir", "-o", "/dev/null"],
    &["compile", "a.ir", "--emit", "obj", "-o", "/dev/null"],
    &["compile", "a.ir", "--emit", "llvm", "-o", "/dev/null"],
    &["compile", "a.ir", "--emit", "asm", "-o", "/dev/null"],
    &["compile", "a.ir", "--emit", "ir", "-o", "/dev/null"],
    &["opt", "a.ir", "-p", "Normalize", "-o", "/dev/null"],
    &["run", "a.ir", "--input", "x=x.npy", "--output", "/dev/null"],
];

#[test]
fn the_null_device_takes_everything_and_stays() {
    let house = House::new();
    write_input(&house);
    let before = house.names();
    for words in TO_NULL {
        house.run(words);
        let kind = fs::metadata("/dev/null").unwrap().file_type();
        assert!(kind.is_char_device(), "{words:?}");
        for extension in ["h", "safetensors"] {
            assert!(!fs::exists(format!("/dev/null.{extension}")).unwrap(), "{words:?}");
        }
    }
    assert_eq!(house.names(), before);
}

#[test]
fn a_full_device_is_an_error() {
    if !fs::exists("/dev/full").unwrap() {
        eprintln!("skipped: no /dev/full here");
        return;
    }
    let house = House::new();
    write_input(&house);
    for words in TO_NULL {
        let mut words = words.to_vec();
        *words.last_mut().unwrap() = "/dev/full";
        let message = house.refused(&words);
        assert!(message.contains("cannot write `/dev/full`: No space left"), "{message}");
    }
}

#[test]
fn a_pipe_is_read_when_somebody_writes_to_it_and_is_not_waited_for_without_end() {
    let house = House::new();
    let pipe = house.at("pipe");
    if !std::process::Command::new("mkfifo").arg(&pipe).status().is_ok_and(|made| made.success()) {
        eprintln!("skipped: no mkfifo here");
        return;
    }
    let message = house.refused(&["check", "pipe"]);
    assert!(message.contains("nobody writes to the pipe `pipe`"), "{message}");
    let text = fs::read(house.at("a.ir")).unwrap();
    let late = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(200));
        let mut end = fs::File::options().write(true).open(pipe).unwrap();
        // Whoever reads does not take what came first for all.
        for part in text.chunks(7) {
            end.write_all(part).unwrap();
            std::thread::yield_now();
        }
    });
    house.run(&["check", "pipe"]);
    late.join().unwrap();
}

#[test]
fn standard_output_is_written_to_and_gets_a_whole_text() {
    let house = House::new();
    let text = house.run(&["opt", "a.ir", "-p", "Normalize", "-o", "/dev/stdout"]);
    fs::write(house.at("copy.ir"), text).unwrap();
    house.run(&["check", "copy.ir"]);
    let library = house.tenon(&["compile", "a.ir", "-o", "/dev/stdout"]).output().unwrap();
    assert!(library.stdout.starts_with(b"\x7fELF"));
    assert!(String::from_utf8_lossy(&library.stderr).contains("/dev/stdout ("));
}

#[test]
fn a_link_stays_and_leads_to_the_result() {
    let house = House::new();
    fs::create_dir(house.at("below")).unwrap();
    symlink("below/model.so", house.at("model.so")).unwrap();
    house.run(&["compile", "a.ir", "-o", "model.so"]);
    assert!(house.at("model.so").is_symlink());
    assert!(house.at("below/model.so").is_file());
    assert!(house.at("model.h").is_file());
}

#[test]
fn what_is_read_is_never_replaced() {
    let house = House::new();
    write_input(&house);
    house.run(&["opt", "a.ir", "-p", "Normalize", "-o", "out.ir"]);
    house.run(&["compile", "a.ir", "-o", "out.so"]);
    symlink("a.ir", house.at("link.ir")).unwrap();
    fs::hard_link(house.at("a.ir"), house.at("hard.ir")).unwrap();
    symlink("a.ir", house.at("y.h")).unwrap();
    symlink("out.safetensors", house.at("same.safetensors")).unwrap();
    let before: Vec<_> = house.names().into_iter().map(|name| (house.read(&name), name)).collect();
    let normalize = ["opt", "out.ir", "-p", "Normalize"];
    let with = |more: [&'static str; 2]| [&normalize[..], &more].concat();
    let cases: &[(&[&str], &str)] = &[
        (&["compile", "a.ir", "-o", "a.ir"], "`a.ir` cannot be written: it is read as input"),
        (&["compile", "a.ir", "-o", "./a.ir"], "it is the file that is read as `a.ir`"),
        (&["compile", "a.ir", "-o", "link.ir"], "it is the file that is read as `a.ir`"),
        (&["compile", "a.ir", "--emit", "llvm", "-o", "hard.ir"], "`hard.ir` cannot be written"),
        // The header and the weights that lie beside an output.
        (&["compile", "a.ir", "-o", "y.so"], "`y.h` cannot be written"),
        (&["compile", "a.ir", "--emit", "obj", "-o", "y.o"], "`y.h` cannot be written"),
        (&["compile", "out.ir", "--emit", "ir", "-o", "same.ir"], "`same.safetensors` cannot be"),
        (&with(["-o", "out.safetensors"]), "it is read as input"),
        (&with(["-o", "out.ir"]), "it is read as input"),
        (&with(["--trace", "out.ir"]), "it is read as input"),
        (&with(["--reproducer", "out.ir"]), "it is read as input"),
        (&["reduce", "a.ir", "-o", "a.ir", "--", "false"], "it is read as input"),
        (&["bisect", "a.ir", "-p", "Normalize", "-o", "a.ir"], "it is read as input"),
        (
            &["run", "out.so", "--input", "x=x.npy", "--output", "x.npy"],
            "`x.npy` cannot be written",
        ),
        (&["run", "out.so", "--input", "x=x.npy", "--output", "out.so"], "it is read as input"),
        // Two outputs.
        (&["compile", "a.ir", "-o", "both.h"], "`both.h` and `both.h` are the same file"),
        (&["opt", "a.ir", "-p", "Normalize", "-o", "both.safetensors"], "are the same file"),
    ];
    for (words, expected) in cases {
        let message = house.refused(words);
        assert!(message.contains(expected), "{words:?}: {message}");
    }
    let after: Vec<_> = house.names().into_iter().map(|name| (house.read(&name), name)).collect();
    assert!(before == after, "{:?}", house.names());
}

/// What a device holds has no end; what a pipe gives has.
#[test]
fn a_text_is_read_from_a_pipe_and_not_from_a_device() {
    let house = House::new();
    for device in ["/dev/zero", "/dev/null"] {
        let message = house.refused(&["check", device]);
        assert!(message.contains("is a device, expected a regular file"), "{message}");
    }
    let mut checking = house.tenon(&["check", "/dev/stdin"]);
    let mut checking = checking.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    checking.stdin.take().unwrap().write_all(&house.read("a.ir")).unwrap();
    assert!(checking.wait().unwrap().success());
}

/// `x.npy`, the input of both models.
fn write_input(house: &House) {
    let array = tenon_compiler::io::Array {
        dtype: tenon_compiler::io::NpyType::F32,
        shape: vec![4096],
        data: vec![0; 4 * 4096],
    };
    tenon_compiler::io::write_npy(&house.at("x.npy"), array.view()).unwrap();
}
