//! A million nodes in a row and a million within each other, on a thread with a small stack: everything
//! that walks over a program must do so without recursion, and in linear time.

#[path = "support/operators.rs"]
mod operators;

use std::fmt::Write;
use std::sync::Arc;

use tenon_compiler::check::{PER_RULE, check, rules};
use tenon_compiler::diagnostics::Source;
use tenon_compiler::infer::infer_module;
use tenon_compiler::ir::{Attrs, Build, Context, DType, Function, Kind, Module, Transaction};
use tenon_compiler::text::{
    NoWeights, TextForm, WeightsPolicy, parse_module, print_module, print_type, write_module,
};

/// Unoptimized code is given less to do.
const MANY: usize = if cfg!(debug_assertions) { 100_000 } else { 1_000_000 };
const SMALL_STACK: usize = 512 << 10;

fn on_a_small_stack(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(SMALL_STACK).spawn(test).unwrap();
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

fn parse(text: &str) -> Module {
    let source = Source::new("deep", text);
    match parse_module(&tenon_compiler::testing::cx(), &source, &mut NoWeights) {
        Ok(module) => module,
        Err(errors) => panic!("{}", &errors.to_string()[..1000]),
    }
}

fn print(module: &Module) -> String {
    print_module(module, &mut WeightsPolicy::inline())
}

/// Parses, prints, parses again, compares, hashes, checks, edits, drops.
fn assert_lives(text: &str) {
    let module = parse(text);
    let printed = print(&module);
    let again = parse(&printed);
    assert!(module.is_structurally_equal(&again));
    assert_eq!(module.structural_hash(), again.structural_hash());
    assert!(print(&again) == printed);
    // Not all of it has types, which the checker says a few times.
    assert!(check(&module).len() <= rules().len() * PER_RULE);
    let edited = without_first(module.iter().next().unwrap().1);
    assert!(!edited.is_structurally_equal(again.iter().next().unwrap().1));
}

/// The function with the operand of its first call, or the first of its conditions, in the place of that.
fn without_first(function: &Arc<Function>) -> Arc<Function> {
    let body = function.view();
    let first = body.post_order().find(|&expr| {
        matches!(body.kind(expr), Kind::CALL | Kind::IF | Kind::BINARY | Kind::STORE)
    });
    let first = first.unwrap();
    let mut tx = Transaction::edit(function);
    match body.kind(first) {
        Kind::STORE => {
            let empty = tx.push(tenon_compiler::ir::NodeSpec::new(Kind::SEQ), &[]);
            tx.replace(first, empty);
        }
        Kind::IF => tx.replace(first, body.operands(first).at(0)),
        _ => tx.replace(first, body.operands(first).at(1)),
    }
    tx.finish().unwrap()
}

#[test]
fn a_million_bindings() {
    on_a_small_stack(|| {
        let mut text = String::from("fn @main(%x0: f32[4]) -> f32[4] {\n");
        for i in 0..MANY {
            writeln!(text, "  %x{}: f32[4] = test.double(%x{i})", i + 1).unwrap();
        }
        writeln!(text, "  ret %x{MANY}\n}}").unwrap();
        let module = parse(&text);
        assert!(print(&module) == text);
        assert!(check(&infer_module(&module).unwrap()).is_empty());
        assert_lives(&text);
    });
}

#[test]
fn a_million_calls_within_each_other() {
    on_a_small_stack(|| {
        let calls = "exp(".repeat(MANY);
        let ends = ")".repeat(MANY);
        assert_lives(&format!("fn @main(%x: f32[4]) {{ ret {calls}%x{ends} }}"));
    });
}

#[test]
fn a_million_nested_calls_in_block_form() {
    on_a_small_stack(|| {
        let calls = "test.total(%x, ".repeat(MANY);
        let ends = ")".repeat(MANY);
        assert_lives(&format!("fn @main(%x: f32[4]) {{ %y = {calls}%x{ends} ret %y }}"));
    });
}

#[test]
fn many_branches_functions_and_blocks_within_each_other() {
    on_a_small_stack(|| {
        let count = MANY / 4;
        let opens = "if %c { ".repeat(count);
        let ends = "} else { ret %x } ".repeat(count);
        let inner = opens.replace("if", "ret if");
        assert_lives(&format!("fn @main(%x, %c) {{ {inner} ret %x {ends} }}"));
        let functions: String = (0..count).map(|i| format!("ret f(fn (%y{i}) {{ ")).collect();
        let ends = "}) ".repeat(count);
        assert_lives(&format!("fn @main(%x) {{ {functions} ret %x {ends} }}"));
        let blocks: String = (0..count).map(|i| format!("%y{i} = f({{ ")).collect();
        let ends: String = (0..count).rev().map(|i| format!("}}) ret %y{i} ")).collect();
        assert_lives(&format!("fn @main(%x) {{ {blocks} ret %x {ends} }}"));
    });
}

#[test]
fn a_value_shared_by_many_depths() {
    on_a_small_stack(|| {
        let count = MANY / 10;
        let opens: String =
            (0..count).map(|i| format!("^{i} = test.double(%x) ret if ^{i} {{ ")).collect();
        let ends: String = (0..count)
            .rev()
            .map(|i| format!("}} else {{ ret test.total(^{i}, ^{}) }} ", i / 2))
            .collect();
        assert_lives(&format!("fn @main(%x) {{ {opens} ret %x {ends} }}"));
    });
}

#[test]
fn a_million_tuples_and_items() {
    on_a_small_stack(|| {
        let opens = "(".repeat(MANY);
        let ends = ", %x)".repeat(MANY);
        assert_lives(&format!("fn @main(%x) {{ ret f({opens}%x{ends}) }}"));
        let items = ".0".repeat(MANY);
        assert_lives(&format!("fn @main(%x) {{ ret f(%x{items}) }}"));
    });
}

#[test]
fn deep_tensor_programs() {
    on_a_small_stack(|| {
        let count = MANY / 4;
        let loops: String = (0..count).map(|i| format!("for %i{i} in 0..4 {{ ")).collect();
        let ends = "} ".repeat(count);
        assert_lives(&format!("prim @p(out %C: f32[4]) {{ {loops} %C[0] = 1.0 {ends} }}"));
        let chain = "if %n > 0 { %C[0] = 1.0 } else ".repeat(count);
        assert_lives(&format!("prim @p(%n: i64, out %C: f32[4]) {{ {chain} {{ }} }}"));
        let blocks: String = (0..count)
            .map(|i| format!("block \"b\" (%v{i}: spatial = 1) init {{ }} {{ %C[0] = 1.0 "))
            .collect();
        assert_lives(&format!("prim @p(out %C: f32[4]) {{ {blocks} {ends} }}"));
    });
}

#[test]
fn deep_scalar_expressions() {
    on_a_small_stack(|| {
        let program =
            |value: &str| format!("prim @p(%n: i64, out %C: i64[4]) {{ %C[0] = {value} }}");
        assert_lives(&program(&format!("%n{}", " + %n".repeat(MANY))));
        assert_lives(&program(&format!("{}%n{}", "(%n - ".repeat(MANY), ")".repeat(MANY))));
        assert_lives(&program(&format!("{}%n{}", "f(%n, ".repeat(MANY), ")".repeat(MANY))));
        assert_lives(&program(&format!("{}%n{} + %n", "%C[".repeat(MANY), "]".repeat(MANY))));
        // Each is the square of the one before.
        let squares: String = (1..10_000).map(|i| format!("^{i} = ^{0} * ^{0} ", i - 1)).collect();
        assert_lives(&format!(
            "prim @p(%n: i64, out %C: i64[4]) {{ ^0 = %n + 1 {squares} %C[0] = ^9999 }}"
        ));
    });
}

/// A sum of many symbols is made at once, and a product of many sums is not multiplied out.
#[test]
fn dimensions_of_many_parts() {
    on_a_small_stack(|| {
        let all = |count: usize, part: &dyn Fn(usize) -> String, sign: &str| {
            (0..count).map(part).collect::<Vec<_>>().join(sign)
        };
        let sum = all(MANY / 10, &|i| format!("s{i}"), " + ");
        let power = all(MANY / 10, &|_| "n".to_owned(), "*");
        let shifted = all(300, &|i| format!("(n + {i})"), "*");
        let sums = all(24, &|i| format!("(a{i} + b{i})"), "*");
        let dims =
            [&sum, &power, &shifted, &sums, &format!("m*({sum})"), &format!("{sums} - {sums}")];
        for dim in dims {
            assert_lives(&format!(
                "fn @main(%x: f32[{dim}]) {{\n  %y = test.double(%x)\n  ret %y\n}}"
            ));
        }
    });
}

/// Each dimension is the one before times itself, so that written out they would fill any memory.
#[test]
fn dimensions_that_double() {
    let cx = tenon_compiler::testing::cx();
    let start = [cx.dim_symbol("n"), cx.dim_add(cx.dim_symbol("n"), cx.dim(1))];
    for mut dim in start {
        for _ in 0..60 {
            let before = dim;
            dim = cx.dim_mul(dim, dim);
            assert_eq!(cx.dim_sub(dim, dim), cx.dim(0));
            assert_eq!(cx.dim_add(dim, dim), cx.dim_mul(cx.dim(2), dim));
            assert_eq!(cx.dim_product(&[before, before]), dim);
        }
        assert!(cx.terms().dim_text(dim).len() < 2000);
    }
}

#[test]
fn deep_types_are_refused_and_printed() {
    on_a_small_stack(|| {
        use tenon_compiler::ir::Context;
        let text = format!("fn @main(%x: {}) {{ ret %x }}", "(".repeat(MANY));
        let errors = parse_module(
            &tenon_compiler::testing::cx(),
            &Source::new("deep", text),
            &mut NoWeights,
        );
        assert!(errors.unwrap_err().0[0].message.contains("nest at most"));
        let cx = tenon_compiler::testing::cx();
        let mut ty = cx.tuple_type(&[]);
        for _ in 0..MANY {
            ty = cx.tuple_type(&[ty]);
        }
        assert_eq!(tenon_compiler::text::print_type(&cx, ty).len(), 3 * MANY + 2);
    });
}

#[test]
fn deep_nonsense_is_an_error() {
    on_a_small_stack(|| {
        for open in
            ["(", "{ %a = ", "if ", "fn () { ", "f(", "{", "[", "%a = {", "unknown<99, 0, 0, 0>("]
        {
            let text = format!("fn @main(%x) {{ ret {}", open.repeat(MANY / 4));
            let result = parse_module(
                &tenon_compiler::testing::cx(),
                &Source::new("deep", text),
                &mut NoWeights,
            );
            assert!(!result.unwrap_err().to_string().is_empty());
            let text = format!("prim @main(%x: i64) {{ {}", open.repeat(MANY / 4));
            let result = parse_module(
                &tenon_compiler::testing::cx(),
                &Source::new("deep", text),
                &mut NoWeights,
            );
            assert!(!result.unwrap_err().to_string().is_empty());
        }
    });
}

/// Each level is one term, and twice as long as the one below it.
#[test]
fn shared_parts_do_not_make_texts_without_end() {
    let cx = tenon_compiler::testing::cx();
    let mut ty = cx.static_tensor_type(DType::F32, &[4]);
    let mut dim = cx.dim_symbol("n");
    for _ in 0..60 {
        ty = cx.tuple_type(&[ty, ty]);
        let (half, rest) = (cx.dim_floor_div(dim, cx.dim(2)), cx.dim_floor_mod(dim, cx.dim(3)));
        dim = cx.dim_add(half, rest);
    }
    for text in [cx.terms().type_text(ty), cx.terms().dim_text(dim)] {
        assert!(text.len() < 1010 && text.ends_with('…'), "{text}");
    }
    assert_eq!(print_type(&cx, ty), "...");

    let mut builder = Transaction::new(cx.clone());
    let param = builder.var("x", Some(ty));
    let root = builder.function(&[param], param, None, Attrs::NONE);
    builder.set_root(root);
    let mut module = Module::new(cx.clone());
    module.insert(cx.symbol("main"), builder.finish().unwrap());
    let mut policy = WeightsPolicy::inline();
    assert_eq!(print_module(&module, &mut policy), "fn @main(%x: ...) {\n  ret %x\n}\n");
    assert!(policy.has_elided_terms());
    let folder = tempfile::tempdir().unwrap();
    let error = write_module(&module, &folder.path().join("m.ir"), TextForm::new(8)).unwrap_err();
    assert!(error.to_string().ends_with("too long to be written as text"), "{error}");
}
