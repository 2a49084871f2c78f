//! Any bytes as a `.npy` file; what can be read is written and reads back the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tenon_compiler::io::Array;

fuzz_target!(|bytes: &[u8]| {
    let Ok(array) = Array::decode(&mut &bytes[..], bytes.len() as u64) else { return };
    assert!(array.data.len() <= bytes.len());
    let mut written = Vec::new();
    array.view().encode(&mut written).expect("what was read can be written");
    let again = Array::decode(&mut &written[..], written.len() as u64);
    assert_eq!(again.expect("what was written can be read"), array);
});
