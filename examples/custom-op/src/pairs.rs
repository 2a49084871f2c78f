//! An instruction that every x86-64 has: four sums of two products of i16.
//!
//! ```ir
//! for %j in 0..4 { for %k in 0..2 {                                         =>       pmaddwd xmm0, xmmword ptr [rax]
//!   %c[%j] = %c[%j] + i32(%a[%k]) * i32(%b[%j, %k]) } }                              paddd xmm1, xmm0
//! ```

use tenon_plugin_api::ir::DType;
use tenon_plugin_api::rule::prelude::*;

/// A pair of `a` with four of `b`.
#[rule(intrinsic, key = "acme.sse2.i16x4x2")]
fn pairs(it: &mut Intrinsic) {
    it.needs("x86_64", &["sse2"]);
    let a = it.operand("a", DType::I16, &[2]);
    let b = it.operand("b", DType::I16, &[4, 2]);
    let c = it.operand("c", DType::I32, &[4]);
    it.computes(&[("j", 4), ("k", 2)], |i| {
        let [left, right] = [a.at(&i[1..]), b.at(i)].map(|factor| factor.cast(DType::I32));
        c.set(&i[..1], c.at(&i[..1]) + left * right)
    });
    it.llvm(
        "declare <4 x i32> @llvm.x86.sse2.pmadd.wd(<8 x i16>, <8 x i16>)
define void @tile(ptr %a, ptr %b, ptr %c) {
  %pair = load i32, ptr %a, align 2
  %first = insertelement <4 x i32> poison, i32 %pair, i64 0
  %all = shufflevector <4 x i32> %first, <4 x i32> poison, <4 x i32> zeroinitializer
  %left = bitcast <4 x i32> %all to <8 x i16>
  %right = load <8 x i16>, ptr %b, align 2
  %sums = call <4 x i32> @llvm.x86.sse2.pmadd.wd(<8 x i16> %left, <8 x i16> %right)
  %old = load <4 x i32>, ptr %c, align 4
  %new = add <4 x i32> %old, %sums
  store <4 x i32> %new, ptr %c, align 4
  ret void
}",
    );
}
