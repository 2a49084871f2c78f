use std::{
    fs,
    io::{self, Write},
    path::Path,
};

use super::{Destination, Mode, Outputs, aside, write_atomically};
use crate::io::{FileError, InputFiles};

fn write(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    write_atomically(path, |file| {
        file.write_all(bytes).unwrap();
        Ok(())
    })
}

/// The names in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn replaces_the_file_in_one_step() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    fs::write(&path, b"old").unwrap();
    write_atomically(&path, |file| {
        file.write_all(b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        Ok(())
    })
    .unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(names(folder.path()), ["out"]);
}

#[test]
fn a_failure_leaves_all_old_files_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b] = ["a", "b"].map(|name| folder.path().join(name));
    fs::write(&a, b"old").unwrap();
    let mut outputs = Outputs::default();
    outputs.write(&a, |file| file.write_all(b"new").map_err(|_| unreachable!())).unwrap();
    outputs.named_by_digest("0123456789abcdef");
    let failure = FileError::Write { path: b.clone(), cause: io::Error::other("no room") };
    outputs.write(&b, |_| Err(failure)).unwrap_err();
    drop(outputs);
    assert_eq!(fs::read(&a).unwrap(), b"old");
    assert_eq!(names(folder.path()), ["a"]);
}

/// A folder that got the name of the last file meanwhile cannot be replaced by it.
#[test]
fn what_was_replaced_comes_back_when_another_file_cannot_be() {
    for digest in [None, Some("0123456789abcdef")] {
        let folder = tempfile::tempdir().unwrap();
        let [old, new, last] = ["old", "new", "last"].map(|name| folder.path().join(name));
        fs::write(&old, b"old").unwrap();
        let mut outputs = Outputs::default();
        for path in [&old, &new, &last] {
            outputs.write(path, |_| Ok(())).unwrap();
            if let Some(digest) = digest.filter(|_| path == &old) {
                outputs.named_by_digest(digest);
            }
        }
        fs::create_dir(&last).unwrap();
        let message = outputs.publish().unwrap_err().to_string();
        assert!(message.starts_with("cannot write `") && message.contains("last`"), "{message}");
        assert_eq!(fs::read(&old).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["last", "old"]);
    }
}

#[test]
fn two_outputs_and_an_input_are_different_files() {
    let folder = tempfile::tempdir().unwrap();
    let [input, output] = ["in", "out"].map(|name| folder.path().join(name));
    fs::write(&input, b"in").unwrap();
    let mut outputs = Outputs::sparing(InputFiles::new([input.clone()]));
    let message = outputs.write(&input, |_| unreachable!()).unwrap_err().to_string();
    assert!(message.ends_with("in` cannot be written: it is read as input"), "{message}");
    outputs.write(&output, |_| Ok(())).unwrap();
    let again = folder.path().join(".").join("out");
    let message = outputs.write(&again, |_| unreachable!()).unwrap_err().to_string();
    assert!(message.contains("are the same file"), "{message}");
}

#[test]
fn what_was_left_aside_is_swept() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("w");
    for digest in ["0000000000000000", "1111111111111111"] {
        fs::write(aside(&file, digest), digest).unwrap();
    }
    fs::write(folder.path().join(".w.else"), b"").unwrap();
    let mut outputs = Outputs::default();
    outputs.write(&file, |_| Ok(())).unwrap();
    outputs.named_by_digest("2222222222222222");
    outputs.publish().unwrap();
    assert_eq!(names(folder.path()), [".w.else", "w"]);
}

/// Four threads with files of their own content: whoever is the last, both files are of one writer.
#[test]
fn files_of_competing_writers_are_not_mixed() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b] = ["a", "b"].map(|name| folder.path().join(name));
    std::thread::scope(|scope| {
        for writer in 0..4u8 {
            let (a, b) = (&a, &b);
            scope.spawn(move || {
                for _ in 0..50 {
                    let mut outputs = Outputs::default();
                    for path in [a, b] {
                        outputs
                            .write(path, |file| {
                                file.write_all(&[writer]).unwrap();
                                Ok(())
                            })
                            .unwrap();
                    }
                    outputs.publish().unwrap();
                }
            });
        }
    });
    assert_eq!(fs::read(&a).unwrap(), fs::read(&b).unwrap());
    assert_eq!(names(folder.path()), ["a", "b"]);
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};

    use super::*;

    #[test]
    fn is_readable_as_any_new_file() {
        let folder = tempfile::tempdir().unwrap();
        let [ours, usual] = ["ours", "usual"].map(|name| folder.path().join(name));
        write(&ours, b"").unwrap();
        fs::write(&usual, b"").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&ours), mode(&usual));

        // Also when a program replaced the temporary file, as linkers do.
        let program = folder.path().join("program");
        let mut outputs = Outputs::default();
        outputs
            .make(&program, Mode::Program, |place| -> Result<(), FileError> {
                fs::remove_file(place).unwrap();
                fs::write(place, b"").unwrap();
                fs::set_permissions(place, fs::Permissions::from_mode(0o600)).unwrap();
                Ok(())
            })
            .unwrap();
        outputs.publish().unwrap();
        let executable = (mode(&usual) & 0o444) >> 2;
        assert_eq!(mode(&program), mode(&usual) | executable);
    }

    #[test]
    fn devices_are_written_to_and_stay() {
        write(Path::new("/dev/null"), b"gone").unwrap();
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
        let full = Path::new("/dev/full");
        if full.exists() {
            let message = write(full, b"more").unwrap_err().to_string();
            assert!(message.starts_with("cannot write `/dev/full`: "), "{message}");
        }
        let folder = tempfile::tempdir().unwrap();
        let message = write(folder.path(), b"").unwrap_err().to_string();
        assert!(message.ends_with("is a directory, expected a regular file"), "{message}");
    }

    #[test]
    fn a_device_that_fails_leaves_the_files_beside_it_alone() {
        let full = Path::new("/dev/full");
        if !full.exists() {
            eprintln!("skipped: no /dev/full here");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        fs::write(&path, b"old").unwrap();
        let mut outputs = Outputs::default();
        for path in [&path, full] {
            outputs
                .write(path, |file| {
                    file.write_all(b"new").unwrap();
                    Ok(())
                })
                .unwrap();
        }
        outputs.publish().unwrap_err();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["out"]);
    }

    #[test]
    fn links_stay_and_lead_to_the_new_file() {
        let folder = tempfile::tempdir().unwrap();
        let [below, file, link, second] =
            ["below", "below/file", "link", "second"].map(|name| folder.path().join(name));
        fs::create_dir(&below).unwrap();
        symlink("below/file", &link).unwrap();
        symlink("link", &second).unwrap();
        // The first time it leads nowhere.
        for content in [b"1", b"2"] {
            write(&second, content).unwrap();
            assert_eq!(fs::read(&file).unwrap(), content);
        }
        assert_eq!(names(folder.path()), ["below", "link", "second"]);
        assert!(fs::symlink_metadata(&second).unwrap().is_symlink());

        symlink("circle", folder.path().join("circle")).unwrap();
        write(&folder.path().join("circle"), b"").unwrap_err();
        let inputs = InputFiles::new([second]);
        inputs.refuse(&file).unwrap_err();
        inputs.refuse(&folder.path().join("none")).unwrap();
    }

    #[test]
    fn open_files_are_written_through() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let open = fs::File::create(&path).unwrap();
        let descriptor = std::os::fd::AsRawFd::as_raw_fd(&open);
        let name = format!("/proc/self/fd/{descriptor}");
        if !Path::new(&name).exists() {
            eprintln!("skipped: no /proc here");
            return;
        }
        assert!(matches!(Destination::of(Path::new(&name)).unwrap(), Destination::Stream(_)));
        write(Path::new(&name), b"through").unwrap();
        assert_eq!(open.metadata().unwrap().len(), 7);
    }
}
