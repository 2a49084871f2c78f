//! Multiply-adds of one float with a vector: a row of a tile of registers.
//!
//! ```ir
//! for %j in 0..16 { %c[%j] = %c[%j] + %a[0] * %b[%j] }       =>       vfmadd231ps zmm0, zmm1, dword ptr [rax]{1to16}
//! ```

use tenon_plugin_api::ir::DType;
use tenon_plugin_api::rule::prelude::*;

/// Eight lanes of f32: AVX2 with FMA.
#[rule(intrinsic, key = "x86.fma.f32x8")]
fn avx2(it: &mut Intrinsic) {
    it.needs("x86_64", &["avx", "fma"]);
    multiply_add(it, 8);
}

/// Sixteen lanes of f32: AVX-512.
#[rule(intrinsic, key = "x86.avx512f.f32x16")]
fn avx512(it: &mut Intrinsic) {
    it.needs("x86_64", &["avx512f"]);
    multiply_add(it, 16);
}

/// Four lanes of f32: NEON.
#[rule(intrinsic, key = "aarch64.neon.f32x4")]
fn neon(it: &mut Intrinsic) {
    it.needs("aarch64", &["neon"]);
    multiply_add(it, 4);
}

fn multiply_add(it: &Intrinsic, lanes: i64) {
    let a = it.operand("a", DType::F32, &[1]);
    let b = it.operand("b", DType::F32, &[lanes]);
    let c = it.operand("c", DType::F32, &[lanes]);
    it.computes(&[("j", lanes)], |j| {
        let first = j[0].program().index(0);
        c.set(j, c.at(j) + a.at(&[first]) * b.at(j))
    });
    it.rounds_differently();
    it.llvm(&format!(
        "declare <{lanes} x float> @llvm.fma.v{lanes}f32(<{lanes} x float>, <{lanes} x float>, <{lanes} x float>)
define void @tile(ptr %a, ptr %b, ptr %c) {{
  %one = load float, ptr %a, align 4
  %first = insertelement <{lanes} x float> poison, float %one, i64 0
  %all = shufflevector <{lanes} x float> %first, <{lanes} x float> poison, <{lanes} x i32> zeroinitializer
  %row = load <{lanes} x float>, ptr %b, align 4
  %old = load <{lanes} x float>, ptr %c, align 4
  %new = call <{lanes} x float> @llvm.fma.v{lanes}f32(<{lanes} x float> %all, <{lanes} x float> %row, <{lanes} x float> %old)
  store <{lanes} x float> %new, ptr %c, align 4
  ret void
}}"
    ));
}
