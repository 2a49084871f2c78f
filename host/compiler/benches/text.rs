//! Text throughput, both ways: `cargo bench -p tenon-compiler --bench text`.

use std::fmt::Write;
use std::sync::Arc;

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use tenon_compiler::diagnostics::Source;
use tenon_compiler::ir::{Cx, Module};
use tenon_compiler::text::{NoWeights, WeightsPolicy, parse_module, print_module};

fn main() {
    tenon_compiler::runtime::memory::keep_freed_memory();
    divan::main();
}

/// What a text is made of.
#[derive(Clone, Copy, Debug)]
enum Content {
    Bindings,
    Nested,
    Program,
    Constants,
}

const CONTENTS: &[Content] =
    &[Content::Bindings, Content::Nested, Content::Program, Content::Constants];

fn text(content: Content) -> String {
    let mut text = String::new();
    let ty = "f32[1, 64, 56, 56]";
    let count = 200_000;
    match content {
        Content::Bindings => {
            writeln!(text, "fn @main(%x0: {ty}) -> {ty} {{").unwrap();
            for i in 0..count {
                let value = match i % 3 {
                    0 => format!("nn.conv2d(%x{i}, %x0) {{ padding = [1, 1], strides = [2, 2] }}"),
                    1 => format!("nn.relu(%x{i})"),
                    _ => format!("add(%x{i}, const(f32[], 1.5))"),
                };
                writeln!(text, "  %x{}: {ty} = {value}", i + 1).unwrap();
            }
            writeln!(text, "  ret %x{count}\n}}").unwrap();
        }
        Content::Nested => {
            writeln!(text, "fn @main(%x: {ty}) -> {ty} {{\n  ^0: {ty} = exp(%x)").unwrap();
            for i in 1..count {
                writeln!(text, "  ^{i}: {ty} = add(^{}, %x)", i - 1).unwrap();
            }
            writeln!(text, "  ret ^{}\n}}", count - 1).unwrap();
        }
        Content::Program => {
            text.push_str("prim @main(%A: f32[64, 64], out %C: f32[64, 64]) {\n");
            for i in 0..count / 5 {
                writeln!(text, "  for %i{i} in 0..64 parallel {{").unwrap();
                writeln!(text, "    let %t{i}: i64 = %i{i} * 2 + 1").unwrap();
                writeln!(text, "    if %t{i} < 63 {{").unwrap();
                writeln!(
                    text,
                    "      %C[%i{i}, %t{i}] = max(%A[%i{i}, %t{i} floordiv 2] * 2.5 + exp(%A[0, %i{i}]), 0.0)"
                )
                .unwrap();
                text.push_str("    }\n  }\n");
            }
            text.push_str("}\n");
        }
        Content::Constants => {
            text.push_str("fn @main() {\n  ^0 = const(f32[1000000], [");
            for i in 0..1_000_000u32 {
                let bits = 0x3f00_0000 | (i.wrapping_mul(2_654_435_761) >> 9);
                write!(text, "{}{:?}", if i == 0 { "" } else { ", " }, f32::from_bits(bits))
                    .unwrap();
            }
            text.push_str("])\n  ret ^0\n}\n");
        }
    }
    text
}

fn parse(source: &Arc<Source>) -> Module {
    parse_module(&Cx::new(), source, &mut NoWeights).unwrap()
}

#[divan::bench(args = CONTENTS, sample_count = 10)]
fn parses(bencher: Bencher<'_, '_>, content: Content) {
    let source = Source::new("bench", text(content));
    let bytes = BytesCount::new(source.text.len());
    bencher.counter(bytes).bench(|| parse(black_box(&source)));
}

#[divan::bench(args = CONTENTS, sample_count = 10)]
fn prints(bencher: Bencher<'_, '_>, content: Content) {
    let source = Source::new("bench", text(content));
    let module = parse(&source);
    let printed = print_module(&module, &mut WeightsPolicy::inline());
    assert!(printed == source.text, "the text is what the printer writes");
    let bytes = BytesCount::new(printed.len());
    bencher.counter(bytes).bench(|| print_module(black_box(&module), &mut WeightsPolicy::inline()));
}

#[divan::bench(args = CONTENTS, sample_count = 10)]
fn compares(bencher: Bencher<'_, '_>, content: Content) {
    let source = Source::new("bench", text(content));
    let (a, b) = (parse(&source), parse(&source));
    let bytes = BytesCount::new(source.text.len());
    bencher.counter(bytes).bench(|| black_box(&a).is_structurally_equal(black_box(&b)));
}

#[divan::bench(args = CONTENTS, sample_count = 10)]
fn hashes(bencher: Bencher<'_, '_>, content: Content) {
    let source = Source::new("bench", text(content));
    let module = parse(&source);
    let bytes = BytesCount::new(source.text.len());
    bencher.counter(bytes).bench(|| black_box(&module).structural_hash());
}
