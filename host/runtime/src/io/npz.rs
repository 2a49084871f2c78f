//! NumPy's `.npz` archives: a zip file with one `.npy` file per named array.
//!
//! Reads stored and deflated entries. Writes stored ones, with 64-bit sizes where they are needed,
//! in the order given and without a time, so that equal arrays make equal files.

use std::{
    collections::HashSet,
    io::{BufReader, Read, Write},
    path::Path,
};

use zip::{CompressionMethod, ZipArchive, ZipWriter, result::ZipError, write::SimpleFileOptions};

use crate::io::{Array, ArrayView, FileError, NpyProblem, Outputs, regular::open_regular};

/// Deflate cannot pack more than this into a byte, so an entry that claims more lies.
const DEFLATE_LIMIT: u64 = 1032;

/// Reads every array of an archive, with its name, in the archive's order.
pub fn read_npz(path: &Path) -> Result<Vec<(String, Array)>, FileError> {
    let (file, length) = open_regular(path)?;
    let zip_error = |cause| FileError::Npz { path: path.to_owned(), cause };
    let mut archive = ZipArchive::new(BufReader::new(file)).map_err(zip_error)?;

    let mut arrays = Vec::new();
    // Entries that overlap could make a small file hold any number of large arrays.
    let mut unclaimed = length;
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(zip_error)?;
        let entry_name = entry.name().to_owned();
        let in_array = |problem| FileError::NpzArray {
            path: path.to_owned(),
            array: entry_name.clone(),
            problem,
        };

        let Some(name) = entry_name.strip_suffix(".npy") else {
            return Err(in_array(NpyProblem::NotAnArray));
        };
        let (packed, size) = (entry.compressed_size(), entry.size());
        let most = match entry.compression() {
            CompressionMethod::Stored => packed,
            _ => packed.saturating_mul(DEFLATE_LIMIT),
        };
        if packed > unclaimed || size > most {
            return Err(zip_error(ZipError::InvalidArchive(
                "an entry claims more than there is".into(),
            )));
        }
        unclaimed -= packed;

        let array = Array::decode(&mut entry, size).map_err(in_array)?;
        // Reading up to the end is what makes the checksum be compared.
        if entry.read(&mut [0]).map_err(|cause| in_array(cause.into()))? != 0 {
            return Err(zip_error(ZipError::InvalidArchive(
                "an entry is longer than it claims".into(),
            )));
        }
        arrays.push((name.to_owned(), array));
    }
    Ok(arrays)
}

/// Writes an archive, atomically. No array is copied.
pub fn write_npz(path: &Path, arrays: &[(&str, ArrayView<'_>)]) -> Result<(), FileError> {
    let mut outputs = Outputs::default();
    write_npz_among(&mut outputs, path, arrays)?;
    outputs.publish()
}

/// Writes an archive as one of several outputs.
pub fn write_npz_among(
    outputs: &mut Outputs,
    path: &Path,
    arrays: &[(&str, ArrayView<'_>)],
) -> Result<(), FileError> {
    /// Beyond this, an entry with its header needs 64-bit sizes.
    const SMALL: usize = 0xf000_0000;
    let mut names = HashSet::new();
    outputs.write(path, |file| {
        let mut archive = ZipWriter::new(file);
        let zip_error = |cause| FileError::Npz { path: path.to_owned(), cause };
        for &(name, array) in arrays {
            let in_array = |problem| FileError::NpzArray {
                path: path.to_owned(),
                array: name.to_owned(),
                problem,
            };
            if !names.insert(name) {
                return Err(in_array(NpyProblem::Duplicate));
            }
            let header = array.header().map_err(in_array)?;
            let options = SimpleFileOptions::default()
                .compression_method(CompressionMethod::Stored)
                .large_file(array.data.len() > SMALL);
            archive.start_file(format!("{name}.npy"), options).map_err(zip_error)?;
            archive.write_all(&header).map_err(|cause| in_array(cause.into()))?;
            archive.write_all(array.data).map_err(|cause| in_array(cause.into()))?;
        }
        archive.finish().map_err(zip_error)?;
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write, path::PathBuf};

    use tempfile::TempDir;
    use zip::{ZipWriter, write::SimpleFileOptions};

    use super::{read_npz, write_npz};
    use crate::io::{Array, ArrayView, NpyType};

    fn scratch() -> (TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npz");
        (folder, path)
    }

    fn counted(dtype: NpyType, shape: &[usize]) -> Array {
        let length = shape.iter().product::<usize>() * dtype.bytes();
        Array { dtype, shape: shape.to_vec(), data: (0..length).map(|at| at as u8).collect() }
    }

    #[test]
    fn what_is_written_reads_back_in_order() {
        let (_folder, path) = scratch();
        let names = ["z", "/layer/Conv_output_0", "ä b", ""];
        let arrays = [
            counted(NpyType::F32, &[2, 3]),
            counted(NpyType::U8, &[]),
            counted(NpyType::I64, &[0]),
            counted(NpyType::F16, &[70_000]),
        ];
        let views: Vec<_> = names.into_iter().zip(arrays.iter().map(Array::view)).collect();
        write_npz(&path, &views).unwrap();
        let expected: Vec<_> = names.map(str::to_owned).into_iter().zip(arrays).collect();
        assert_eq!(read_npz(&path).unwrap(), expected);
    }

    #[test]
    fn equal_arrays_make_equal_files() {
        let (_folder, path) = scratch();
        let array = counted(NpyType::I32, &[4]);
        write_npz(&path, &[("x", array.view())]).unwrap();
        let first = fs::read(&path).unwrap();
        write_npz(&path, &[("x", array.view())]).unwrap();
        assert_eq!(fs::read(&path).unwrap(), first);
    }

    #[test]
    fn deflated_entries_are_read() {
        let (_folder, path) = scratch();
        let array = counted(NpyType::I32, &[1000]);
        let mut archive = ZipWriter::new(fs::File::create(&path).unwrap());
        archive.start_file("x.npy", SimpleFileOptions::default()).unwrap();
        array.view().encode(&mut archive).unwrap();
        archive.finish().unwrap();
        assert_eq!(read_npz(&path).unwrap(), [("x".to_owned(), array)]);
    }

    #[test]
    fn mistakes_name_the_archive_and_the_array() {
        let (_folder, path) = scratch();
        let array = counted(NpyType::U8, &[1]);
        let twice = [("x", array.view()), ("x", array.view())];
        let message = write_npz(&path, &twice).unwrap_err().to_string();
        assert!(message.ends_with("a.npz`, array `x`: two arrays have this name"), "{message}");
        let view = ArrayView { dtype: NpyType::F64, shape: &[1], data: &[0] };
        let message = write_npz(&path, &[("y", view)]).unwrap_err().to_string();
        assert!(
            message.ends_with("array `y`: the shape [1] takes 8 bytes, but there are 1"),
            "{message}"
        );
        assert!(!path.exists());

        let mut archive = ZipWriter::new(fs::File::create(&path).unwrap());
        archive.start_file("readme.txt", SimpleFileOptions::default()).unwrap();
        archive.write_all(b"hello").unwrap();
        archive.finish().unwrap();
        let message = read_npz(&path).unwrap_err().to_string();
        assert!(message.contains("array `readme.txt`: not an array"), "{message}");

        fs::write(&path, b"no zip").unwrap();
        let message = read_npz(&path).unwrap_err().to_string();
        assert!(message.contains("is not a usable .npz archive"), "{message}");
    }

    #[test]
    fn no_damage_makes_it_panic_or_go_unnoticed() {
        let (_folder, path) = scratch();
        let array = counted(NpyType::I16, &[3]);
        let arrays = [("x".to_owned(), array.clone()), ("y".to_owned(), array.clone())];
        write_npz(&path, &[("x", array.view()), ("y", array.view())]).unwrap();
        let whole = fs::read(&path).unwrap();
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            read_npz(&path).unwrap_err();
        }
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut damaged = whole.clone();
                damaged[at] ^= 1 << bit;
                fs::write(&path, &damaged).unwrap();
                // Damage outside of names, data and directory may be harmless.
                if let Ok(read) = read_npz(&path) {
                    assert!(read.iter().zip(&arrays).all(|(read, array)| read.1 == array.1));
                }
            }
        }
    }
}
