//! Results of several files are of one run.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::house::{House, said};

/// Writes the text of a model, with its weights beside it. No pass runs, so no plugin is blamed when it is ended.
fn opt<'a>(from: &'a str, to: &'a str) -> [&'a str; 6] {
    ["opt", from, "-p", "", "-o", to]
}

/// The text that each of the two models becomes under the name `out.ir`.
fn both_texts(house: &House) -> [Vec<u8>; 2] {
    ["a.ir", "b.ir"].map(|from| {
        house.run(&opt(from, "out.ir"));
        house.read("out.ir")
    })
}

#[test]
fn foreign_weights_of_equal_shapes_are_an_error() {
    let house = House::new();
    house.run(&opt("a.ir", "one.ir"));
    house.run(&opt("b.ir", "two.ir"));
    fs::copy(house.at("two.safetensors"), house.at("one.safetensors")).unwrap();
    let message = house.refused(&["check", "one.ir"]);
    assert!(message.contains("these are other weights than those of the text"), "{message}");
    // It is told once, and the file is read once, however many weights it should have.
    let more = "fn @main(%x: f32[2]) {\n  %y = add(%x, const(f32[2], @a))\n  \
                %z = add(%y, const(f32[2], @b))\n  ret %z\n}\n";
    let head = format!("weights \"one.safetensors\" sha256 \"{}\"\n", "0".repeat(64));
    fs::write(house.at("more.ir"), head + more).unwrap();
    let message = house.refused(&["check", "more.ir"]);
    assert_eq!(message.matches("these are other weights").count(), 1, "{message}");
    assert!(
        message.contains("`b` cannot be read: `one.safetensors` is not used, as was said"),
        "{message}"
    );
    fs::remove_file(house.at("one.safetensors")).unwrap();
    let message = house.refused(&["check", "one.ir"]);
    assert!(message.contains("cannot open `one.safetensors`"), "{message}");
}

#[test]
fn whatever_ends_a_writer_the_text_has_its_weights() {
    let house = House::new();
    let texts = both_texts(&house);
    let start = Instant::now();
    house.run(&opt("a.ir", "out.ir"));
    let whole = start.elapsed();
    // What happens at the end is more often hit than what happens at the start.
    let count = 60;
    for round in 0..count {
        let from = ["a.ir", "b.ir"][round % 2];
        let mut writer = house.tenon(&opt(from, "out.ir")).spawn().unwrap();
        std::thread::sleep(whole.mul_f64(0.4 + 0.7 * round as f64 / count as f64));
        writer.kill().unwrap();
        writer.wait().unwrap();
        house.run(&["check", "out.ir"]);
        assert!(texts.contains(&house.read("out.ir")), "round {round}");
    }
    // What was left of them is no part of a result, and the next one puts its own into place.
    house.run(&opt("b.ir", "out.ir"));
    assert_eq!(house.read("out.ir"), texts[1]);
    assert!(!house.names().iter().any(|name| name.starts_with(".out.safetensors.")));
}

#[test]
fn readers_see_one_of_competing_writers() {
    let house = House::new();
    let texts = both_texts(&house);
    std::thread::scope(|scope| {
        let writers = ["a.ir", "b.ir"].map(|from| {
            let house = &house;
            scope.spawn(move || (0..20).for_each(|_| drop(house.run(&opt(from, "out.ir")))))
        });
        while writers.iter().any(|writer| !writer.is_finished()) {
            house.run(&["check", "out.ir"]);
        }
    });
    assert!(texts.contains(&house.read("out.ir")));
    house.run(&["check", "out.ir"]);
}

/// A shell's limit on the size of files, in units of 512 bytes: as a full disk, but without a disk.
fn with_little_room(house: &House, units: u32, words: &[&str]) -> std::process::Output {
    let limited = format!("trap '' XFSZ; ulimit -f {units}; exec \"$0\" \"$@\"");
    let program = house.tenon(&[]);
    let mut shell = Command::new("sh");
    shell.args(["-c", &limited]).arg(program.get_program()).args(words);
    for (key, value) in program.get_envs() {
        shell.env(key, value.unwrap_or_default());
    }
    let folder = house.at("");
    shell.current_dir(folder).stdin(Stdio::null()).output().expect("there is a shell")
}

#[test]
fn a_full_disk_leaves_the_old_result() {
    let house = House::new();
    let cases: [(&[&str], [&str; 2]); 5] = [
        (&opt("a.ir", "out.ir"), ["out.ir", "out.safetensors"]),
        (&["compile", "a.ir", "-o", "out.so"], ["out.so", "out.h"]),
        (&["compile", "a.ir", "--emit", "obj", "-o", "lib.o"], ["lib.o", "lib.h"]),
        (&["compile", "a.ir", "-o", "w.so", "--weights-file"], ["w.weights", "w.so"]),
        (&["compile", "a.ir", "--emit", "exec", "-o", "m.exec"], ["m.exec", "m.exec"]),
    ];
    for (words, old) in cases {
        house.run(words);
        let before = old.map(|name| house.read(name));
        let names = house.names();
        let again: Vec<&str> =
            words.iter().map(|word| if *word == "a.ir" { "b.ir" } else { *word }).collect();
        // From nothing at all to the text without its weights.
        for units in [0, 1, 8, 16] {
            let output = with_little_room(&house, units, &again);
            assert!(!output.status.success(), "{again:?} with {units}");
            assert!(!said(&output).is_empty(), "{again:?} with {units}");
            assert!(old.map(|name| house.read(name)) == before, "{again:?} with {units}");
            assert_eq!(house.names(), names, "{again:?} with {units}");
        }
        house.run(&again);
        assert!(house.read(old[0]) != before[0]);
    }
}

/// LLVM's linker maps what it writes, so a full disk ends it by a signal.
#[test]
fn a_linker_without_room_is_told_as_a_full_disk() {
    let house = House::new();
    fs::create_dir(house.at("bin")).unwrap();
    let linker = house.at("bin/ld.lld-22");
    fs::write(&linker, "#!/bin/sh\nkill -BUS $$\n").unwrap();
    fs::set_permissions(&linker, fs::Permissions::from_mode(0o755)).unwrap();
    let names = house.names();
    let mut compile = house.tenon(&["compile", "a.ir", "-o", "out.so"]);
    let output = compile.env("PATH", house.at("bin")).output().expect("the program is there");
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert_eq!(said(&output).trim_end(), "error: write out.so: no storage space");
    assert_eq!(house.names(), names);
}

/// A library, its header and the digits of their interface come from one run, also when several write them.
#[test]
fn a_library_has_the_header_of_its_own_run() {
    let house = House::new();
    let other = "fn @main(%x: f32[3]) {\n  %y = exp(%x)\n  ret %y\n}\n";
    fs::write(house.at("other.ir"), other).unwrap();
    let compile = |from| house.run(&["compile", from, "-o", "out.so"]);
    std::thread::scope(|scope| {
        for from in ["a.ir", "other.ir"] {
            scope.spawn(move || (0..4).for_each(|_| drop(compile(from))));
        }
    });
    let symbol = |header: &[u8]| {
        let text = String::from_utf8_lossy(header).into_owned();
        let at = text.find("__asm__(\"").expect("the header names a symbol") + "__asm__(\"".len();
        text[at..].split('"').next().unwrap().to_owned()
    };
    let found = symbol(&house.read("out.h"));
    assert!(contains(&house.read("out.so"), &found), "{found}");

    // A header of another interface: a program that uses it does not link.
    compile("a.ir");
    let header = house.read("out.h");
    compile("other.ir");
    assert!(!contains(&house.read("out.so"), &symbol(&header)));
    let main = "#include \"out.h\"\nint main(void) { static float x[4096], y[4096]; return out_call(x, y); }\n";
    fs::write(house.at("main.c"), main).unwrap();
    let link = || {
        let mut compiler = Command::new("cc");
        compiler.args(["-o", "main", "main.c", "out.so"]).current_dir(house.at(""));
        compiler.output().expect("a C compiler")
    };
    fs::write(house.at("out.h"), &header).unwrap();
    let message = said(&link());
    assert!(message.contains(&symbol(&header)), "{message}");
    compile("a.ir");
    assert!(link().status.success());
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// A text is read anew when its writer was faster, but one that others hold does not keep a writer for ever.
#[test]
fn a_folder_that_somebody_locks_is_written_to_after_a_while() {
    let house = House::new();
    let folder = fs::File::open(house.at("")).unwrap();
    folder.lock().unwrap();
    let start = Instant::now();
    house.run(&opt("a.ir", "out.ir"));
    assert!(start.elapsed() < Duration::from_secs(60));
}
