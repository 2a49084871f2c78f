//! The main loops of what takes most time in networks, counted in the assembly for three processors, none of which has to be at hand:
//! sums that leave registers, elements that are multiplied one by one, loops that got another shape show in a table.
//!
//! `TENON_BLESS=1 cargo test --release --test main_loops` writes the table anew. A row is a loop with products in it that holds no
//! other: how many vectors it multiplies and adds in a step, how many instructions that takes, how many of these go to the stack.

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "models/program.rs"]
mod program;

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use program::tenon;

/// The type of `%x`, and what is computed of it.
const PROGRAMS: [(&str, &str, &str); 11] = [
    (
        "a convolution of one tap",
        "f32[1, 64, 56, 56]",
        "nn.conv2d(%x, const(f32[256, 64, 1, 1], 0.5))",
    ),
    (
        "one of nine taps and two strides",
        "f32[1, 64, 56, 56]",
        "nn.conv2d(%x, const(f32[128, 64, 3, 3], 0.5)) { padding = [1, 1, 1, 1], strides = [2, 2] }",
    ),
    (
        "one of nine taps",
        "f32[1, 64, 56, 56]",
        "nn.conv2d(%x, const(f32[64, 64, 3, 3], 0.5)) { padding = [1, 1, 1, 1] }",
    ),
    (
        "one of an image",
        "f32[1, 3, 224, 224]",
        "nn.conv2d(%x, const(f32[64, 3, 7, 7], 0.5)) { padding = [3, 3, 3, 3], strides = [2, 2] }",
    ),
    (
        "one with a filter for each channel",
        "f32[1, 96, 56, 56]",
        "nn.conv2d(%x, const(f32[96, 1, 3, 3], 0.5)) { groups = 96, padding = [1, 1, 1, 1] }",
    ),
    ("a product", "f32[128, 768]", "matmul(%x, const(f32[768, 3072], 0.5))"),
    ("one of a prime number of rows", "f32[197, 768]", "matmul(%x, const(f32[768, 768], 0.5))"),
    ("one of which both are computed", "f32[12, 64, 64]", "matmul(%x, %x)"),
    ("one of a single row", "f32[1, 768]", "matmul(%x, const(f32[768, 3072], 0.5))"),
    (
        "one of a single row and weights of 8 bits",
        "f32[1, 768]",
        "nn.quantized_dense(%x, const(i8[48, 768, 64], 3), const(f32[1, 3072], 0.5)) { columns = 3072 }",
    ),
    (
        "one of a single row and weights of 4 bits",
        "f32[1, 768]",
        "nn.quantized_dense(%x, const(i8[48, 384, 64], 3), const(f32[24, 3072], 0.5)) { columns = 3072, bits = 4 }",
    ),
];

/// The same, for processors that multiply bytes.
const OF_BYTES: [(&str, &str, &str); 3] = [
    (
        "one of nine taps on bytes",
        "u8[1, 64, 56, 56]",
        "nn.conv2d(cast(%x) { dtype = \"i32\" }, const(i32[64, 64, 3, 3], 3)) { padding = [1, 1, 1, 1] }",
    ),
    (
        "one of a tap on bytes",
        "u8[1, 64, 28, 28]",
        "nn.conv2d(cast(%x) { dtype = \"i32\" }, const(i32[48, 64, 1, 1], 3))",
    ),
    (
        "one of few channels of bytes",
        "u8[1, 24, 28, 28]",
        "nn.conv2d(cast(%x) { dtype = \"i32\" }, const(i32[24, 24, 3, 3], 3)) { padding = [1, 1, 1, 1] }",
    ),
];

/// Processors with 16 registers of 8 elements, 32 of 16, and 32 of 4.
const TARGETS: [&str; 3] =
    ["x86-64-v3,threads=1", "znver4,threads=1", "aarch64-linux-gnu,cpu=neoverse-n1,threads=1"];

/// Where the table stands.
const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/main_loops.txt");

#[test]
fn main_loops_are_what_they_were() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut table = String::from(
        "# multiply-adds of vectors in a step; instructions of it; those that go to the stack\n",
    );
    for target in TARGETS {
        table.push_str(&format!("\n{target}\n"));
        let of_bytes = OF_BYTES.iter().filter(|_| target.starts_with("znver4"));
        for &(name, ty, body) in PROGRAMS.iter().chain(of_bytes) {
            let loops = main_loops(&assembly(folder.path(), target, ty, body));
            assert!(!loops.is_empty(), "{name} for {target} has a main loop");
            for Loop { products, scalar, instructions, stack } in loops {
                assert_eq!(scalar, 0, "{name} for {target} multiplies no element by itself");
                table.push_str(&format!("{name:36}{products:4}{instructions:5}{stack:4}\n"));
            }
        }
    }
    if std::env::var_os("TENON_BLESS").is_some() {
        fs::write(TABLE, &table).expect("it can be written");
    }
    let expected = fs::read_to_string(TABLE).unwrap_or_default();
    assert_eq!(table, expected, "TENON_BLESS=1 writes {TABLE} anew");
}

/// The assembly of a program.
fn assembly(folder: &Path, target: &str, ty: &str, body: &str) -> String {
    let (model, out) = (folder.join("model.ir"), folder.join("model.s"));
    let text = format!("fn @main(%x: {ty}) {{\n  %y = {body}\n  ret %y\n}}\n");
    fs::write(&model, text).expect("it can be written");
    let mut compile = tenon();
    compile.arg("compile").arg(&model).arg("-o").arg(&out);
    let said = compile.args(["--emit", "asm", "--target", target]).output().expect("it was built");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    fs::read_to_string(&out).expect("it was written")
}

/// A loop that holds no other.
struct Loop {
    /// Multiply-adds of vectors.
    products: usize,
    /// Those of single elements.
    scalar: usize,
    instructions: usize,
    /// Instructions that read or write the stack.
    stack: usize,
}

/// The loops with at least half as many products as the one that has most.
fn main_loops(text: &str) -> Vec<Loop> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let loops: Vec<Loop> =
        innermost(&lines).into_iter().map(|[first, last]| count(&lines[first..=last])).collect();
    let most = loops.iter().map(|each| each.products).max().unwrap_or(0).max(2);
    loops.into_iter().filter(|each| 2 * each.products >= most).collect()
}

/// First and last lines of loops that hold no other: from a label to the last jump back to it.
fn innermost(lines: &[&str]) -> Vec<[usize; 2]> {
    let mut labels: HashMap<&str, usize> = HashMap::new();
    let mut loops: Vec<[usize; 2]> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if let Some((label, _)) = line.split_once(':')
            && label.starts_with(".L")
        {
            labels.insert(label, at);
            continue;
        }
        let is_jump = line.starts_with(['j', 'b', 'c', 't']);
        let place = line.split([' ', '\t', ',']).next_back().filter(|_| is_jump);
        if let Some(&start) = place.and_then(|label| labels.get(label)) {
            loops.push([start, at]);
        }
    }
    let holds = |[a, b]: [usize; 2], [c, d]: [usize; 2]| a <= c && d <= b && [a, b] != [c, d];
    let all = loops.clone();
    loops.retain(|&each| !all.iter().any(|&other| holds(each, other)));
    loops
}

fn count(lines: &[&str]) -> Loop {
    let mut found = Loop { products: 0, scalar: 0, instructions: 0, stack: 0 };
    for line in lines {
        let name = line.split_whitespace().next().unwrap_or_default();
        if name.is_empty() || name.ends_with(':') || name.starts_with(['.', '#', '/']) {
            continue;
        }
        found.instructions += 1;
        found.stack += usize::from(line.contains("%rsp") || line.contains("[sp"));
        let is_product = ["vfmadd", "vfnmadd", "vpdpbusd", "fmla", "fmadd"]
            .iter()
            .any(|it| name.starts_with(it));
        let is_scalar = name.ends_with("ss") || name == "fmadd";
        found.products += usize::from(is_product && !is_scalar);
        found.scalar += usize::from(is_product && is_scalar);
    }
    found
}
