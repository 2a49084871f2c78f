//! `--emit exec`: an executable that is run, shown and exported without compiling it again.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use tenon_compiler::io::Outputs;
use tenon_compiler::session::{Dims, Installation, Options, Session};
use tenon_compiler::target::Target;

use crate::house::{House, said, tenon};

/// Two functions, and a library beside the executable that is made of the same.
fn house() -> House {
    let house = House::new();
    let function = |name: &str, by: u32| {
        format!(
            "fn @{name}(%x: f32[n]) {{\n  %y = multiply(%x, const(f32[], {by}.0))\n  ret %y\n}}\n"
        )
    };
    fs::write(house.at("m.ir"), function("main", 2) + &function("third", 3)).unwrap();
    let header = format!("{:<117}\n", "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }");
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend([1f32, 2.0, 3.0].iter().flat_map(|number| number.to_le_bytes()));
    fs::write(house.at("x.npy"), file).unwrap();
    house.run(&["compile", "m.ir", "--emit", "exec"]);
    house
}

#[test]
fn it_is_run_shown_and_exported() {
    let house = house();
    fs::rename(house.at("m.ir"), house.at("gone")).unwrap();
    let input = ["--input", "x=x.npy"];
    let run = |words: &[&str]| house.run(&[words, &input].concat());
    let told = run(&["run", "m.exec"]);
    assert!(told.contains("[2, 4, 6]"), "{told}");
    assert!(run(&["run", "m.exec", "--function", "third"]).contains("[3, 6, 9]"));
    let shown = house.run(&["show", "m.exec"]);
    assert!(shown.contains("kind         executable, "), "{shown}");
    assert!(shown.contains("@main\n") && shown.contains("@third\n"), "{shown}");
    let shown = house.run(&["show", "m.exec", "--json"]);
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(
        (&shown["kind"], &shown["signature"]["function"]),
        (&"executable".into(), &"main".into())
    );
    // Whatever it is called.
    fs::copy(house.at("m.exec"), house.at("some")).unwrap();
    assert_eq!(run(&["run", "some"]), told);
    house.run(&["compile", "some", "-o", "l.so", "--weights-file"]);
    assert_eq!(run(&["run", "l.so"]), told);
    house.run(&["compile", "m.exec", "--emit", "obj", "--prefix", "p", "-o", "l.o"]);
    let header = String::from_utf8(house.read("l.h")).unwrap();
    assert!(header.contains("p_run(") && header.contains("p_third_run("), "{header}");
    house.run(&["compile", "m.exec", "--emit", "exec", "-o", "n.exec"]);
    assert_eq!(house.read("n.exec"), house.read("m.exec"));
}

#[test]
fn what_says_how_to_compile_is_refused() {
    let house = house();
    for (words, option) in [
        (&["-D", "n=3"][..], "-D"),
        (&["--function", "third"], "--function"),
        (&["--cache", "cache"], "--cache"),
        (&["--target", "x86-64"], "--target"),
        (&["--pipeline", ""], "--pipeline"),
        (&["--emit", "asm"], "--emit of a text"),
        (&["--opt-level", "1"], "--opt-level"),
        (&["--precision", "bf16"], "--precision"),
    ] {
        let text = house.refused(&[&["compile", "m.exec", "-o", "m.so"], words].concat());
        let expected = format!("m.exec is compiled already, and {option} says how");
        assert!(text.contains(&expected), "{text}");
    }
    let text = house.refused(&["compile", "m.exec", "--emit", "exec", "--weights-file"]);
    assert!(text.contains("--weights-file is for what is linked"), "{text}");
    let text = house.refused(&["compile", "m.exec", "--emit", "exec", "-o", "m.exec"]);
    assert!(text.contains("it is read as input"), "{text}");
    let run = ["run", "m.exec", "--input", "x=x.npy"];
    for (words, why) in [
        (["--processor", "x86-64"], "--processor is of a library"),
        (["--weights-file", "w"], "--weights-file is of a library"),
        (["-D", "n=3"], "m.exec is compiled already, and -D says how"),
        (["--pipeline", ""], "m.exec is compiled already, and --pipeline says how"),
        (["--target", "x86-64"], "m.exec is compiled already, and --target says how"),
    ] {
        let text = house.refused(&[&run[..], &words].concat());
        assert!(text.contains(why), "{text}");
    }
    assert!(!house.at("m.so").exists());

    house.run(&["compile", "m.ir", "-o", "n.so"]);
    for option in
        [["-D", "n=3"], ["--weights", "int8"], ["--tune-db", "t.jsonl"], ["--link", "o.o"]]
    {
        let text = house.refused(&[&["run", "n.so", "--input", "x=x.npy"][..], &option].concat());
        assert!(
            text.contains(&format!("n.so is compiled already, and {} says", option[0])),
            "{text}"
        );
    }
    let many = ["run", "n.so", "--input", "x=x.npy", "--threads", "1000000"];
    let text = house.refused(&many);
    assert!(text.contains("1000000 threads are asked for; a pool has at most 4096"), "{text}");
    let mut compare = house.tenon(&["compare", "m.ir", "--input", "x=x.npy", "--tolerance", "nan"]);
    let text = said(&compare.output().expect("the program is there"));
    assert!(text.contains("`nan` is no part"), "{text}");
    let text = house.refused(&["compile", "m.ir", "-o", "o.so", "--tune-db", "/dev/null"]);
    assert!(text.contains("/dev/null cannot be read: it is no regular file"), "{text}");
}

#[test]
fn foreign_files_are_refused() {
    let house = house();
    let whole = house.read("m.exec");
    let run = ["run", "m.exec", "--input", "x=x.npy"];
    let refused = |why: &str| {
        for words in [&run[..], &["compile", "m.exec", "-o", "m.so"]] {
            let text = house.refused(words);
            assert!(text.contains(why), "{text}");
        }
    };
    fs::set_permissions(house.at("m.exec"), Permissions::from_mode(0o666)).unwrap();
    refused("m.exec` is not loaded: everybody can write to");
    fs::set_permissions(house.at("m.exec"), Permissions::from_mode(0o644)).unwrap();
    fs::write(house.at("m.exec"), &whole[..whole.len() - 1]).unwrap();
    refused("m.exec` is damaged");
    assert!(house.refused(&["show", "m.exec"]).contains("is damaged"));
    fs::write(house.at("m.exec"), "fn @main()").unwrap();
    refused("m.exec` is no executable that Tenon has saved");
    fs::remove_file(house.at("m.exec")).unwrap();
    refused("m.exec");
}

#[test]
fn a_program_saves_and_loads_through_a_session() {
    let house = house();
    let session = Session::open(&Installation::at(tenon().get_program()), &[]).unwrap();
    let model = session.read(&house.at("m.ir"), &Dims::new()).unwrap();
    let executable = session.compile(&model, Target::native().unwrap(), &Options::default());
    let path = house.at("program.exec");
    executable.unwrap().save(&path, Outputs::default()).unwrap();
    let loaded = session.load(&path).unwrap();
    assert_eq!(loaded.functions().len(), 2);
    loaded.load().unwrap().function("third").unwrap();
    let error = session.load(&house.at("x.npy")).err().unwrap();
    assert!(error.to_diagnostics().0[0].message.contains("is no executable"));
}
