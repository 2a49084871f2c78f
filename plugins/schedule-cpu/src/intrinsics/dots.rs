//! Dot products of short rows, one in each lane of a vector of sums.
//!
//! ```ir
//! for %j in 0..16 { for %k in 0..4 {                                   =>       vpdpbusd zmm0, zmm1, zmmword ptr [rax]
//!   %c[%j] = %c[%j] + i32(%a[%k]) * i32(%b[%j, %k]) } }
//! ```
//!
//! So the right side of a product has to lie by quads, or pairs, of what is summed: `[columns / 16, depth / 4, 16, 4]`.

use tenon_plugin_api::ir::DType;
use tenon_plugin_api::rule::prelude::*;

/// Sixteen sums of four products of u8 and i8: AVX-512 VNNI. They do not saturate.
#[rule(intrinsic, key = "x86.avx512vnni.u8i8x16x4")]
fn bytes(it: &mut Intrinsic) {
    it.needs("x86_64", &["avx512vnni"]);
    dots(it, [DType::U8, DType::I8, DType::I32], [16, 4]);
    it.llvm(
        "declare <16 x i32> @llvm.x86.avx512.vpdpbusd.512(<16 x i32>, <64 x i8>, <64 x i8>)
define void @tile(ptr %a, ptr %b, ptr %c) {
  %one = load i32, ptr %a, align 1
  %first = insertelement <16 x i32> poison, i32 %one, i64 0
  %all = shufflevector <16 x i32> %first, <16 x i32> poison, <16 x i32> zeroinitializer
  %left = bitcast <16 x i32> %all to <64 x i8>
  %right = load <64 x i8>, ptr %b, align 1
  %old = load <16 x i32>, ptr %c, align 4
  %new = call <16 x i32> @llvm.x86.avx512.vpdpbusd.512(<16 x i32> %old, <64 x i8> %left, <64 x i8> %right)
  store <16 x i32> %new, ptr %c, align 4
  ret void
}",
    );
}

/// Sixteen sums of two products of bf16, which are rounded to f32 in an order of their own: AVX512-BF16.
#[rule(intrinsic, key = "x86.avx512bf16.bf16x16x2")]
fn short_floats(it: &mut Intrinsic) {
    it.needs("x86_64", &["avx512bf16"]);
    dots(it, [DType::BF16, DType::BF16, DType::F32], [16, 2]);
    it.rounds_differently();
    it.llvm(
        "declare <16 x float> @llvm.x86.avx512bf16.dpbf16ps.512(<16 x float>, <32 x bfloat>, <32 x bfloat>)
define void @tile(ptr %a, ptr %b, ptr %c) {
  %one = load i32, ptr %a, align 2
  %first = insertelement <16 x i32> poison, i32 %one, i64 0
  %all = shufflevector <16 x i32> %first, <16 x i32> poison, <16 x i32> zeroinitializer
  %left = bitcast <16 x i32> %all to <32 x bfloat>
  %right = load <32 x bfloat>, ptr %b, align 2
  %old = load <16 x float>, ptr %c, align 4
  %new = call <16 x float> @llvm.x86.avx512bf16.dpbf16ps.512(<16 x float> %old, <32 x bfloat> %left, <32 x bfloat> %right)
  store <16 x float> %new, ptr %c, align 4
  ret void
}",
    );
}

/// Four sums of four products of i8: the dot products of Armv8.2.
#[rule(intrinsic, key = "aarch64.dotprod.i8x4x4")]
fn arm_bytes(it: &mut Intrinsic) {
    it.needs("aarch64", &["dotprod"]);
    dots(it, [DType::I8, DType::I8, DType::I32], [4, 4]);
    it.llvm(
        "declare <4 x i32> @llvm.aarch64.neon.sdot.v4i32.v16i8(<4 x i32>, <16 x i8>, <16 x i8>)
define void @tile(ptr %a, ptr %b, ptr %c) {
  %one = load i32, ptr %a, align 1
  %first = insertelement <4 x i32> poison, i32 %one, i64 0
  %all = shufflevector <4 x i32> %first, <4 x i32> poison, <4 x i32> zeroinitializer
  %left = bitcast <4 x i32> %all to <16 x i8>
  %right = load <16 x i8>, ptr %b, align 1
  %old = load <4 x i32>, ptr %c, align 4
  %new = call <4 x i32> @llvm.aarch64.neon.sdot.v4i32.v16i8(<4 x i32> %old, <16 x i8> %left, <16 x i8> %right)
  store <4 x i32> %new, ptr %c, align 4
  ret void
}",
    );
}

fn dots(it: &Intrinsic, dtypes: [DType; 3], [lanes, depth]: [i64; 2]) {
    let a = it.operand("a", dtypes[0], &[depth]);
    let b = it.operand("b", dtypes[1], &[lanes, depth]);
    let c = it.operand("c", dtypes[2], &[lanes]);
    it.computes(&[("j", lanes), ("k", depth)], |i| {
        let [left, right] = [a.at(&i[1..]), b.at(i)].map(|factor| factor.cast(dtypes[2]));
        c.set(&i[..1], c.at(&i[..1]) + left * right)
    });
}
