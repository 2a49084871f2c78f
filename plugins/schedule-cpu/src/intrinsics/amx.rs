//! Products of whole tiles in the tile registers of AMX.
//!
//! ```ir
//! for %i in 0..16 { for %j in 0..16 { for %k in 0..16 { for %l in 0..2 {           tileloadd tmm0, [c]; tileloadd tmm1, [a]
//!   %c[%i, %j] = %c[%i, %j] + f32(%a[%i, 2*%k + %l]) * f32(%b[%k, %j, %l]) } } } }   =>   tileloadd tmm2, [b]; tdpbf16ps tmm0, tmm1, tmm2
//! ```
//!
//! Rows of all three may lie any distance apart; the right side lies by pairs, or quads, of what is summed. A process has to ask
//! the kernel once before it uses tile registers (`arch_prctl(ARCH_REQ_XCOMP_PERM)`, Linux, `Documentation/arch/x86/xstate.rst`), which the code
//! does at the first tile; where the kernel refuses, the process ends with an illegal instruction, as it does where a processor lacks one.

use tenon_plugin_api::ir::DType;
use tenon_plugin_api::rule::prelude::*;

/// 16 by 16 sums of 32 products of bf16: AMX-BF16.
#[rule(intrinsic, key = "x86.amx_bf16.bf16x16x16x32")]
fn short_floats(it: &mut Intrinsic) {
    it.needs("x86_64", &["amx-tile", "amx-bf16"]);
    tiles(it, [DType::BF16, DType::BF16, DType::F32], 2);
    it.rounds_differently();
    it.llvm(&code("tdpbf16ps", 2));
}

/// 16 by 16 sums of 64 products of i8: AMX-INT8.
#[rule(intrinsic, key = "x86.amx_int8.i8x16x16x64")]
fn signed_bytes(it: &mut Intrinsic) {
    it.needs("x86_64", &["amx-tile", "amx-int8"]);
    tiles(it, [DType::I8, DType::I8, DType::I32], 4);
    it.llvm(&code("tdpbssd", 1));
}

/// 16 by 16 sums of 64 products of u8 and i8: AMX-INT8.
#[rule(intrinsic, key = "x86.amx_int8.u8i8x16x16x64")]
fn bytes(it: &mut Intrinsic) {
    it.needs("x86_64", &["amx-tile", "amx-int8"]);
    tiles(it, [DType::U8, DType::I8, DType::I32], 4);
    it.llvm(&code("tdpbusd", 1));
}

/// `group` is how many neighbours of what is summed lie side by side.
fn tiles(it: &Intrinsic, dtypes: [DType; 3], group: i64) {
    let a = it.operand("a", dtypes[0], &[16, 16 * group]);
    let b = it.operand("b", dtypes[1], &[16, 16, group]);
    let c = it.operand("c", dtypes[2], &[16, 16]);
    it.strides(&["a", "b", "c"]);
    it.computes(&[("i", 16), ("j", 16), ("k", 16), ("l", group)], |at| {
        let &[i, j, k, l] = at else { unreachable!("there are four loops") };
        let [left, right] =
            [a.at(&[i, k * group + l]), b.at(&[k, j, l])].map(|factor| factor.cast(dtypes[2]));
        c.set(&[i, j], c.at(&[i, j]) + left * right)
    });
}

/// The tile registers live in a function of their own: LLVM loads their configuration where it begins, which needs the permission.
fn code(instruction: &str, bytes: i64) -> String {
    format!(
        "@tile_permitted = internal global i32 0
declare x86_amx @llvm.x86.tileloadd64.internal(i16, i16, ptr, i64)
declare x86_amx @llvm.x86.{instruction}.internal(i16, i16, i16, x86_amx, x86_amx, x86_amx)
declare void @llvm.x86.tilestored64.internal(i16, i16, ptr, i64, x86_amx)
define internal void @tile_permit() noinline {{
  %done = call i64 asm sideeffect \"syscall\", \"={{rax}},{{rax}},{{rdi}},{{rsi}},~{{rcx}},~{{r11}},~{{memory}}\"(i64 158, i64 4131, i64 18)
  store atomic i32 1, ptr @tile_permitted release, align 4
  ret void
}}
define internal void @tile_multiply(ptr %a, i64 %a_row, ptr %b, i64 %b_row, ptr %c, i64 %c_row) noinline {{
  %sums = call x86_amx @llvm.x86.tileloadd64.internal(i16 16, i16 64, ptr %c, i64 %c_row)
  %left = call x86_amx @llvm.x86.tileloadd64.internal(i16 16, i16 64, ptr %a, i64 %a_row)
  %right = call x86_amx @llvm.x86.tileloadd64.internal(i16 16, i16 64, ptr %b, i64 %b_row)
  %new = call x86_amx @llvm.x86.{instruction}.internal(i16 16, i16 64, i16 64, x86_amx %sums, x86_amx %left, x86_amx %right)
  call void @llvm.x86.tilestored64.internal(i16 16, i16 64, ptr %c, i64 %c_row, x86_amx %new)
  ret void
}}
define void @tile(ptr %a, i64 %a_row, ptr %b, i64 %b_row, ptr %c, i64 %c_row) {{
  %permitted = load atomic i32, ptr @tile_permitted acquire, align 4
  %first = icmp eq i32 %permitted, 0
  br i1 %first, label %ask, label %multiply
ask:
  call void @tile_permit()
  br label %multiply
multiply:
  %a_bytes = mul i64 %a_row, {bytes}
  %b_bytes = mul i64 %b_row, {bytes}
  %c_bytes = mul i64 %c_row, 4
  call void @tile_multiply(ptr %a, i64 %a_bytes, ptr %b, i64 %b_bytes, ptr %c, i64 %c_bytes)
  ret void
}}"
    )
}
