//! A plugin whose tensor intrinsics are wrong in every way that a host must survive.
//!
//! All but the first describe, or mean to describe, `for %j in 0..4 { %c[%j] = %a[%j] * 2.0 }`.

use tenon_plugin_api::ir::DType;
use tenon_plugin_api::rule::prelude::*;

tenon_plugin_api::plugin! { id = "test.tiles", summary = "Tensor intrinsics that are wrong" }

/// An architecture with features.
type Needs = (&'static str, &'static [&'static str]);

const SSE2: Needs = ("x86_64", &["sse2"]);

/// It is right.
const DOUBLED: &str = "define void @tile(ptr %a, ptr %c) {
  %x = load <4 x float>, ptr %a, align 4
  %y = fadd <4 x float> %x, %x
  store <4 x float> %y, ptr %c, align 4
  ret void
}";

/// This does not mean what it says, and asks for what the features that it names do not give.
const NEEDS_MORE: &str =
    "declare <16 x i32> @llvm.x86.avx512.vpdpbusd.512(<16 x i32>, <64 x i8>, <64 x i8>)
define void @tile(ptr %a, ptr %c) {
  %x = load <64 x i8>, ptr %a, align 4
  %s = load <16 x i32>, ptr %c, align 4
  %y = call <16 x i32> @llvm.x86.avx512.vpdpbusd.512(<16 x i32> %s, <64 x i8> %x, <64 x i8> %x)
  store <16 x i32> %y, ptr %c, align 4
  ret void
}";

#[rule(intrinsic, key = "test.right")]
fn right(it: &mut Intrinsic) {
    doubled(it, 4, SSE2);
    it.llvm(DOUBLED);
}

#[rule(intrinsic, key = "test.panics")]
fn panics(_: &mut Intrinsic) {
    panic!("too hard");
}

#[rule(intrinsic, key = "test.says_nothing")]
fn says_nothing(_: &mut Intrinsic) {}

#[rule(intrinsic, key = "test.has_no_code")]
fn has_no_code(it: &mut Intrinsic) {
    doubled(it, 4, SSE2);
}

#[rule(intrinsic, key = "test.is_no_loop")]
fn is_no_loop(it: &mut Intrinsic) {
    doubled(it, 1, SSE2);
    it.llvm(DOUBLED);
}

#[rule(intrinsic, key = "test.has_an_operand_too_many")]
fn has_an_operand_too_many(it: &mut Intrinsic) {
    it.operand("unused", DType::F32, &[4]);
    doubled(it, 4, SSE2);
    it.llvm(DOUBLED);
}

#[rule(intrinsic, key = "test.is_no_llvm")]
fn is_no_llvm(it: &mut Intrinsic) {
    doubled(it, 4, SSE2);
    it.llvm("mulps xmm0, xmm0");
}

#[rule(intrinsic, key = "test.defines_something_else")]
fn defines_something_else(it: &mut Intrinsic) {
    doubled(it, 4, SSE2);
    it.llvm(&DOUBLED.replace("@tile", "@other"));
}

#[rule(intrinsic, key = "test.takes_something_else")]
fn takes_something_else(it: &mut Intrinsic) {
    doubled(it, 4, SSE2);
    it.strides(&["c"]);
    it.llvm(DOUBLED);
}

#[rule(intrinsic, key = "test.lies_on_features")]
fn lies_on_features(it: &mut Intrinsic) {
    doubled(it, 4, SSE2);
    it.llvm(NEEDS_MORE);
}

#[rule(intrinsic, key = "test.needs_the_unheard_of")]
fn needs_the_unheard_of(it: &mut Intrinsic) {
    doubled(it, 4, ("x86_64", &["avx1024"]));
    it.llvm(DOUBLED);
}

#[rule(intrinsic, key = "test.is_of_another_machine")]
fn is_of_another_machine(it: &mut Intrinsic) {
    doubled(it, 4, ("aarch64", &[]));
    it.llvm(DOUBLED);
}

fn doubled(it: &Intrinsic, lanes: i64, (architecture, features): Needs) {
    it.needs(architecture, features);
    let a = it.operand("a", DType::F32, &[lanes]);
    let c = it.operand("c", DType::F32, &[lanes]);
    it.computes(&[("j", lanes)], |j| c.set(j, a.at(j) * 2.0));
}
