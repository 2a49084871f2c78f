//! Products in the tile registers of AMX.
//!
//! ```ir
//! for %i in 0..512 { for %h in 0..2 { for %j in 0..16 { for %k in 0..64 { for %l in 0..2 {           ldtilecfg; tileloadd tmm0 to tmm3, [c]
//!   %c[%i, %h, %j] = %c[%i, %h, %j] +                                                      =>   each 16 of %k: tileloadd tmm4 to tmm7, [a], [b];
//!                     f32(%a[%i, 2*%k + %l]) * f32(%b[%h, %k, %j, %l]) } } } } }                     4 × tdpbf16ps; tilestored [c]; tilerelease
//! ```
//!
//! Four tiles of 16 by 16 sums take two tiles of each factor, so that each is loaded for two products; for the last rows up to 16, and for
//! 16 columns, it is half of that. The right side lies by pairs, or quads, of what is summed, in blocks of 16 columns; rows and blocks may
//! lie any distance apart. Tiles are described in *Intel 64 and IA-32 Architectures Software Developer's Manual*, volume 1, chapter 18.
//!
//! LLVM gives out the tile registers by itself only where their shapes are constants, so the instructions are named here. A process has
//! to ask the kernel once before it uses them (`arch_prctl(ARCH_REQ_XCOMP_PERM)`, Linux, `Documentation/arch/x86/xstate.rst`), which the
//! code does at the first product; where the kernel refuses, the process ends with an illegal instruction, as it does where a processor
//! lacks one.

use tenon_plugin_api::ir::DType;
use tenon_plugin_api::rule::prelude::*;

/// Rows that are computed at once. Tiles are configured once for all that are full, which takes as long as eight products.
pub(crate) const ROWS: i64 = 512;

/// In the configuration of the eight tiles a row is 64 bytes in each, and a byte says how many rows each has: those of sums and of the left
/// side as there are, 0, 1 and 4 of the upper ones and 2, 3 and 5 of the lower ones; those of the right side all.
const WIDTHS: u64 = 0x0040_0040_0040_0040;
const UPPER: u64 = 1 | 1 << 8 | 1 << (8 * 4);
const LOWER: u64 = 1 << (8 * 2) | 1 << (8 * 3) | 1 << (8 * 5);
const RIGHT: u64 = 16 << (8 * 6) | 16 << (8 * 7);

/// What functions are given that compute tiles: distances are bytes.
const PARAMS: &str =
    "ptr %a, i64 %a_row, ptr %b, i64 %b_row, i64 %b_block, ptr %c, i64 %c_row, i64 %steps";

const BF16: Tiles = Tiles {
    dtypes: [DType::BF16, DType::BF16, DType::F32],
    instruction: "tdpbf16ps",
    features: &["amx-tile", "amx-bf16"],
    group: 2,
};
const SIGNED: Tiles = Tiles {
    dtypes: [DType::I8, DType::I8, DType::I32],
    instruction: "tdpbssd",
    features: &["amx-tile", "amx-int8"],
    group: 4,
};
const BYTES: Tiles =
    Tiles { dtypes: [DType::U8, DType::I8, DType::I32], instruction: "tdpbusd", ..SIGNED };

/// Up to 512 rows by 32 columns of products of bf16: AMX-BF16.
#[rule(intrinsic, key = "x86.amx_bf16.bf16x512x32")]
fn short_floats(it: &mut Intrinsic) {
    BF16.describe(it, 2);
    it.rounds_differently();
}

/// The same in 16 columns.
#[rule(intrinsic, key = "x86.amx_bf16.bf16x512x16")]
fn narrow_short_floats(it: &mut Intrinsic) {
    BF16.describe(it, 1);
    it.rounds_differently();
}

/// Up to 512 rows by 32 columns of products of u8 and i8: AMX-INT8.
#[rule(intrinsic, key = "x86.amx_int8.u8i8x512x32")]
fn bytes(it: &mut Intrinsic) {
    BYTES.describe(it, 2);
}

/// The same in 16 columns.
#[rule(intrinsic, key = "x86.amx_int8.u8i8x512x16")]
fn narrow_bytes(it: &mut Intrinsic) {
    BYTES.describe(it, 1);
}

/// Up to 512 rows by 16 columns of products of i8: AMX-INT8.
#[rule(intrinsic, key = "x86.amx_int8.i8x512x16")]
fn signed_bytes(it: &mut Intrinsic) {
    SIGNED.describe(it, 1);
}

/// Products of which `group` neighbours of what is summed lie side by side in the right side.
struct Tiles {
    /// Of the factors and of the sums.
    dtypes: [DType; 3],
    instruction: &'static str,
    features: &'static [&'static str],
    group: i64,
}

impl Tiles {
    /// In one or two blocks of columns.
    fn describe(&self, it: &Intrinsic, blocks: i64) {
        let &Self { dtypes, group, .. } = self;
        it.needs("x86_64", self.features);
        // Two full tiles of rows, and behind them two or one that are not; two of what is summed.
        let (rows, steps) = (if blocks == 1 { 40 } else { 52 }, 32);
        let a = it.operand("a", dtypes[0], &[rows, steps * group]);
        let (right, sums) = ([blocks, steps, 16, group], [rows, blocks, 16]);
        let one = usize::from(blocks == 1);
        let b = it.operand("b", dtypes[1], &right[one..]);
        let c = match blocks {
            1 => it.operand("c", dtypes[2], &[rows, 16]),
            _ => it.operand("c", dtypes[2], &sums),
        };
        it.strides(&["a", "b", "c"]);
        it.any_extent(&[("i", 1, ROWS), ("k", 16, 1 << 24)]);
        let loops = [("i", rows), ("h", blocks), ("j", 16), ("k", steps), ("l", group)];
        let loops: Vec<_> = loops.into_iter().filter(|&(_, extent)| extent > 1).collect();
        it.computes(&loops, |at| {
            let [i, columns @ .., k, l] = at else { unreachable!("there are four loops or five") };
            let (block, j) = columns.split_at(columns.len() - 1);
            let (i, k, l) = (*i, *k, *l);
            let left = a.at(&[i, k * group + l]).cast(dtypes[2]);
            let right = b.at(&[block, &[k], j, &[l]].concat()).cast(dtypes[2]);
            let sum = [&[i], columns].concat();
            c.set(&sum, c.at(&sum) + left * right)
        });
        it.llvm(&self.code(blocks));
    }

    fn code(&self, blocks: i64) -> String {
        let bytes = 4 / self.group;
        // Rows of the right side are whole where there are blocks, which may lie any distance apart.
        let right = if blocks == 1 { "i64 %b_bytes, i64 0" } else { "i64 64, i64 %b_bytes" };
        let (high, low) = (self.kernel("high", 2, blocks), self.kernel("low", 1, blocks));
        format!(
            "@tile_permitted = internal global i32 0
define internal void @tile_permit() noinline {{
  %done = call i64 asm sideeffect \"syscall\", \"={{rax}},{{rax}},{{rdi}},{{rsi}},~{{rcx}},~{{r11}},~{{memory}}\"(i64 158, i64 4131, i64 18)
  store atomic i32 1, ptr @tile_permitted release, align 4
  ret void
}}
define internal void @tile_configure(ptr %config, i64 %upper, i64 %lower) {{
  store [8 x i64] [i64 1, i64 0, i64 {WIDTHS}, i64 {WIDTHS}, i64 0, i64 0, i64 0, i64 0], ptr %config, align 64
  %upper_tiles = mul i64 %upper, {UPPER}
  %lower_tiles = mul i64 %lower, {LOWER}
  %left_tiles = or i64 %upper_tiles, %lower_tiles
  %tiles = or i64 %left_tiles, {RIGHT}
  %heights = getelementptr i8, ptr %config, i64 48
  store i64 %tiles, ptr %heights, align 8
  call void asm sideeffect \"ldtilecfg ($0)\", \"r,~{{memory}}\"(ptr %config)
  ret void
}}
{high}
{low}
define internal void @tile_rows({PARAMS}, i64 %rows) noinline {{
  %config = alloca [8 x i64], align 64
  %rest = and i64 %rows, 31
  %whole = sub i64 %rows, %rest
  %has_whole = icmp ne i64 %whole, 0
  br i1 %has_whole, label %full, label %last
full:
  call void @tile_configure(ptr %config, i64 16, i64 16)
  br label %more
more:
  %row = phi i64 [ 0, %full ], [ %next, %more ]
  %a_far = mul i64 %row, %a_row
  %a_at = getelementptr i8, ptr %a, i64 %a_far
  %c_far = mul i64 %row, %c_row
  %c_at = getelementptr i8, ptr %c, i64 %c_far
  call void @tile_high(ptr %a_at, i64 %a_row, ptr %b, i64 %b_row, i64 %b_block, ptr %c_at, i64 %c_row, i64 %steps)
  %next = add i64 %row, 32
  %goes_on = icmp ult i64 %next, %whole
  br i1 %goes_on, label %more, label %last
last:
  %a_whole = mul i64 %whole, %a_row
  %a_last = getelementptr i8, ptr %a, i64 %a_whole
  %c_whole = mul i64 %whole, %c_row
  %c_last = getelementptr i8, ptr %c, i64 %c_whole
  %has_rest = icmp ne i64 %rest, 0
  br i1 %has_rest, label %some, label %done
some:
  %is_high = icmp ugt i64 %rest, 16
  br i1 %is_high, label %high, label %low
high:
  %lower = sub i64 %rest, 16
  call void @tile_configure(ptr %config, i64 16, i64 %lower)
  call void @tile_high(ptr %a_last, i64 %a_row, ptr %b, i64 %b_row, i64 %b_block, ptr %c_last, i64 %c_row, i64 %steps)
  br label %done
low:
  call void @tile_configure(ptr %config, i64 %rest, i64 1)
  call void @tile_low(ptr %a_last, i64 %a_row, ptr %b, i64 %b_row, i64 %b_block, ptr %c_last, i64 %c_row, i64 %steps)
  br label %done
done:
  call void asm sideeffect \"tilerelease\", \"~{{memory}}\"()
  ret void
}}
define void @tile(ptr %a, i64 %a_row, ptr %b, i64 %b_far, ptr %c, i64 %c_row, i64 %rows, i64 %steps) {{
  %permitted = load atomic i32, ptr @tile_permitted acquire, align 4
  %first = icmp eq i32 %permitted, 0
  br i1 %first, label %ask, label %multiply
ask:
  call void @tile_permit()
  br label %multiply
multiply:
  %a_bytes = mul i64 %a_row, {bytes}
  %b_bytes = mul i64 %b_far, {bytes}
  %c_bytes = mul i64 %c_row, 4
  call void @tile_rows(ptr %a, i64 %a_bytes, ptr %b, {right}, ptr %c, i64 %c_bytes, i64 %steps, i64 %rows)
  ret void
}}"
        )
    }

    /// A function that computes tiles of rows in one tile or two, and of 16 columns in one or two. Tiles 0 to 3 are sums by rows, 4 and 5
    /// those of the left side, 6 and 7 those of the right one.
    fn kernel(&self, name: &str, tall: i64, wide: i64) -> String {
        let sums: Vec<[i64; 2]> = (0..tall).flat_map(|i| (0..wide).map(move |h| [i, h])).collect();
        let each = |text: &dyn Fn(&[i64; 2]) -> String| sums.iter().map(text).collect::<String>();
        // Rows of sums are those of the first two operands; the second block of columns lies 64 bytes on.
        let place = |i: i64, h: i64| format!("{}(${i},$2,1)", 64 * h);
        let loaded = each(&|&[i, h]| format!("tileloadd {}, %tmm{}\\0A", place(i, h), 2 * i + h));
        let stored = each(&|&[i, h]| format!("tilestored %tmm{}, {}\\0A", 2 * i + h, place(i, h)));
        let left: String =
            (0..tall).map(|i| format!("tileloadd (${i},$2,1), %tmm{}\\0A", 4 + i)).collect();
        let right: String =
            (0..wide).map(|h| format!("tileloadd (${},$5,1), %tmm{}\\0A", 3 + h, 6 + h)).collect();
        let products = each(&|&[i, h]| {
            format!("{} %tmm{}, %tmm{}, %tmm{}\\0A", self.instruction, 6 + h, 4 + i, 2 * i + h)
        });
        format!(
            "define internal void @tile_{name}({PARAMS}) {{
  %c_tile = mul i64 %c_row, 16
  %c_low = getelementptr i8, ptr %c, i64 %c_tile
  call void asm sideeffect \"{loaded}\", \"r,r,r,~{{memory}}\"(ptr %c, ptr %c_low, i64 %c_row)
  %a_tile = mul i64 %a_row, 16
  %b_tile = mul i64 %b_row, 16
  br label %more
more:
  %step = phi i64 [ 0, %0 ], [ %next, %more ]
  %a_at = phi ptr [ %a, %0 ], [ %a_next, %more ]
  %b_at = phi ptr [ %b, %0 ], [ %b_next, %more ]
  %a_low = getelementptr i8, ptr %a_at, i64 %a_tile
  %b_other = getelementptr i8, ptr %b_at, i64 %b_block
  call void asm sideeffect \"{left}{right}{products}\", \"r,r,r,r,r,r,~{{memory}}\"(ptr %a_at, ptr %a_low, i64 %a_row, ptr %b_at, ptr %b_other, i64 %b_row)
  %a_next = getelementptr i8, ptr %a_at, i64 64
  %b_next = getelementptr i8, ptr %b_at, i64 %b_tile
  %next = add i64 %step, 16
  %goes_on = icmp slt i64 %next, %steps
  br i1 %goes_on, label %more, label %done
done:
  call void asm sideeffect \"{stored}\", \"r,r,r,~{{memory}}\"(ptr %c, ptr %c_low, i64 %c_row)
  ret void
}}"
        )
    }
}
