//! §2.1: passes as values.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tenon_compiler::diagnostics::Source;
use tenon_compiler::infer::infer_module;
use tenon_compiler::ir::{Attrs, Build, Context, Transaction};
use tenon_compiler::passes::{Pass, PassContext};
use tenon_compiler::registry::PassFailure;
use tenon_compiler::text::{NoWeights, parse_module};

use crate::support::{
    House, Log, SMALL, call, calls, logs, module, renamed, renames, text, told, twice,
};

const TWO: &str = "fn @f(%x: f32[4]) -> f32[4] {\n  %a = test.double(%x)\n  ret %a\n}\n\
                   fn @g(%x: f32[4]) -> f32[4] {\n  %a = test.double(%x)\n  ret %a\n}\n";

/// A graph function and a tensor program.
const MIXED: &str = "fn @main(%x: f32[4]) -> f32[4] {\n  %a = test.double(%x)\n  ret %a\n}\n\
                     prim @copy(%X: f32[4], out %Y: f32[4]) {\n  for %i in 0..4 {\n    \
                     %Y[%i] = %X[%i]\n  }\n}\n";

fn cx() -> PassContext {
    PassContext::default()
}

#[test]
fn c001_a_pass_has_the_name_and_the_level_that_it_is_given() {
    let pass = logs("mod_func", &Log::default()).opt_level(1);
    assert_eq!((pass.name(), pass.level()), ("mod_func", 1));
}

#[test]
fn c003_a_module_pass_adds_a_function() {
    let pass = Pass::module("adds", |module, _| {
        let mut after = module.clone();
        let name = module.fresh_name("main");
        after.insert(name, module.get_str("main").expect("it is there").clone());
        Ok(after)
    });
    let before = module(SMALL);
    let after = call(&pass, &before, &mut cx()).unwrap();
    assert_eq!((before.len(), after.len()), (1, 2));
    assert!(Arc::ptr_eq(before.get_str("main").unwrap(), after.get_str("main").unwrap()));
}

/// A pass with state of its own.
struct Counting {
    by: usize,
    runs: AtomicUsize,
}

#[test]
fn c004_c011_whatever_can_be_called_is_a_pass() {
    let own = Arc::new(Counting { by: 3, runs: AtomicUsize::new(0) });
    let inner = own.clone();
    let over_modules = Pass::module("count", move |module, _| {
        inner.runs.fetch_add(inner.by, Ordering::Relaxed);
        Ok(module.clone())
    });
    call(&over_modules, &module(SMALL), &mut cx()).unwrap();
    let inner = own.clone();
    let over_functions = Pass::function("count", move |function, _, _| {
        inner.runs.fetch_add(inner.by, Ordering::Relaxed);
        Ok(function.clone())
    });
    call(&over_functions, &module(TWO), &mut cx()).unwrap();
    assert_eq!(own.runs.load(Ordering::Relaxed), 9);
}

#[test]
fn c005_a_function_pass_replaces_every_function() {
    let before = module(TWO);
    let after = call(&renames("p", "test.double", "test.triple"), &before, &mut cx()).unwrap();
    assert_eq!(text(&after), text(&before).replace("test.double", "test.triple"));
    assert_eq!(after.attrs, before.attrs);
}

#[test]
fn c006_a_function_pass_skips_tensor_programs() {
    let log = Log::default();
    let inner = log.clone();
    let pass = Pass::function("p", move |function, _, _| {
        inner.lock().unwrap().push(function.is_prim().to_string());
        Ok(function.clone())
    });
    call(&pass, &module(MIXED), &mut cx()).unwrap();
    assert_eq!(told(&log), ["false"]);
}

#[test]
fn c007_a_function_pass_sees_its_siblings_as_they_were() {
    let pass = Pass::function("p", |function, module, _| {
        let both = ["f", "g"].map(|name| module.get_str(name).expect("it is there"));
        match both.iter().all(|function| calls(function, "test.double").len() == 1) {
            true => renamed(function, "test.double", "test.triple"),
            false => Err(PassFailure::error("a sibling has changed")),
        }
    });
    let after = call(&pass, &module(TWO), &mut cx()).unwrap();
    assert!(!text(&after).contains("test.double"));
}

#[test]
fn c008_the_text_of_a_pass_has_its_name() {
    assert_eq!(logs("acme.P", &Log::default()).opt_level(2).to_string(), "acme.P (level 2)");
}

#[test]
fn c009_a_pass_that_names_no_level_has_level_0() {
    assert_eq!(logs("p", &Log::default()).level(), 0);
    let registry = House::new("").registry();
    assert_eq!(Pass::get(&registry, "test.NoOp").unwrap().level(), 0);
}

#[test]
fn c014_c015_a_module_and_a_context_are_always_given() {
    // An empty module is one, and the context is an argument: its list is obeyed.
    let log = Log::default();
    let sequence = Pass::sequential([logs("a", &log), logs("b", &log)]);
    let mut cx = PassContext { disabled: vec!["a".to_owned()], ..PassContext::default() };
    let after = call(&sequence, &module(""), &mut cx).unwrap();
    assert!(after.is_empty());
    assert_eq!(told(&log), ["b"]);
}

#[test]
fn c016_a_tensor_program_that_is_edited_leaves_the_input_as_it_was() {
    let pass = Pass::prim("p", |function, _, _| {
        let mut edit = Transaction::edit(function);
        let root = edit.body().root();
        let zero = edit.cx().attrs(&[("seen", true.into())]);
        let mut spec = edit.body().spec(root);
        spec.attrs = zero;
        let operands = edit.body().operands(root).to_vec();
        let new = edit.push(spec, &operands);
        edit.set_root(new);
        edit.finish().map_err(|error| PassFailure::error(error.to_string()))
    });
    let before = module(MIXED);
    let printed = text(&before);
    let after = call(&pass, &before, &mut cx()).unwrap();
    assert!(text(&after).contains("seen"));
    assert_eq!(text(&before), printed);
}

#[test]
fn c017_a_module_pass_removes_a_tensor_program() {
    let pass = Pass::module("p", |module, _| {
        let mut after = module.clone();
        after.retain(|_, function| !function.is_prim());
        Ok(after)
    });
    assert_eq!(call(&pass, &module(MIXED), &mut cx()).unwrap().len(), 1);
}

#[test]
fn c018_a_tensor_program_finds_itself_in_the_module() {
    let pass = Pass::prim("p", |function, module, _| {
        let own = module.get_str("copy").expect("it is there");
        assert!(Arc::ptr_eq(own, function));
        Ok(function.clone())
    });
    call(&pass, &module(MIXED), &mut cx()).unwrap();
}

const BLOCK: &str = "fn @main(%x: f32[4]) -> f32[4] {\n  dataflow {\n    %a = test.double(%x)\n    \
                     %b = test.triple(%a)\n    %c = test.triple(%a)\n  }\n  %d = test.ramp(%b)\n  ret %d\n}\n";

#[test]
fn c019_a_pass_over_blocks_keeps_what_is_read_outside() {
    let log = Log::default();
    let inner = log.clone();
    let replace = move |at: usize| {
        let log = inner.clone();
        Pass::blocks("p", move |block, _, _| {
            let bindings = block.bindings().to_vec();
            let outputs = bindings.iter().map(|&(var, _)| block.is_output(var));
            log.lock().unwrap().push(format!("{:?}", outputs.collect::<Vec<_>>()));
            let (var, _) = bindings[at];
            let (first, _) = bindings[0];
            let new = block.build().call_op("test.opposite", &[first], Attrs::NONE);
            block.replace(var, new)
        })
    };
    // `%c` is nobody's, `%b` is read behind the block.
    call(&replace(2), &module(BLOCK), &mut cx()).unwrap();
    assert_eq!(told(&log), ["[false, true, false]"]);
    let error = call(&replace(1), &module(BLOCK), &mut cx()).unwrap_err();
    let message = "a pass over blocks keeps the variables that are read outside of the block";
    assert!(error.to_string().ends_with(message), "{error}");
}

#[test]
fn a_pass_over_blocks_replaces_values_and_nothing_else() {
    let pass = Pass::blocks("p", |block, _, _| {
        let (_, value) = block.bindings()[1];
        let (first, _) = block.bindings()[0];
        let new = block.build().call_op("test.opposite", &[first], Attrs::NONE);
        block.replace(value, new)
    });
    let after = call(&pass, &module(BLOCK), &mut cx()).unwrap();
    assert!(text(&after).contains("%b: f32[4] = test.opposite(%a)"), "{}", text(&after));
    let pass = Pass::blocks("p", |block, _, _| {
        let root = block.build().body().root();
        block.replace(root, root)
    });
    let error = call(&pass, &module(BLOCK), &mut cx()).unwrap_err();
    assert!(
        error.to_string().ends_with("a pass over blocks replaces what a block binds"),
        "{error}"
    );
}

/// Dimensions are declared by parameters and calls; there is no binding that declares one.
#[test]
fn c020_no_binding_of_a_block_declares_a_dimension() {
    let text = "fn @main(%x: f32[4]) -> f32[4] {\n  dataflow {\n    %a: f32[n] = match_cast(%x)\n  \
                }\n  ret %x\n}\n";
    let parsed = parse_module(
        &tenon_compiler::testing::cx(),
        &Source::new("declared", text),
        &mut NoWeights,
    );
    let is_typed = parsed.is_ok_and(|module| infer_module(&module).is_ok());
    assert!(!is_typed);
}

#[test]
fn c021_a_pass_cannot_change_its_input() {
    let before = module(TWO);
    let (hash, printed) = (before.structural_hash(), text(&before));
    let pass = Pass::function("p", |function, _, _| twice(function));
    let after = call(&pass, &before, &mut cx()).unwrap();
    assert_ne!(after.structural_hash(), hash);
    assert_eq!((before.structural_hash(), text(&before)), (hash, printed));
}

#[test]
fn what_is_not_to_be_optimized_is_compiled_as_at_level_0() {
    let skipped = TWO.replacen("-> f32[4] {", "-> f32[4] { SkipOptimization = true } {", 1);
    let before = module(&skipped);
    let optimizes = renames("p", "test.double", "test.triple").opt_level(1);
    let after = text(&call(&optimizes, &before, &mut cx()).unwrap());
    assert_eq!(
        (after.matches("test.double").count(), after.matches("test.triple").count()),
        (1, 1),
        "{after}"
    );
    let lowers = renames("p", "test.double", "test.triple");
    assert!(!text(&call(&lowers, &before, &mut cx()).unwrap()).contains("test.double"));
}

/// `@f` is not to be optimized and calls `@g`.
const ALONE: &str = "fn @f(%x: f32[4]) -> f32[4] { SkipOptimization = true } {\n  %a = @g(%x)\n  ret %a\n}\n\
                     private fn @g(%x: f32[4]) -> f32[4] {\n  %a = test.double(%x)\n  ret %a\n}\n";

/// A pass over modules that makes of each function but `@g` a copy of another one's text.
fn makes(text: &'static str) -> Pass {
    Pass::module("p", move |before, _| {
        let parsed = parse_module(before.cx(), &Source::new("made", text), &mut NoWeights);
        let made = infer_module(&parsed.expect("it parses")).expect("it has types");
        Ok(made)
    })
}

#[test]
fn a_pass_over_modules_leaves_alone_what_is_not_to_be_optimized() {
    let before = module(ALONE);
    let level = |pass: Pass, level: u8| {
        let mut cx = cx();
        let after = call(&pass.opt_level(level), &before, &mut cx).expect("it runs");
        (after, cx.reports.into_iter().map(|(_, report)| report.text).collect::<Vec<_>>())
    };
    // What it called is back as well; what else was done stays.
    let inlines = "fn @f(%x: f32[4]) -> f32[4] {\n  %a = test.double(%x)\n  ret %a\n}\n\
                   fn @new(%x: f32[4]) -> f32[4] {\n  ret %x\n}\n";
    let (after, reports) = level(makes(inlines), 1);
    for name in ["f", "g"] {
        assert!(
            Arc::ptr_eq(before.get_str(name).unwrap(), after.get_str(name).unwrap()),
            "@{name}"
        );
    }
    assert!(after.get_str("new").is_some() && reports.is_empty(), "{reports:?}");
    assert!(level(makes(inlines), 0).0.get_str("g").is_none());
    // What it calls takes other arguments now.
    let widens = "fn @f(%x: f32[4]) -> f32[4] {\n  %a = @g(%x, %x)\n  ret %a\n}\n\
                  fn @g(%x: f32[4], %y: f32[4]) -> f32[4] {\n  %a = test.total(%x, %y)\n  ret %a\n}\n";
    let (after, reports) = level(makes(widens), 1);
    assert!(after.is_identical(&before));
    assert_eq!(
        reports,
        [
            "it changed what @f calls or is called by, and @f is not to be optimized: the module stays as it was"
        ]
    );
}

#[test]
fn the_level_of_a_group_counts_for_what_it_leaves_alone() {
    let skipped = TWO.replacen("-> f32[4] {", "-> f32[4] { SkipOptimization = true } {", 1);
    let left = |pass: &Pass| {
        let after = call(pass, &module(&skipped), &mut cx()).expect("it runs");
        text(&after).matches("test.double").count()
    };
    let group = |kind: fn(Vec<Pass>) -> Pass, level: u8| {
        Pass::sequential([kind(vec![renames("p", "test.double", "test.triple")]).opt_level(level)])
    };
    let sequential: fn(Vec<Pass>) -> Pass = |passes| Pass::sequential(passes);
    let composite: fn(Vec<Pass>) -> Pass = |passes| Pass::composite("c", passes);
    for kind in [sequential, composite] {
        assert_eq!([0, 1].map(|level| left(&group(kind, level))), [0, 1]);
    }
    // A part of a composite has the level of that.
    let part = renames("p", "test.double", "test.triple").opt_level(2);
    assert_eq!(left(&Pass::sequential([Pass::composite("c", [part])])), 0);
}

#[test]
fn results_and_reports_are_in_the_order_of_the_functions() {
    let mut source = String::new();
    for number in 0..200 {
        source.push_str(&SMALL.replace("@main", &format!("@f{number}")));
    }
    let before = module(&source);
    let pass = Pass::function("p", |function, _, run| {
        let place = function.view().raw_node(function.view().root()).span;
        run.report(tenon_compiler::border::ReportLevel::Note, place.to_string());
        renamed(function, "test.double", "test.triple")
    });
    let mut texts = Vec::new();
    for _ in 0..3 {
        let mut cx = cx();
        let after = call(&pass, &before, &mut cx).unwrap();
        let places: Vec<u32> =
            cx.reports.iter().map(|(_, report)| report.text.parse().unwrap()).collect();
        assert!(places.is_sorted() && places.len() == 200);
        texts.push(text(&after));
    }
    assert!(texts.windows(2).all(|pair| pair[0] == pair[1]));
}
