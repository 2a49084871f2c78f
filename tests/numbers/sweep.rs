//! Functions of one float, and powers.

use libtest_mimic::Failed;
use tenon_compiler::eval::Tensor;
use tenon_compiler::ir::{Bytes, DType};

use crate::TOLERANCES;
use crate::float::{BF16, F16, F32, F64, Format};
use crate::run::{Machine, run};

type Function = fn(f64) -> f64;

/// By operator, what it computes.
const FUNCTIONS: [(&str, Function); 24] = [
    ("exp", f64::exp),
    ("log", f64::ln),
    ("sqrt", f64::sqrt),
    ("rsqrt", |x| 1.0 / x.sqrt()),
    ("sigmoid", |x| 1.0 / (1.0 + (-x).exp())),
    ("tanh", f64::tanh),
    ("erf", libm::erf),
    ("sin", f64::sin),
    ("cos", f64::cos),
    ("tan", f64::tan),
    ("asin", f64::asin),
    ("acos", f64::acos),
    ("atan", f64::atan),
    ("sinh", f64::sinh),
    ("cosh", f64::cosh),
    ("asinh", libm::asinh),
    ("acosh", |x| if x < 1.0 { f64::NAN } else { libm::acosh(x) }),
    ("atanh", libm::atanh),
    ("floor", f64::floor),
    ("ceil", f64::ceil),
    ("round", f64::round_ties_even),
    ("abs", f64::abs),
    ("negative", |x| -x),
    ("nn.relu", |x| if x < 0.0 { 0.0 } else { x }),
];

/// Exponents of 16-bit floats.
const EXPONENTS: [f64; 14] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    2.0,
    3.0,
    -3.0,
    0.5,
    -0.5,
    0.375,
    9.5,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];

/// Every this manieth f32 is tried, so that there are some fifty thousand.
const STRIDE: usize = 85_999;

/// Elements and what becomes of them; the function, and for each element its bits.
struct Expected {
    what: String,
    format: Format,
    arguments: Vec<String>,
    results: Vec<u64>,
}

/// Compares each function of each dtype with what is expected of it.
pub(crate) fn functions(machine: Machine) -> Result<(), Failed> {
    let mut case = Case::default();
    for format in [F16, BF16] {
        let all: Vec<u64> = (0..=u64::from(u16::MAX)).collect();
        let x = case.input(format, &[all.len()], &all);
        case.by_f64(format, x, &all);
        let column = case.input(format, &[all.len(), 1], &all);
        let exponents: Vec<u64> = EXPONENTS.map(|y| format.nearest(y)).to_vec();
        let row = case.input(format, &[exponents.len()], &exponents);
        let pairs = all.iter().flat_map(|&x| exponents.iter().map(move |&y| (x, y)));
        let pairs: Vec<(f64, f64)> =
            pairs.map(|(x, y)| (format.value(x), format.value(y))).collect();
        let results = pairs.iter().map(|&(x, y)| format.nearest(x.powf(y))).collect();
        let arguments = pairs.iter().map(|pair| format!("{pair:?}")).collect();
        case.call("power", &[column, row], format, arguments, results);
    }
    let some: Vec<u64> = (0..=u64::from(u32::MAX)).step_by(STRIDE).collect();
    let x = case.input(F32, &[some.len()], &some);
    case.by_f64(F32, x, &some);
    for format in [F32, F64] {
        case.by_table(format)?;
    }
    case.check(machine)
}

/// A module that is being written, with its inputs and what is expected of it.
#[derive(Default)]
struct Case {
    params: Vec<String>,
    inputs: Vec<Tensor>,
    calls: Vec<String>,
    expected: Vec<Expected>,
}

impl Case {
    /// An input; its name.
    fn input(&mut self, format: Format, shape: &[usize], elements: &[u64]) -> String {
        let name = format!("%x{}", self.params.len());
        self.params.push(format!("{name}: {}{shape:?}", format.name));
        let bytes: Vec<u8> =
            elements.iter().flat_map(|bits| bits.to_le_bytes()[..format.bytes].to_vec()).collect();
        let dtype = match format.name {
            "f16" => DType::F16,
            "bf16" => DType::BF16,
            "f32" => DType::F32,
            _ => DType::F64,
        };
        let tensor = Tensor::new(dtype, shape.to_vec(), Bytes::new(bytes));
        self.inputs.push(tensor.expect("as many bytes as the shape says"));
        name
    }

    fn call(
        &mut self,
        op: &str,
        args: &[String],
        format: Format,
        arguments: Vec<String>,
        results: Vec<u64>,
    ) {
        self.calls.push(format!("  %y{} = {op}({})\n", self.calls.len(), args.join(", ")));
        let what = format!("{op} of {}", format.name);
        self.expected.push(Expected { what, format, arguments, results });
    }

    /// All functions of an input, as f64 computes them.
    fn by_f64(&mut self, format: Format, x: String, elements: &[u64]) {
        let values: Vec<f64> = elements.iter().map(|&bits| format.value(bits)).collect();
        for (op, function) in FUNCTIONS {
            let results = values.iter().map(|&x| format.nearest(function(x))).collect();
            let arguments = values.iter().map(|x| format!("{x:e}")).collect();
            self.call(op, std::slice::from_ref(&x), format, arguments, results);
        }
    }

    /// What the table has of a dtype.
    fn by_table(&mut self, format: Format) -> Result<(), Failed> {
        let lines = include_str!("edges.txt").lines();
        let lines: Vec<Vec<&str>> = lines
            .map(|line| line.split(' ').collect())
            .filter(|words: &Vec<&str>| words[1] == format.name)
            .collect();
        for lines in lines.chunk_by(|a, b| a[0] == b[0]) {
            let column = |at: usize| -> Result<Vec<u64>, Failed> {
                lines.iter().map(|line| Ok(u64::from_str_radix(line[at], 16)?)).collect()
            };
            let count = lines[0].len() - 3;
            let columns: Vec<Vec<u64>> = (2..2 + count).map(column).collect::<Result<_, _>>()?;
            let args: Vec<String> =
                columns.iter().map(|column| self.input(format, &[lines.len()], column)).collect();
            let arguments = (0..lines.len())
                .map(|row| {
                    let values =
                        columns.iter().map(|column| format!("{:e}", format.value(column[row])));
                    values.collect::<Vec<_>>().join(", ")
                })
                .collect();
            self.call(lines[0][0], &args, format, arguments, column(2 + count)?);
        }
        Ok(())
    }

    fn check(&self, machine: Machine) -> Result<(), Failed> {
        let results: Vec<String> = (0..self.calls.len()).map(|at| format!("%y{at}")).collect();
        let text = format!(
            "fn @main({}) {{\n{}  ret ({})\n}}\n",
            self.params.join(", "),
            self.calls.concat(),
            results.join(", ")
        );
        let found = run(&text, &self.inputs, machine)?;
        let wrong: Vec<String> = found
            .iter()
            .zip(&self.expected)
            .filter_map(|(found, expected)| expected.compare(found))
            .collect();
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
    }
}

impl Expected {
    /// What is wrong with a result.
    fn compare(&self, found: &Tensor) -> Option<String> {
        let format = self.format;
        let allowed = TOLERANCES.iter().find(|(name, _)| *name == format.name)?.1;
        let found = format.bits(found.bytes());
        let distances = found.iter().zip(&self.results);
        let distances: Vec<u64> =
            distances.map(|(&found, &expected)| format.distance(found, expected)).collect();
        let count = distances.iter().filter(|&&distance| distance > allowed).count();
        let (at, worst) = distances.iter().enumerate().max_by_key(|&(_, distance)| distance)?;
        if std::env::var("NUMBERS").is_ok() {
            eprintln!("{}: {worst} at {}", self.what, self.arguments[at]);
        }
        (count > 0).then(|| {
            format!(
                "{} is wrong for {count} of {}; worst of all, by {worst} units, of {}: {:e} instead of {:e}",
                self.what,
                found.len(),
                self.arguments[at],
                format.value(found[at]),
                format.value(self.results[at])
            )
        })
    }
}
