//! `--cache`: what was compiled before is not compiled again.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::house::{House, said};

const COMPILE: [&str; 6] = ["compile", "a.ir", "-o", "m.so", "--cache", "cache"];

/// Whether a compile took what was there.
#[track_caller]
fn is_cached(house: &House, words: &[&str]) -> bool {
    house.run(&[&COMPILE[..], words].concat()).contains("compiled before")
}

/// The folders of all entries; beside them it is noted what files held.
fn entries(house: &House) -> Vec<PathBuf> {
    let all = fs::read_dir(house.at("cache")).unwrap().map(|entry| entry.unwrap().path());
    all.filter(|path| !path.ends_with("seen")).collect()
}

#[test]
fn what_was_compiled_before_is_written_again() {
    let house = House::new();
    assert!(!is_cached(&house, &[]));
    let made = ["m.so", "m.h"].map(|name| house.read(name));
    let mode = fs::metadata(house.at("m.so")).unwrap().permissions().mode();
    fs::remove_file(house.at("m.h")).unwrap();
    fs::write(house.at("m.so"), "something else").unwrap();
    assert!(is_cached(&house, &[]));
    assert_eq!(["m.so", "m.h"].map(|name| house.read(name)), made);
    assert_eq!(fs::metadata(house.at("m.so")).unwrap().permissions().mode(), mode);
    assert_eq!(entries(&house).len(), 1);
    let told = house.run(&[&["--json"][..], &COMPILE].concat());
    assert!(
        told.contains("\"was_cached\":true") || told.contains("\"was_cached\": true"),
        "{told}"
    );
    // Nothing is looked up where nobody asks for it, or wants to see how it goes.
    assert!(!house.run(&COMPILE[..4]).contains("compiled before"));
    assert!(!is_cached(&house, &["--time-passes"]));
    assert!(!is_cached(&house, &["--validate=compiled"]));
}

#[test]
fn what_the_result_follows_from_counts() {
    let house = House::new();
    assert!(!is_cached(&house, &[]));
    for other in [
        &["--prefix", "p"][..],
        &["--opt-level", "0"],
        &["--precision", "bf16"],
        &["--target", "x86-64-v2"],
        &["--emit", "obj"],
        &["-o", "n.so"],
    ] {
        let words: Vec<&str> = match other[0] {
            "-o" => vec!["compile", "a.ir", "--cache", "cache"],
            _ => COMPILE.to_vec(),
        };
        let words = [&words[..], other].concat();
        assert!(!house.run(&words).contains("compiled before"), "{other:?}");
        assert!(house.run(&words).contains("compiled before"), "{other:?}");
    }
    fs::copy(house.at("b.ir"), house.at("a.ir")).unwrap();
    assert!(!is_cached(&house, &[]));
    assert_eq!(entries(&house).len(), 8);
    // A registry is a part of it.
    fs::write(house.at("other.toml"), "schema = 1\n").unwrap();
    assert!(!is_cached(&house, &["--registry", "other.toml"]));
}

#[test]
fn what_was_damaged_is_made_anew() {
    let house = House::new();
    is_cached(&house, &[]);
    let made = house.read("m.so");
    let binary = entries(&house)[0].join("binary");
    let mut bytes = fs::read(&binary).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&binary, bytes).unwrap();
    let output = house.tenon(&COMPILE).output().unwrap();
    assert!(output.status.success());
    let told = said(&output);
    assert!(told.contains("what the cache had is made anew") && told.contains("binary"), "{told}");
    assert_eq!(house.read("m.so"), made);
    assert!(is_cached(&house, &[]));
}

#[test]
fn processes_share_a_cache() {
    let house = House::new();
    let begin = |number: usize| {
        let name = format!("{number}/m.so");
        fs::create_dir(house.at(&number.to_string())).unwrap();
        let words = ["compile", "a.ir", "-o", &name, "--cache", "cache"];
        house.tenon(&words).spawn().unwrap()
    };
    let running: Vec<_> = (0..4).map(begin).collect();
    for mut process in running {
        assert!(process.wait().unwrap().success());
    }
    assert_eq!(entries(&house).len(), 1);
    assert!(is_cached(&house, &[]));
    let made = house.read("m.so");
    assert!((0..4).all(|number| house.read(&format!("{number}/m.so")) == made));
}

#[test]
fn a_cache_that_others_can_write_is_refused() {
    let house = House::new();
    is_cached(&house, &[]);
    fs::set_permissions(house.at("cache"), Permissions::from_mode(0o777)).unwrap();
    let told = house.refused(&COMPILE);
    assert!(told.contains("is not used: everybody can write to"), "{told}");
}
