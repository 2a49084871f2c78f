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
    let dots = Dots { dtypes: [DType::U8, DType::I8, DType::I32], lanes: 16, depth: 4 };
    dots.describe(it);
    it.llvm(&dots.code("llvm.x86.avx512.vpdpbusd.512", "i32", "i8"));
}

/// Eight sums, as vectors of 256 bits have.
#[rule(intrinsic, key = "x86.avx512vnni.u8i8x8x4")]
fn bytes_of_half(it: &mut Intrinsic) {
    it.needs("x86_64", &["avx512vnni"]);
    let dots = Dots { dtypes: [DType::U8, DType::I8, DType::I32], lanes: 8, depth: 4 };
    dots.describe(it);
    it.llvm(&dots.code("llvm.x86.avx512.vpdpbusd.256", "i32", "i8"));
}

/// Four sums, as vectors of 128 bits have.
#[rule(intrinsic, key = "x86.avx512vnni.u8i8x4x4")]
fn bytes_of_quarter(it: &mut Intrinsic) {
    it.needs("x86_64", &["avx512vnni"]);
    let dots = Dots { dtypes: [DType::U8, DType::I8, DType::I32], lanes: 4, depth: 4 };
    dots.describe(it);
    it.llvm(&dots.code("llvm.x86.avx512.vpdpbusd.128", "i32", "i8"));
}

/// Eight sums, by processors without vectors of 512 bits: AVX-VNNI.
#[rule(intrinsic, key = "x86.avxvnni.u8i8x8x4")]
fn bytes_without_512(it: &mut Intrinsic) {
    it.needs("x86_64", &["avxvnni"]);
    let dots = Dots { dtypes: [DType::U8, DType::I8, DType::I32], lanes: 8, depth: 4 };
    dots.describe(it);
    it.llvm(&dots.code("llvm.x86.avx512.vpdpbusd.256", "i32", "i8"));
}

/// Four sums, by processors without vectors of 512 bits.
#[rule(intrinsic, key = "x86.avxvnni.u8i8x4x4")]
fn four_bytes_without_512(it: &mut Intrinsic) {
    it.needs("x86_64", &["avxvnni"]);
    let dots = Dots { dtypes: [DType::U8, DType::I8, DType::I32], lanes: 4, depth: 4 };
    dots.describe(it);
    it.llvm(&dots.code("llvm.x86.avx512.vpdpbusd.128", "i32", "i8"));
}

/// Eight sums, by processors that multiply pairs of i16: AVX2. Bytes become such in registers.
#[rule(intrinsic, key = "x86.avx2.u8i8x8x4")]
fn bytes_as_pairs(it: &mut Intrinsic) {
    it.needs("x86_64", &["avx2"]);
    let dots = Dots { dtypes: [DType::U8, DType::I8, DType::I32], lanes: 8, depth: 4 };
    dots.describe(it);
    it.llvm(&dots.code_of_pairs("llvm.x86.avx2.pmadd.wd"));
}

/// Four sums, by those with vectors of 128 bits.
#[rule(intrinsic, key = "x86.sse41.u8i8x4x4")]
fn four_bytes_as_pairs(it: &mut Intrinsic) {
    it.needs("x86_64", &["sse4.1"]);
    let dots = Dots { dtypes: [DType::U8, DType::I8, DType::I32], lanes: 4, depth: 4 };
    dots.describe(it);
    it.llvm(&dots.code_of_pairs("llvm.x86.sse2.pmadd.wd"));
}

/// Four sums, by Arm's processors without dot products of bytes: those of i16, whose neighbours are added.
#[rule(intrinsic, key = "aarch64.neon.u8i8x4x4")]
fn arm_bytes_as_words(it: &mut Intrinsic) {
    it.needs("aarch64", &["neon"]);
    let dots = Dots { dtypes: [DType::U8, DType::I8, DType::I32], lanes: 4, depth: 4 };
    dots.describe(it);
    it.llvm(&dots.code_of_words());
}

/// Sixteen sums of two products of bf16, which are rounded to f32 in an order of their own: AVX512-BF16.
#[rule(intrinsic, key = "x86.avx512bf16.bf16x16x2")]
fn short_floats(it: &mut Intrinsic) {
    it.needs("x86_64", &["avx512bf16"]);
    let dots = Dots { dtypes: [DType::BF16, DType::BF16, DType::F32], lanes: 16, depth: 2 };
    dots.describe(it);
    it.rounds_differently();
    it.llvm(&dots.code("llvm.x86.avx512bf16.dpbf16ps.512", "float", "bfloat"));
}

/// Eight sums.
#[rule(intrinsic, key = "x86.avx512bf16.bf16x8x2")]
fn short_floats_of_half(it: &mut Intrinsic) {
    it.needs("x86_64", &["avx512bf16"]);
    let dots = Dots { dtypes: [DType::BF16, DType::BF16, DType::F32], lanes: 8, depth: 2 };
    dots.describe(it);
    it.rounds_differently();
    it.llvm(&dots.code("llvm.x86.avx512bf16.dpbf16ps.256", "float", "bfloat"));
}

/// Four sums of four products of i8: the dot products of Armv8.2.
#[rule(intrinsic, key = "aarch64.dotprod.i8x4x4")]
fn arm_bytes(it: &mut Intrinsic) {
    it.needs("aarch64", &["dotprod"]);
    let dots = Dots { dtypes: [DType::I8, DType::I8, DType::I32], lanes: 4, depth: 4 };
    dots.describe(it);
    it.llvm(&dots.code("llvm.aarch64.neon.sdot.v4i32.v16i8", "i32", "i8"));
}

/// Four sums of four products of u8 and i8: those of Armv8.6.
#[rule(intrinsic, key = "aarch64.i8mm.u8i8x4x4")]
fn arm_bytes_of_both_kinds(it: &mut Intrinsic) {
    it.needs("aarch64", &["i8mm"]);
    let dots = Dots { dtypes: [DType::U8, DType::I8, DType::I32], lanes: 4, depth: 4 };
    dots.describe(it);
    it.llvm(&dots.code("llvm.aarch64.neon.usdot.v4i32.v16i8", "i32", "i8"));
}

/// `lanes` sums of `depth` products each.
struct Dots {
    /// Of the factors and of the sums.
    dtypes: [DType; 3],
    lanes: i64,
    depth: i64,
}

impl Dots {
    fn describe(&self, it: &Intrinsic) {
        let &Self { dtypes, lanes, depth } = self;
        let a = it.operand("a", dtypes[0], &[depth]);
        let b = it.operand("b", dtypes[1], &[lanes, depth]);
        let c = it.operand("c", dtypes[2], &[lanes]);
        it.computes(&[("j", lanes), ("k", depth)], |i| {
            let [left, right] = [a.at(&i[1..]), b.at(i)].map(|factor| factor.cast(dtypes[2]));
            c.set(&i[..1], c.at(&i[..1]) + left * right)
        });
    }

    /// The factors of one row are 32 bits, which all lanes read; `sum` and `factor` are LLVM's types.
    fn code(&self, function: &str, sum: &str, factor: &str) -> String {
        let &Self { dtypes, lanes, depth } = self;
        let (sums, factors) =
            (format!("<{lanes} x {sum}>"), format!("<{} x {factor}>", lanes * depth));
        let align = dtypes[1].bits() / 8;
        format!(
            "declare {sums} @{function}({sums}, {factors}, {factors})
define void @tile(ptr %a, ptr %b, ptr %c) {{
  %one = load i32, ptr %a, align {align}
  %first = insertelement <{lanes} x i32> poison, i32 %one, i64 0
  %all = shufflevector <{lanes} x i32> %first, <{lanes} x i32> poison, <{lanes} x i32> zeroinitializer
  %left = bitcast <{lanes} x i32> %all to {factors}
  %right = load {factors}, ptr %b, align {align}
  %old = load {sums}, ptr %c, align 4
  %new = call {sums} @{function}({sums} %old, {factors} %left, {factors} %right)
  store {sums} %new, ptr %c, align 4
  ret void
}}"
        )
    }

    /// The same by `function`, which adds the products of pairs of i16: two vectors of pairs, whose neighbours are added.
    fn code_of_pairs(&self, function: &str) -> String {
        let &Self { lanes, depth, .. } = self;
        let half = lanes * depth / 2;
        let (sums, bytes, words) =
            (format!("<{lanes} x i32>"), format!("<{half} x i8>"), format!("<{half} x i16>"));
        let repeated = mask((0..half).map(|index| index % depth));
        let [even, odd] = [0, 1].map(|first| mask((0..lanes).map(|lane| 2 * lane + first)));
        format!(
            "declare {sums} @{function}({words}, {words})
define void @tile(ptr %a, ptr %b, ptr %c) {{
  %few = load <{depth} x i8>, ptr %a, align 1
  %wide = zext <{depth} x i8> %few to <{depth} x i16>
  %left = shufflevector <{depth} x i16> %wide, <{depth} x i16> poison, {repeated}
  %next = getelementptr i8, ptr %b, i64 {half}
  %b0 = load {bytes}, ptr %b, align 1
  %b1 = load {bytes}, ptr %next, align 1
  %right0 = sext {bytes} %b0 to {words}
  %right1 = sext {bytes} %b1 to {words}
  %pairs0 = call {sums} @{function}({words} %left, {words} %right0)
  %pairs1 = call {sums} @{function}({words} %left, {words} %right1)
  %even = shufflevector {sums} %pairs0, {sums} %pairs1, {even}
  %odd = shufflevector {sums} %pairs0, {sums} %pairs1, {odd}
  %old = load {sums}, ptr %c, align 4
  %both = add {sums} %even, %odd
  %new = add {sums} %old, %both
  store {sums} %new, ptr %c, align 4
  ret void
}}"
        )
    }

    /// The same of products that are i32 at once.
    fn code_of_words(&self) -> String {
        let &Self { lanes, depth, .. } = self;
        let all = lanes * depth;
        let of = |count: i64, bits: i64| format!("<{count} x i{bits}>");
        let (few, bytes, words) = (of(depth, 8), of(all, 8), of(all, 32));
        let (sums, repeated) = (of(lanes, 32), mask((0..all).map(|index| index % depth)));
        let [first, second, third, fourth] =
            [0, 1, 2, 3].map(|k| mask((0..lanes).map(|lane| depth * lane + k)));
        format!(
            "define void @tile(ptr %a, ptr %b, ptr %c) {{
  %few = load {few}, ptr %a, align 1
  %all = shufflevector {few} %few, {few} poison, {repeated}
  %left = zext {bytes} %all to {words}
  %right.bytes = load {bytes}, ptr %b, align 1
  %right = sext {bytes} %right.bytes to {words}
  %products = mul {words} %left, %right
  %p0 = shufflevector {words} %products, {words} poison, {first}
  %p1 = shufflevector {words} %products, {words} poison, {second}
  %p2 = shufflevector {words} %products, {words} poison, {third}
  %p3 = shufflevector {words} %products, {words} poison, {fourth}
  %s0 = add {sums} %p0, %p1
  %s1 = add {sums} %p2, %p3
  %both = add {sums} %s0, %s1
  %old = load {sums}, ptr %c, align 4
  %new = add {sums} %old, %both
  store {sums} %new, ptr %c, align 4
  ret void
}}"
        )
    }
}

/// The mask of a shuffle.
fn mask(indices: impl Iterator<Item = i64>) -> String {
    let all: Vec<String> = indices.map(|index| format!("i32 {index}")).collect();
    format!("<{} x i32> <{}>", all.len(), all.join(", "))
}
