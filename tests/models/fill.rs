//! Numbers that need no file: element `i` of a tensor is a hash of the tensor's name and `i`.
//!
//! `fill.py` says how, and is the same function: every bit agrees. Stored outputs of the models
//! were made from inputs filled by it, so the inputs need not be stored.

/// The float tensor of this name with `len` elements, uniform in [-1, 1), in row-major order.
pub(crate) fn fill(name: &str, len: usize) -> Vec<f32> {
    let seed = seed_of(name);
    (1..=len as u64)
        .map(|i| {
            let mut z = seed.wrapping_add(i.wrapping_mul(0x9E37_79B9_7F4A_7C15));
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            z ^= z >> 31;
            (z >> 40) as f32 * (1.0 / 8_388_608.0) - 1.0
        })
        .collect()
}

/// FNV-1a, 64 bits, of the name's UTF-8 bytes.
fn seed_of(name: &str) -> u64 {
    name.bytes()
        .fold(0xCBF2_9CE4_8422_2325, |h, byte| (h ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3))
}
