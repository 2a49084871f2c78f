//! What is no number is contagious: minima, maxima and all that is made of them.

use libtest_mimic::Failed;
use tenon_compiler::eval::Tensor;
use tenon_compiler::ir::{Bytes, DType};

use crate::float::{ALL, Format};
use crate::run::{Machine, run};

const ROWS: usize = 20;
/// Vectors of every length, and a rest.
const COLUMNS: usize = 37;

/// What is computed of a matrix `%` whose elements lie between -1 and 1, some of them no numbers, and which elements of
/// the result come from an element.
const CASES: [(&str, Reach); 21] = [
    ("max(%) { axis = [1] }", Reach::Row),
    ("min(%) { axis = [1] }", Reach::Row),
    ("max(%) { axis = [0] }", Reach::Column),
    ("min(%) { axis = [0] }", Reach::Column),
    ("max(%)", Reach::All),
    ("min(%)", Reach::All),
    ("sum(%) { axis = [1] }", Reach::Row),
    ("prod(%) { axis = [1] }", Reach::Row),
    ("nn.softmax(%) { axis = -1 }", Reach::WholeRow),
    ("nn.l2_normalize(%) { axis = [1] }", Reach::WholeRow),
    ("nn.l2_normalize(%) { axis = [0] }", Reach::WholeColumn),
    ("nn.relu(%)", Reach::Element),
    ("nn.leaky_relu(%)", Reach::Element),
    ("nn.gelu(%)", Reach::Element),
    ("nn.silu(%)", Reach::Element),
    ("clip(%) { max = 0.5, min = -0.5 }", Reach::Element),
    ("clip(%) { max = 0.5 }", Reach::Element),
    (
        "maximum(%, broadcast_to(max(%) { axis = [0], keepdims = true }, shape(20, 37)))",
        Reach::WholeColumn,
    ),
    ("minimum(nn.relu(%), %)", Reach::Element),
    ("maximum(#, %)", Reach::Element),
    ("minimum(%, #)", Reach::Element),
];

#[derive(Clone, Copy)]
enum Reach {
    Element,
    /// One result for each row, or for each column, or one.
    Row,
    Column,
    All,
    /// All elements of the row, or of the column.
    WholeRow,
    WholeColumn,
}

impl Reach {
    /// Whether the results are no numbers, for elements that are none.
    fn of(self, is_nan: &[bool]) -> Vec<bool> {
        let row = |row: usize| is_nan[row * COLUMNS..][..COLUMNS].contains(&true);
        let column = |column: usize| (0..ROWS).any(|row| is_nan[row * COLUMNS + column]);
        let each = 0..ROWS * COLUMNS;
        match self {
            Reach::Element => is_nan.to_vec(),
            Reach::Row => (0..ROWS).map(row).collect(),
            Reach::Column => (0..COLUMNS).map(column).collect(),
            Reach::All => vec![is_nan.contains(&true)],
            Reach::WholeRow => each.map(|at| row(at / COLUMNS)).collect(),
            Reach::WholeColumn => each.map(|at| column(at % COLUMNS)).collect(),
        }
    }
}

pub(crate) fn check(machine: Machine) -> Result<(), Failed> {
    let count = ROWS * COLUMNS;
    // Half of the rows have one, at every place of a vector; half of the columns have none.
    let is_nan: Vec<bool> = (0..count)
        .map(|at| (at / COLUMNS).is_multiple_of(2) && at % COLUMNS == (at / COLUMNS * 4) % COLUMNS)
        .collect();
    let number = |at: usize| ((at * 7919 + 3) % 1000) as f64 / 500.0 - 1.0;
    let (mut params, mut inputs, mut calls, mut expected) = (vec![], vec![], vec![], vec![]);
    for format in ALL {
        let dtype = match format.bytes {
            8 => DType::F64,
            4 => DType::F32,
            _ if format.name == "f16" => DType::F16,
            _ => DType::BF16,
        };
        let x: Vec<f64> =
            (0..count).map(|at| if is_nan[at] { f64::NAN } else { number(at) }).collect();
        let y: Vec<f64> = (0..count).map(|at| number(at + 17)).collect();
        for (name, elements) in [("x", &x), ("y", &y)] {
            params.push(format!("%{name}_{dtype}: {dtype}[{ROWS}, {COLUMNS}]"));
            inputs.push(tensor(format, dtype, &[ROWS, COLUMNS], elements));
        }
        for (case, reach) in CASES {
            let call =
                case.replace('%', &format!("%x_{dtype}")).replace('#', &format!("%y_{dtype}"));
            calls.push(call);
            expected.push((format!("{case} of {dtype}"), format, reach.of(&is_nan)));
        }
        // The first that is no number is the largest, and the smallest.
        for op in ["argmax", "argmin"] {
            calls.push(format!("{op}(%x_{dtype}) {{ axis = 1 }}"));
        }
        for pool in ["nn.max_pool2d", "nn.avg_pool2d"] {
            let attrs = "{ pool_size = [1, 37], padding = [0, 0, 0, 0] }";
            calls.push(format!(
                "{pool}(reshape(%x_{dtype}, shape(1, 1, {ROWS}, {COLUMNS}))) {attrs}"
            ));
            expected.push((format!("{pool} of {dtype}"), format, Reach::Row.of(&is_nan)));
            // Channels side by side: a vector of columns.
            let attrs = "{ layout = \"NHWC\", pool_size = [20, 1] }";
            calls.push(format!(
                "{pool}(reshape(%x_{dtype}, shape(1, {ROWS}, 1, {COLUMNS}))) {attrs}"
            ));
            expected.push((
                format!("{pool} of {dtype} by channels"),
                format,
                Reach::Column.of(&is_nan),
            ));
        }
        let call =
            format!("nn.global_max_pool2d(reshape(%x_{dtype}, shape(1, {ROWS}, 1, {COLUMNS})))");
        calls.push(call);
        expected.push((format!("nn.global_max_pool2d of {dtype}"), format, Reach::Row.of(&is_nan)));
    }
    let lines: String =
        calls.iter().enumerate().map(|(at, call)| format!("  %r{at} = {call}\n")).collect();
    let names: Vec<String> = (0..calls.len()).map(|at| format!("%r{at}")).collect();
    let text =
        format!("fn @main({}) {{\n{lines}  ret ({})\n}}\n", params.join(", "), names.join(", "));
    let found = run(&text, &inputs, machine)?;
    let mut expected = expected.into_iter();
    for (call, found) in calls.iter().zip(&found) {
        if call.starts_with("arg") {
            check_places(call, found, &is_nan)?;
            continue;
        }
        let (what, format, expected) = expected.next().expect("there is one for each other call");
        let found: Vec<bool> =
            format.bits(found.bytes()).into_iter().map(|bits| format.is_nan(bits)).collect();
        if let Some(at) = (0..expected.len()).find(|&at| found[at] != expected[at]) {
            let verb = if expected[at] { "is lost" } else { "is made" };
            return Err(format!("{what}: no number {verb} in element {at}").into());
        }
    }
    Ok(())
}

fn check_places(call: &str, found: &Tensor, is_nan: &[bool]) -> Result<(), Failed> {
    let places = found.elements::<i64>();
    for (row, &place) in places.iter().enumerate() {
        let first = is_nan[row * COLUMNS..][..COLUMNS].iter().position(|&is_nan| is_nan);
        if first.is_some_and(|first| first as i64 != place) {
            return Err(format!("{call}: the first of row {row} is {first:?}, not {place}").into());
        }
    }
    Ok(())
}

fn tensor(format: Format, dtype: DType, shape: &[usize], elements: &[f64]) -> Tensor {
    let bytes =
        elements.iter().flat_map(|&x| format.nearest(x).to_le_bytes()[..format.bytes].to_vec());
    let tensor = Tensor::new(dtype, shape.to_vec(), Bytes::new(bytes.collect::<Vec<u8>>()));
    tensor.expect("as many bytes as the shape says")
}
