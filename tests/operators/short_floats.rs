//! Arithmetic on 16-bit floats, by processors that have it and by those that convert: a product is rounded before it is added to.

use half::f16;
use libtest_mimic::{Failed, Trial};
use tenon_compiler::eval::Tensor;
use tenon_compiler::ir::{Bytes, DType};

use super::case::read;
use super::compiled;
use super::emulated::{AARCH64, Emulator};

/// An emulated processor that computes with 16-bit floats, and has dot products of bytes of both kinds.
pub(crate) const FP16: Emulator = AARCH64.with("aarch64,features=+fullfp16,+dotprod,+i8mm");

pub(crate) fn trials() -> Vec<Trial> {
    let emulated = [("converts", &AARCH64), ("computes", &FP16)].map(|(name, emulator)| {
        let missing = emulator.missing();
        missing.iter().for_each(|why| eprintln!("short_floats::{name} is skipped: {why}"));
        Trial::test(format!("short_floats::{name}"), move || check(Some(emulator)))
            .with_ignored_flag(missing.is_some())
    });
    emulated.into_iter().chain([Trial::test("short_floats::here", || check(None))]).collect()
}

/// `a * b + b`, for pairs of which many differ where the product is not rounded.
fn check(on: Option<&Emulator>) -> Result<(), Failed> {
    let some = [0.1, 2049.0, 1.0, -3.3, 65504.0, 6e-8, 0.33333, -1e-3].map(f16::from_f32);
    let pairs: Vec<(f16, f16)> = some.iter().flat_map(|&a| some.map(|b| (a, b))).collect();
    let module = read(&format!(
        "prim @sum_of_product(%a: f16[{n}], %b: f16[{n}], out %c: f16[{n}]) {{
  for %i in 0..{n} {{ block \"c\" (%v: spatial = %i) {{ %c[%v] = %a[%v] * %b[%v] + %b[%v] }} }}
}}

fn @main(%a: f16[{n}], %b: f16[{n}]) -> f16[{n}] {{
  %c: f16[{n}] = call_tir(@sum_of_product, %a, %b) {{ out = f16[{n}] }}
  ret %c
}}
",
        n = pairs.len()
    ));
    let inputs = [tensor(pairs.iter().map(|pair| pair.0)), tensor(pairs.iter().map(|pair| pair.1))];
    let found = match on {
        Some(emulator) => emulator.run(&module, &inputs)?,
        None => compiled::run(&compiled::compile(&module)?, &inputs)?,
    };
    let mut contracted = 0;
    for ((a, b), found) in pairs.iter().zip(found[0].bytes().chunks_exact(2)) {
        let found = f16::from_le_bytes([found[0], found[1]]);
        let product = f16::from_f32(a.to_f32() * b.to_f32());
        let expected = f16::from_f32(product.to_f32() + b.to_f32());
        if found.to_bits() != expected.to_bits() {
            return Err(format!("{a} * {b} + {b} is {found} instead of {expected}").into());
        }
        contracted += (f16::from_f64(a.to_f64() * b.to_f64() + b.to_f64()) != expected) as usize;
    }
    match contracted > 5 {
        true => Ok(()),
        false => Err("no pair would show that a product is not rounded".into()),
    }
}

fn tensor(values: impl Iterator<Item = f16>) -> Tensor {
    let bytes: Vec<u8> = values.flat_map(f16::to_le_bytes).collect();
    Tensor::new(DType::F16, vec![bytes.len() / 2], Bytes::new(bytes))
        .expect("as many bytes as the shape says")
}
