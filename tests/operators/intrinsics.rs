//! Our tensor intrinsics: each in a product of matrices whose schedule names it, as code for a processor that has it, and run
//! where this machine or an emulator has it.

use libtest_mimic::{Failed, Trial};
use tenon_compiler::backend::Emit;
use tenon_compiler::eval::{Evaluator, Tensor, Value};
use tenon_compiler::executable;
use tenon_compiler::ir::{Bytes, DType, Module};
use tenon_compiler::target::Target;

use super::case::read;
use super::compiled;
use super::emulated::{AARCH64, Emulator};
use super::fill::fill;

/// An intrinsic, and the product of `left` and `right` in which it is tried.
#[derive(Clone, Copy)]
struct Tile {
    name: &'static str,
    /// A processor that has it, and the instruction that its code consists of.
    target: &'static str,
    instruction: &'static str,
    left: DType,
    right: DType,
    sum: DType,
    /// Rows, columns and steps of the sum at once, and how many of those lie side by side.
    shape: [i64; 4],
    on: Option<&'static Emulator>,
}

const DOTS: Emulator = AARCH64.with("aarch64,features=+dotprod");
const MIXED_DOTS: Emulator = AARCH64.with("aarch64,features=+i8mm");
const FMA: Tile = Tile {
    name: "x86.fma.f32x8",
    target: "x86-64-v3",
    instruction: "vfmadd",
    left: DType::F32,
    right: DType::F32,
    sum: DType::F32,
    shape: [1, 8, 1, 1],
    on: None,
};
const BYTES: Tile = Tile {
    name: "x86.avx512vnni.u8i8x16x4",
    target: "x86-64-v4,features=+avx512vnni",
    instruction: "vpdpbusd",
    left: DType::U8,
    right: DType::I8,
    sum: DType::I32,
    shape: [1, 16, 4, 4],
    ..FMA
};
const AMX: Tile = Tile {
    name: "x86.amx_bf16.bf16x512x16",
    target: "x86-64-v4,features=+amx-tile,+amx-bf16,+amx-int8",
    instruction: "tdpbf16ps",
    left: DType::BF16,
    right: DType::BF16,
    shape: [32, 16, 64, 2],
    ..FMA
};

const ALL: [Tile; 15] = [
    FMA,
    Tile { name: "x86.avx512f.f32x16", target: "x86-64-v4", shape: [1, 16, 1, 1], ..FMA },
    Tile {
        name: "aarch64.neon.f32x4",
        target: AARCH64.target,
        instruction: "fmla",
        shape: [1, 4, 1, 1],
        on: Some(&AARCH64),
        ..FMA
    },
    BYTES,
    Tile { name: "x86.avx512vnni.u8i8x8x4", shape: [1, 8, 4, 4], ..BYTES },
    Tile { name: "x86.avx512vnni.u8i8x4x4", shape: [1, 4, 4, 4], ..BYTES },
    Tile {
        name: "x86.avxvnni.u8i8x8x4",
        target: "x86-64-v3,features=+avxvnni",
        shape: [1, 8, 4, 4],
        ..BYTES
    },
    Tile {
        name: "x86.avxvnni.u8i8x4x4",
        target: "x86-64-v3,features=+avxvnni",
        shape: [1, 4, 4, 4],
        ..BYTES
    },
    Tile {
        name: "x86.avx512bf16.bf16x16x2",
        target: "x86-64-v4,features=+avx512bf16",
        instruction: "vdpbf16ps",
        left: DType::BF16,
        right: DType::BF16,
        shape: [1, 16, 2, 2],
        ..FMA
    },
    Tile {
        name: "x86.avx512bf16.bf16x8x2",
        target: "x86-64-v4,features=+avx512bf16",
        instruction: "vdpbf16ps",
        left: DType::BF16,
        right: DType::BF16,
        shape: [1, 8, 2, 2],
        ..FMA
    },
    Tile {
        name: "aarch64.dotprod.i8x4x4",
        target: DOTS.target,
        instruction: "sdot",
        left: DType::I8,
        right: DType::I8,
        sum: DType::I32,
        shape: [1, 4, 4, 4],
        on: Some(&DOTS),
    },
    Tile {
        name: "aarch64.i8mm.u8i8x4x4",
        target: MIXED_DOTS.target,
        instruction: "usdot",
        on: Some(&MIXED_DOTS),
        shape: [1, 4, 4, 4],
        ..BYTES
    },
    AMX,
    Tile {
        name: "x86.amx_int8.i8x512x16",
        instruction: "tdpbssd",
        left: DType::I8,
        right: DType::I8,
        sum: DType::I32,
        shape: [32, 16, 128, 4],
        ..AMX
    },
    Tile {
        name: "x86.amx_int8.u8i8x512x16",
        instruction: "tdpbusd",
        left: DType::U8,
        right: DType::I8,
        sum: DType::I32,
        shape: [32, 16, 128, 4],
        ..AMX
    },
];

pub(crate) fn trials() -> Vec<Trial> {
    let both = ALL.iter().flat_map(|&tile| {
        let missing = tile.missing();
        missing.iter().for_each(|why| eprintln!("{} is skipped: {why}", tile.name));
        let runs = Trial::test(format!("intrinsics::run::{}", tile.name), move || tile.run());
        [
            Trial::test(format!("intrinsics::assembled::{}", tile.name), move || tile.assembled()),
            runs.with_ignored_flag(missing.is_some()),
        ]
    });
    both.collect()
}

impl Tile {
    /// Why it cannot be run; `None` where it can.
    fn missing(&self) -> Option<String> {
        if let Some(emulator) = self.on {
            return emulator.missing();
        }
        let [wanted, here] = [self.target, "native"].map(Target::parse);
        let Ok((wanted, here)) = wanted.and_then(|wanted| Ok((wanted, here?))) else {
            return Some(format!("{} is no target", self.target));
        };
        if !wanted.runs_here() {
            return Some(format!("this machine is no {}", wanted.architecture().name()));
        }
        let missing = wanted.all_features().into_iter().find(|feature| !here.has(feature));
        missing.map(|feature| format!("this processor has no {feature}"))
    }

    /// Its code has the instruction.
    fn assembled(&self) -> Result<(), Failed> {
        let target = Target::parse(self.target)?;
        let lowered = compiled::lowered(&self.module(), &target)?;
        let units = executable::emit(&lowered, &target, &compiled::options(), Emit::Assembly)?;
        let texts = units.iter().map(|unit| String::from_utf8_lossy(&unit.bytes));
        let text: String = texts.collect();
        match text.contains(self.instruction) {
            true => Ok(()),
            false => Err(format!("{} is expected in:\n{text}", self.instruction).into()),
        }
    }

    /// It computes what the evaluator does.
    fn run(&self) -> Result<(), Failed> {
        let module = self.module();
        let inputs = self.inputs();
        let args = inputs.iter().cloned().map(Value::Tensor).collect();
        let wanted = match Evaluator::new(&module).call("main", args)? {
            Value::Tensor(wanted) => wanted,
            _ => return Err("a tensor is expected".into()),
        };
        let found = match self.on {
            Some(emulator) => emulator.run(&module, &inputs)?,
            None => compiled::run(&compiled::compile(&module)?, &inputs)?,
        };
        let (wanted, found) = (numbers(&wanted), numbers(&found[0]));
        let largest = wanted.iter().fold(0.0f64, |most, x| most.max(x.abs()));
        // Sums of floats are made in another order.
        let allowed = if self.sum == DType::F32 { 1e-5 * largest } else { 0.0 };
        let far = wanted.iter().zip(&found).position(|(a, b)| (a - b).abs() > allowed);
        match far {
            None if wanted.len() == found.len() && largest > 0.0 => Ok(()),
            None => Err("there are not as many numbers, or all are zero".into()),
            Some(at) => Err(format!("{} instead of {} at {at}", found[at], wanted[at]).into()),
        }
    }

    /// A product of two tiles by two, over two steps of the sum.
    fn sizes(&self) -> [i64; 3] {
        let [rows, columns, depth, _] = self.shape;
        [2 * rows, 2 * columns, 2 * depth]
    }

    fn module(&self) -> Module {
        let Tile { name, left, right, sum, shape: [rows, columns, depth, group], .. } = *self;
        let [m, n, k] = self.sizes();
        let zero = if sum == DType::F32 { "0.0" } else { "i32(0)" };
        let cast = |text: &str, from: DType| match from == sum {
            true => text.to_owned(),
            false => format!("{sum}({text})"),
        };
        let factor = cast("%a[%vi, %vk]", left);
        let (packed, at) = match rows {
            1 => (
                format!("[{}, {}, {columns}, {group}]", n / columns, k / group),
                format!(
                    "%b[%vj floordiv {columns}, %vk floordiv {group}, %vj % {columns}, %vk % {group}]"
                ),
            ),
            _ => (
                format!("[{}, {n}, {group}]", k / group),
                format!("%b[%vk floordiv {group}, %vj, %vk % {group}]"),
            ),
        };
        let other = cast(&at, right);
        let trace = format!(
            "c = block(\\\"c\\\"); [i, j, k] = loops(c); [io, ii] = split(i, [_, {rows}]); [jo, ji] = split(j, [_, {columns}]); \
             [ko, ki, kl] = split(k, [_, {}, {group}]); reorder([io, jo, ko, ii, ji, ki, kl]); decompose_reduction(c, ko); \
             tensorize({}, \\\"{name}\\\")",
            depth / group,
            if rows == 1 { "ji" } else { "ii" },
        );
        read(&format!(
            "prim @product(%a: {left}[{m}, {k}], %b: {right}{packed}, out %c: {sum}[{m}, {n}]) {{ schedule = \"{trace}\" }} {{
  for %i in 0..{m} {{ for %j in 0..{n} {{ for %k in 0..{k} {{
    block \"c\" (%vi: spatial = %i, %vj: spatial = %j, %vk: reduce = %k) init {{ %c[%vi, %vj] = {zero} }} {{
      %c[%vi, %vj] = %c[%vi, %vj] + {factor} * {other}
    }}
  }} }} }}
}}

fn @main(%a: {left}[{m}, {k}], %b: {right}{packed}) -> {sum}[{m}, {n}] {{
  %c: {sum}[{m}, {n}] = call_tir(@product, %a, %b) {{ out = {sum}[{m}, {n}] }}
  ret %c
}}
"
        ))
    }

    fn inputs(&self) -> Vec<Tensor> {
        let Tile { left, right, shape: [rows, columns, _, group], .. } = *self;
        let [m, n, k] = self.sizes();
        let packed = match rows {
            1 => vec![n / columns, k / group, columns, group],
            _ => vec![k / group, n, group],
        };
        vec![tensor("a", left, &[m, k]), tensor("b", right, &packed)]
    }
}

/// Numbers over the whole range of small integers, and floats in -1 .. 1.
fn tensor(name: &str, dtype: DType, shape: &[i64]) -> Tensor {
    let shape: Vec<usize> = shape.iter().map(|&extent| extent as usize).collect();
    let bytes = fill(name, shape.iter().product()).into_iter().flat_map(|x| match dtype {
        DType::F32 => x.to_le_bytes().to_vec(),
        DType::BF16 => half::bf16::from_f32(x).to_le_bytes().to_vec(),
        _ => vec![(128.0 * x).floor() as i32 as u8],
    });
    Tensor::new(dtype, shape, Bytes::new(bytes.collect::<Vec<_>>()))
        .expect("as many bytes as the shape says")
}

fn numbers(tensor: &Tensor) -> Vec<f64> {
    let words = tensor.bytes().chunks_exact(4).map(|word| [word[0], word[1], word[2], word[3]]);
    match tensor.dtype() {
        DType::F32 => words.map(|word| f32::from_le_bytes(word).into()).collect(),
        _ => words.map(|word| i32::from_le_bytes(word).into()).collect(),
    }
}
