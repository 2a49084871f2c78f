//! A pass from a shared library is found by name, opened once, run, and leaves what it must not touch.

use std::path::Path;
use std::sync::Arc;

use tenon_host::ir::{Attrs, Build, Context, Cx, Function, Module, Transaction, View};
use tenon_host::passes::{PassContext, plan, run};
use tenon_host::registry::Registry;

fn registry() -> Registry {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    Registry::open(&root.join("registry.toml")).expect("the registry is readable")
}

/// `%a = exp(%x); %b = negative(%x); ret %b`
fn with_dead_binding(cx: &Cx) -> Arc<Function> {
    let mut tx = Transaction::new(cx.clone());
    let ty = cx.static_tensor_type(tenon_host::ir::DType::F32, &[4]);
    let x = tx.var("x", Some(ty));
    let (a, b) = (tx.var("a", None), tx.var("b", None));
    let exp = tx.call_op("exp", &[x], Attrs::NONE);
    let negative = tx.call_op("negative", &[x], Attrs::NONE);
    let body = tx.let_blocks(&[(false, vec![(a, exp), (b, negative)])], b);
    let root = tx.function(&[x], body, Some(ty), Attrs::NONE);
    tx.set_root(root);
    tx.finish().expect("a function")
}

#[test]
fn short_name_and_alias_find_the_same_pass() {
    let registry = registry();
    let id = registry.find("DeadCodeElimination").expect("by its short name");
    assert_eq!(registry.find("relay._transform.DeadCodeElimination"), Ok(id));
    assert!(registry.find("DeadCodeEliminatoin").unwrap_err().to_string().contains("did you mean"));
}

#[test]
fn dead_binding_goes_and_a_second_run_changes_nothing() {
    let registry = registry();
    let cx = Cx::new();
    let mut module = Module::new(cx.clone());
    module.insert(cx.symbol("main"), with_dead_binding(&cx));
    let plan = plan(&registry, "DeadCodeElimination").expect("a plan");
    let after = run(&registry, &plan, &module, &mut PassContext::default()).expect("runs");
    let main = after.get_str("main").expect("main");
    let body = main.view();
    let View::Function { body: result, .. } = body.view(body.root()) else { panic!("a function") };
    let View::Let(bindings) = body.view(result) else { panic!("bindings") };
    assert_eq!(bindings.len(), 1);
    let again = run(&registry, &plan, &after, &mut PassContext::default()).expect("runs");
    assert!(again.is_identical(&after));
}
