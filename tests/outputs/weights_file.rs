//! `--weights-file`: constants in a file beside a library or an object.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Instant;

use crate::house::{House, said};
use crate::objects::run_c;

const COMPILE: [&str; 5] = ["compile", "a.ir", "-o", "m.so", "--weights-file"];
const RUN: [&str; 4] = ["run", "m.so", "--input", "x=x.npy"];

/// A house with an input of zeros for its models.
fn house() -> House {
    let house = House::new();
    let header =
        format!("{:<117}\n", "{'descr': '<f4', 'fortran_order': False, 'shape': (4096,), }");
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(vec![0; 4 * 4096]);
    fs::write(house.at("x.npy"), file).unwrap();
    house
}

#[test]
fn a_library_runs_with_the_file_beside_it() {
    let house = house();
    house.run(&COMPILE);
    assert_eq!(house.names(), ["a.ir", "b.ir", "m.h", "m.so", "m.weights", "x.npy"]);
    assert_eq!(house.read("m.weights").len(), 4096 + 4 * 4096);
    let row: Vec<u8> = [4094f32, 4095f32].iter().flat_map(|it| it.to_le_bytes()).collect();
    let has_weights = |name: &str| house.read(name).windows(8).any(|window| window == row);
    assert!(has_weights("m.weights") && !has_weights("m.so"));
    let told = house.run(&RUN);
    assert!(told.contains("[0, 1, 2, 3, 4"), "{told}");
    let shown = house.run(&["show", "m.so"]);
    assert!(shown.contains("weights      m.weights, 20480 bytes"), "{shown}");
    let shown = house.run(&["show", "m.so", "--json"]);
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["weights"]["file"], "m.weights");
    // Through a link, and from elsewhere.
    fs::create_dir(house.at("folder")).unwrap();
    symlink("../m.so", house.at("folder/linked.so")).unwrap();
    assert_eq!(house.run(&["run", "folder/linked.so", "--input", "x=x.npy"]), told);
    fs::rename(house.at("m.weights"), house.at("folder/w")).unwrap();
    let refused = house.refused(&RUN);
    assert!(refused.contains("m.so needs its file of weights: cannot open"), "{refused}");
    assert!(refused.contains("or is named: --weights-file"), "{refused}");
    let named = [&RUN[..], &["--weights-file", "folder/w"]].concat();
    assert_eq!(house.run(&named), told);
    // What is read is not written.
    let over = house.refused(&[&named[..], &["--output", "folder/w"]].concat());
    assert!(over.contains("is read as input"), "{over}");
}

#[test]
fn foreign_weights_are_refused() {
    let house = house();
    house.run(&COMPILE);
    house.run(&["compile", "b.ir", "-o", "n.so", "--weights-file=other"]);
    assert!(!house.at("n.weights").exists());
    let refused = house.refused(&[&RUN[..], &["--weights-file", "other"]].concat());
    assert!(refused.contains("`other` has the weights of another library"), "{refused}");
    let weights = house.read("m.weights");
    fs::write(house.at("m.weights"), &weights[..weights.len() - 1]).unwrap();
    let refused = house.refused(&RUN);
    assert!(refused.contains("20479 bytes of 20480"), "{refused}");
    for name in ["a.ir", "x.npy"] {
        let refused = house.refused(&[&RUN[..], &["--weights-file", name]].concat());
        assert!(refused.contains("is no file of weights"), "{refused}");
    }
    // What has none takes none.
    for (model, why) in [("a.ir", "is of a library"), ("own.so", "has its weights itself")] {
        house.run(&["compile", "a.ir", "-o", "own.so"]);
        let words = ["run", model, "--input", "x=x.npy", "--weights-file", "other"];
        assert!(house.refused(&words).contains(why), "{model}");
    }
}

#[test]
fn a_program_is_linked_with_an_object_and_maps_its_weights() {
    let house = house();
    house.run(&["compile", "a.ir", "--emit", "obj", "-o", "model.o", "--weights-file"]);
    let code = r#"#include "model.h"
#include <stdio.h>
int main(void) {
  static float x[4096], y[4096];
  if (model_call(x, y) != TENON_ERROR_WEIGHTS) return 1;
  if (model_open_weights(MODEL_WEIGHTS_FILE ".none") != TENON_ERROR_WEIGHTS) return 2;
  if (model_open_weights("FOLDER" MODEL_WEIGHTS_FILE) != TENON_OK) return 3;
  if (model_call(x, y) != TENON_OK) return 4;
  printf("%g\n", y[4095]);
  return 0;
}
"#;
    let folder = house.at("").display().to_string();
    assert_eq!(run_c(&house, &code.replace("FOLDER", &folder)), "4095\n");
}

#[test]
fn what_cannot_be_written_leaves_everything_as_it_was() {
    let house = house();
    house.run(&COMPILE);
    let names = ["m.so", "m.h", "m.weights"];
    let before = names.map(|name| house.read(name));
    let compile = ["compile", "b.ir", "-o", "m.so"];
    for (file, why) in [
        ("none/w", "cannot write `none/w`"),
        ("b.ir", "it is read as input"),
        ("m.so", "the same file, and two outputs"),
        ("m.h", "the same file, and two outputs"),
    ] {
        let weights = format!("--weights-file={file}");
        let refused = house.refused(&[&compile[..], &[&weights]].concat());
        assert!(refused.contains(why), "{file}: {refused}");
    }
    fs::create_dir(house.at("locked")).unwrap();
    fs::set_permissions(house.at("locked"), Permissions::from_mode(0o500)).unwrap();
    let weights = ["--weights-file=locked/w"];
    let output = house.tenon(&[&compile[..], &weights].concat()).output().unwrap();
    // Whoever may do everything may write there as well.
    if !output.status.success() {
        assert!(said(&output).contains("cannot write `locked/w`"), "{}", said(&output));
        assert_eq!(names.map(|name| house.read(name)), before);
    }
    fs::set_permissions(house.at("locked"), Permissions::from_mode(0o700)).unwrap();
    let refused = house.refused(&["compile", "a.ir", "--emit", "asm", "--weights-file"]);
    assert!(refused.contains("--weights-file is for what is linked"), "{refused}");
    let refused = house.refused(&["compile", "a.ir", "-o", "/dev/null", "--weights-file"]);
    assert!(refused.contains("the weights need a name"), "{refused}");
}

#[test]
fn a_library_that_is_replaced_while_it_is_opened_has_its_own_weights() {
    let house = house();
    let told = ["a.ir", "b.ir"].map(|from| {
        house.run(&["compile", from, "-o", "m.so", "--weights-file"]);
        house.run(&RUN)
    });
    assert_ne!(told[0], told[1]);
    std::thread::scope(|scope| {
        let writers = ["a.ir", "b.ir"].map(|from| {
            let words = ["compile", from, "-o", "m.so", "--weights-file"];
            let house = &house;
            scope.spawn(move || (0..15).for_each(|_| drop(house.run(&words))))
        });
        while writers.iter().any(|writer| !writer.is_finished()) {
            assert!(told.contains(&house.run(&RUN)));
        }
    });
}

#[test]
fn whatever_ends_a_writer_the_library_has_its_weights() {
    let house = house();
    // What was saved needs no pass, so no plugin is blamed when a writer is ended.
    for from in ["a.ir", "b.ir"] {
        house.run(&["compile", from, "--emit", "exec"]);
    }
    let compile = |from| ["compile", from, "-o", "m.so", "--weights-file"];
    let start = Instant::now();
    let told = ["a.exec", "b.exec"].map(|from| {
        house.run(&compile(from));
        house.run(&RUN)
    });
    let whole = start.elapsed() / 4;
    let count = 20;
    for round in 0..count {
        let from = ["a.exec", "b.exec"][round % 2];
        let mut writer = house.tenon(&compile(from)).spawn().unwrap();
        std::thread::sleep(whole.mul_f64(0.4 + 1.2 * round as f64 / count as f64));
        writer.kill().unwrap();
        writer.wait().unwrap();
        assert!(told.contains(&house.run(&RUN)), "round {round}");
    }
    house.run(&compile("b.exec"));
    assert_eq!(house.run(&RUN), told[1]);
    assert!(!house.names().iter().any(|name| name.starts_with(".m.weights.")));
}

#[test]
fn a_cache_has_weights_as_well() {
    let house = house();
    let cached = |words: &[&str]| {
        house.run(&[&COMPILE[..], &["--cache", "cache"], words].concat()).contains("before")
    };
    assert!(!cached(&[]));
    let names = ["m.so", "m.h", "m.weights"];
    let made = names.map(|name| house.read(name));
    names.iter().for_each(|name| fs::remove_file(house.at(name)).unwrap());
    assert!(cached(&[]));
    assert_eq!(names.map(|name| house.read(name)), made);
    house.run(&RUN);
    // The name stands in the library.
    house.run(&["compile", "a.ir", "-o", "m.so", "--cache", "cache"]);
    assert!(!house.run(&["show", "m.so"]).contains("weights"));
    house.run(&["compile", "a.ir", "-o", "m.so", "--cache", "cache", "--weights-file=w"]);
    assert!(house.run(&["show", "m.so"]).contains("weights      w, 20480 bytes"));
}
