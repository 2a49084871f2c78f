//! Random tensor programs, against the reference evaluator, bit by bit.
//!
//! A program fills a tensor of some dtype and shape with an expression of its inputs, loop variables
//! and literals, by scalar or by vector, serially or in parallel. Float arithmetic is compiled as it is
//! written, so that nothing is rounded differently.

use crate::eval::Tensor;
use crate::executable::{CompileOptions, Executable};
use crate::ir::DType;
use crate::target::Target;

use super::run::{module, reference, run};

const DTYPES: [DType; 13] = [
    DType::F32,
    DType::F64,
    DType::F16,
    DType::BF16,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::U8,
    DType::U16,
    DType::U32,
    DType::U64,
    DType::BOOL,
];

/// Numbers that look random and are the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }
}

/// A program that is being written.
struct Writer {
    random: Random,
    /// Dtypes of the inputs, which all have the shape of the output.
    inputs: Vec<DType>,
    rows: usize,
    columns: usize,
    lanes: usize,
}

impl Writer {
    fn new(seed: u64) -> Writer {
        let mut random = Random(seed);
        let inputs = (0..1 + random.below(3)).map(|_| random.pick(&DTYPES)).collect();
        let lanes = random.pick(&[1, 1, 2, 4, 8, 16, 3]);
        let columns = lanes * (1 + random.below(5));
        Writer { inputs, rows: 1 + random.below(6), columns, lanes, random }
    }

    fn shape(&self) -> String {
        format!("[{}, {}]", self.rows, self.columns)
    }

    fn module(&mut self) -> String {
        let out = self.random.pick(&DTYPES);
        let shape = self.shape();
        let names = |dtypes: &[DType]| {
            let name = |(n, dtype): (usize, &DType)| format!("%x{n}: {dtype}{shape}");
            dtypes.iter().enumerate().map(name).collect::<Vec<_>>().join(", ")
        };
        let params = names(&self.inputs);
        let args: Vec<String> = (0..self.inputs.len()).map(|n| format!("%x{n}")).collect();
        let value = self.expression(out, 4);
        let (rows, columns, lanes) = (self.rows, self.columns, self.lanes);
        let kind = self.random.pick(&["", " parallel"]);
        let (steps, place) = match lanes {
            1 => (columns, "%j".to_owned()),
            lanes => (columns / lanes, format!("ramp(%j * {lanes}, 1, {lanes})")),
        };
        let cut = self.random.below(rows + 1);
        let other = self.expression(out, 2);
        format!(
            "fn @main({params}) {{
  %y: {out}{shape} = call_tir(@k, {}) {{ out = {out}{shape} }}
  ret %y
}}

prim @k({params}, out %y: {out}{shape}) {{
  for %i in 0..{rows}{kind} {{
    for %j in 0..{steps} {{
      %y[%i, {place}] = {value}
      if %i < {cut} {{
        %y[%i, {place}] = {other}
      }}
    }}
  }}
}}
",
            args.join(", ")
        )
    }

    /// An expression of `dtype` with all lanes.
    fn expression(&mut self, dtype: DType, depth: usize) -> String {
        if depth == 0 || self.random.below(8) == 0 {
            return self.leaf(dtype);
        }
        if self.random.below(6) == 0 {
            return self.cast(dtype, depth);
        }
        if self.random.below(6) == 0 {
            let cond = self.expression(DType::BOOL, depth - 1);
            let (a, b) = (self.expression(dtype, depth - 1), self.expression(dtype, depth - 1));
            return format!("select({cond}, {a}, {b})");
        }
        match dtype {
            DType::BOOL => self.truth(depth),
            dtype if dtype.is_float() => self.float(dtype, depth),
            dtype => self.int(dtype, depth),
        }
    }

    fn truth(&mut self, depth: usize) -> String {
        if self.random.below(3) == 0 {
            let op = self.random.pick(&["&&", "||"]);
            let (a, b) =
                (self.expression(DType::BOOL, depth - 1), self.expression(DType::BOOL, depth - 1));
            return format!("({a} {op} {b})");
        }
        let of = self.random.pick(&DTYPES[..12]);
        let op = self.random.pick(&["==", "!=", "<", "<=", ">", ">="]);
        let (a, b) = (self.expression(of, depth - 1), self.expression(of, depth - 1));
        format!("({a} {op} {b})")
    }

    fn float(&mut self, dtype: DType, depth: usize) -> String {
        let a = self.expression(dtype, depth - 1);
        match self.random.below(12) {
            0 => format!("abs({a})"),
            1 => format!("floor({a})"),
            2 => format!("ceil({a})"),
            3 => format!("trunc({a})"),
            4 => format!("round({a})"),
            5 => format!("sqrt(abs({a}))"),
            6 => format!("copysign({a}, {})", self.expression(dtype, depth - 1)),
            // Of zeros with different signs either is the larger, which would show behind a division.
            7 => {
                let op = self.random.pick(&["min", "max"]);
                format!("{op}({a}, {})", self.literal(dtype))
            }
            _ => {
                let op = self.random.pick(&["+", "-", "*", "/"]);
                format!("({a} {op} {})", self.expression(dtype, depth - 1))
            }
        }
    }

    fn int(&mut self, dtype: DType, depth: usize) -> String {
        let a = self.expression(dtype, depth - 1);
        match self.random.below(10) {
            0 => format!("abs({a})"),
            1 => {
                let op = self.random.pick(&["bitand", "bitor", "bitxor"]);
                format!("{op}({a}, {})", self.expression(dtype, depth - 1))
            }
            2 => {
                let op = self.random.pick(&["min", "max"]);
                format!("{op}({a}, {})", self.expression(dtype, depth - 1))
            }
            3 | 4 => {
                let op = self.random.pick(&["/", "floordiv", "%"]);
                let signs: &[i64] = if dtype.is_signed() { &[1, -1] } else { &[1] };
                let by = self.random.pick(&[1, 2, 3, 7, 8, 10]) * self.random.pick(signs);
                let by = self.broadcast(&number(dtype, by));
                format!("({a} {op} {by})")
            }
            5 => {
                let op = self.random.pick(&["shl", "shr"]);
                let by = self.random.below(dtype.bits() as usize) as i64;
                let by = self.broadcast(&number(dtype, by));
                format!("{op}({a}, {by})")
            }
            _ => {
                let op = self.random.pick(&["+", "-", "*"]);
                format!("({a} {op} {})", self.expression(dtype, depth - 1))
            }
        }
    }

    fn cast(&mut self, dtype: DType, depth: usize) -> String {
        let from = self.random.pick(&DTYPES);
        let value = self.expression(from, depth - 1);
        if from == dtype {
            return value;
        }
        match self.lanes {
            1 => format!("{dtype}({value})"),
            lanes => format!("{dtype}x{lanes}({value})"),
        }
    }

    fn leaf(&mut self, dtype: DType) -> String {
        let same: Vec<usize> =
            (0..self.inputs.len()).filter(|&n| self.inputs[n] == dtype).collect();
        if !same.is_empty() && self.random.below(4) > 0 {
            let n = self.random.pick(&same);
            return self.load(n);
        }
        if dtype == DType::I64 && self.random.below(2) == 0 {
            let (lanes, stride) = (self.lanes, self.random.below(5) as i64 - 2);
            return match lanes {
                1 => self.random.pick(&["%i", "%j", "(%i * 3 - %j)"]).to_owned(),
                lanes => format!("ramp(%i - %j, {stride}, {lanes})"),
            };
        }
        self.literal(dtype)
    }

    /// An element or several, side by side or not.
    fn load(&mut self, n: usize) -> String {
        let (rows, columns, lanes) = (self.rows, self.columns, self.lanes);
        if lanes == 1 {
            return match self.random.below(3) {
                0 => format!("%x{n}[%i, %j]"),
                1 => format!("%x{n}[{} - %i, {} - %j]", rows - 1, columns - 1),
                _ => format!("%x{n}[(%i * %j + 1) % {rows}, (%j - %i) % {columns}]"),
            };
        }
        match self.random.below(5) {
            0 => format!("broadcast(%x{n}[%i, %j], {lanes})"),
            1 => format!("%x{n}[broadcast(%i, {lanes}), ramp({}, -1, {lanes})]", lanes - 1),
            2 => {
                // As far apart as the row allows.
                let stride = (columns - 1) / (lanes - 1);
                format!("%x{n}[%i, ramp(0, {stride}, {lanes})]")
            }
            3 => format!(
                "%x{n}[%i, (ramp(%j, 1, {lanes}) * broadcast(3, {lanes})) % broadcast({columns}, {lanes})]"
            ),
            _ => format!("%x{n}[%i, ramp(%j * {lanes}, 1, {lanes})]"),
        }
    }

    fn literal(&mut self, dtype: DType) -> String {
        let text = match dtype {
            DType::BOOL => self.random.pick(&["true", "false"]).to_owned(),
            dtype if dtype.is_float() => {
                let value = self.random.pick(&[0.0, 1.0, -1.0, 0.5, -2.25, 3.0, 100.0]);
                match dtype {
                    DType::F32 => format!("{value:?}"),
                    dtype => format!("{value:?}{dtype}"),
                }
            }
            dtype => {
                let low = if dtype.is_signed() { -5 } else { 0 };
                number(dtype, low + self.random.below(20) as i64)
            }
        };
        self.broadcast(&text)
    }

    fn broadcast(&self, scalar: &str) -> String {
        match self.lanes {
            1 => scalar.to_owned(),
            lanes => format!("broadcast({scalar}, {lanes})"),
        }
    }

    /// A tensor of small numbers of both signs.
    fn tensor(&mut self, dtype: DType) -> Tensor {
        let shape = vec![self.rows, self.columns];
        let count = self.rows * self.columns;
        macro_rules! of {
            ($t:ty, $make:expr) => {{
                let values: Vec<$t> = (0..count).map(|_| $make(&mut self.random)).collect();
                Tensor::from_vec_as(dtype, shape, values)
            }};
        }
        let float = |random: &mut Random| (random.below(401) as f64 - 200.0) / 8.0;
        match dtype {
            DType::F64 => of!(f64, float),
            DType::F16 => of!(half::f16, |r: &mut Random| half::f16::from_f64(float(r))),
            DType::BF16 => of!(half::bf16, |r: &mut Random| half::bf16::from_f64(float(r))),
            DType::F32 => of!(f32, |r: &mut Random| float(r) as f32),
            DType::BOOL => of!(u8, |r: &mut Random| r.below(2) as u8),
            DType::I8 | DType::U8 => of!(u8, |r: &mut Random| r.next() as u8),
            DType::I16 | DType::U16 => {
                of!(i16, |r: &mut Random| if r.below(2) == 0 { r.next() as i16 } else { -3 })
            }
            DType::I32 | DType::U32 => {
                of!(i32, |r: &mut Random| if r.below(2) == 0 { r.next() as i32 } else { 5 })
            }
            _ => of!(i64, |r: &mut Random| if r.below(2) == 0 { r.next() as i64 } else { -7 }),
        }
    }
}

fn number(dtype: DType, value: i64) -> String {
    match dtype {
        DType::I64 if value < 0 => format!("({value})"),
        DType::I64 => value.to_string(),
        dtype if value < 0 => format!("({value}{dtype})"),
        dtype => format!("{value}{dtype}"),
    }
}

/// Whether two elements are the same, or both no number.
fn same(dtype: DType, a: &[u8], b: &[u8]) -> bool {
    let is_nan = |bytes: &[u8]| match dtype {
        DType::F32 => f32::from_le_bytes(bytes.try_into().unwrap()).is_nan(),
        DType::F64 => f64::from_le_bytes(bytes.try_into().unwrap()).is_nan(),
        DType::F16 => half::f16::from_le_bytes(bytes.try_into().unwrap()).is_nan(),
        DType::BF16 => half::bf16::from_le_bytes(bytes.try_into().unwrap()).is_nan(),
        _ => false,
    };
    a == b || (is_nan(a) && is_nan(b))
}

fn check(seed: u64, target: &Target) {
    let mut writer = Writer::new(seed);
    let text = writer.module();
    let inputs: Vec<Tensor> =
        writer.inputs.clone().into_iter().map(|dtype| writer.tensor(dtype)).collect();
    let module = module(&text);
    let expected = reference(&module, &inputs).remove(0);
    let options = CompileOptions { threads: 1, ..CompileOptions::default() };
    let executable = Executable::compile(&module, target, &options)
        .unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
    let model = executable.jit().unwrap();
    for threads in [0, 2] {
        let found = run(&model, &inputs, threads).remove(0);
        let size = expected.dtype().bits() as usize / 8;
        let elements = found.bytes().chunks(size).zip(expected.bytes().chunks(size));
        for (index, (found, expected_bytes)) in elements.enumerate() {
            assert!(
                same(expected.dtype(), found, expected_bytes),
                "seed {seed}, element {index} on {threads} threads: {found:?}, not \
                 {expected_bytes:?}\n{text}"
            );
        }
    }
}

const COUNT: u64 = if cfg!(debug_assertions) { 60 } else { 400 };

/// Programs that were once compiled wrongly.
const ONCE_WRONG: [u64; 4] = [205, 3660, 12259, 31272];

#[test]
fn programs_mean_what_the_evaluator_says() {
    let target: Target = "native,float=strict".parse().unwrap();
    ONCE_WRONG.into_iter().chain(0..COUNT).for_each(|seed| check(seed, &target));
}

#[test]
fn programs_mean_the_same_on_a_plain_processor() {
    let target: Target = "x86_64-linux-gnu,float=strict".parse().unwrap();
    if target.runs_here() {
        ONCE_WRONG
            .into_iter()
            .chain(10000..10000 + COUNT / 2)
            .for_each(|seed| check(seed, &target));
    }
}
