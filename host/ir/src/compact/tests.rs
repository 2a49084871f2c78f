use std::sync::Arc;

use tenon_plugin_api::ir::{Attrs, Build, Context, DType, Expr, Kind, NodeSource, NodeSpec, View};

use super::super::{Cx, Function, Transaction};

/// `%a = test.double(%x)`, from `first`, `%b = test.square(%a)`, from `second`.
fn chain(cx: &Cx) -> Arc<Function> {
    let ty = cx.static_tensor_type(DType::F32, &[2]);
    let mut tx = Transaction::new(cx.clone());
    let x = tx.var("x", Some(ty));
    tx.set_source(NodeSource::named(cx, "first", ""));
    let exp = tx.call_op("test.double", &[x], Attrs::NONE);
    let a = tx.var("a", Some(ty));
    tx.set_source(NodeSource::named(cx, "second", ""));
    let log = tx.call_op("test.square", &[a], Attrs::NONE);
    let b = tx.var("b", Some(ty));
    tx.set_source(NodeSource::NONE);
    let bindings = tx.let_blocks(&[(true, vec![(a, exp), (b, log)])], b);
    let root = tx.function(&[x], bindings, Some(ty), Attrs::NONE);
    tx.set_root(root);
    tx.publish().expect("a function")
}

fn call_of(function: &Function, op: &str) -> Expr {
    let body = function.view();
    let is_call = |&expr: &Expr| match body.view(expr) {
        View::Call { callee, .. } => body.op_name(callee) == Some(op),
        _ => false,
    };
    body.post_order().find(is_call).expect("there is such a call")
}

#[track_caller]
fn assert_source(function: &Function, op: &str, expected: &str) {
    let source = function.view().source(call_of(function, op));
    assert_eq!(function.cx().source_text(source), expected);
}

#[test]
fn what_replaces_and_what_that_reads_has_the_source_of_what_was_replaced() {
    let base = chain(&Cx::new());
    let mut tx = Transaction::edit(&base);
    let a = tx.body().operands(call_of(&base, "test.square")).at(1);
    let inner = tx.call_op("test.distance", &[a], Attrs::NONE);
    let outer = tx.call_op("test.triple", &[inner], Attrs::NONE);
    tx.replace(call_of(&base, "test.square"), outer);
    let edited = tx.publish().unwrap();
    assert_source(&edited, "test.triple", "second");
    assert_source(&edited, "test.distance", "second");
    assert_source(&edited, "test.double", "first");
}

#[test]
fn what_nobody_with_a_source_reads_has_that_of_what_it_reads() {
    let base = chain(&Cx::new());
    let mut tx = Transaction::edit(&base);
    let View::Function { params, body, .. } = base.view().view(base.view().root()) else {
        panic!("a function")
    };
    let View::Let(bindings) = base.view().view(body) else { panic!("a let") };
    let result = tx.call_op("neg", &[bindings.result()], Attrs::NONE);
    let all = bindings.bindings().collect();
    let list = tx.let_blocks(&[(true, all)], result);
    let root = tx.function(&params.to_vec(), list, None, Attrs::NONE);
    tx.set_root(root);
    assert_source(&tx.finish().unwrap(), "neg", "second");
}

#[test]
fn a_value_has_the_source_of_its_variable_and_a_variable_that_of_its_value() {
    let cx = Cx::new();
    let base = chain(&cx);
    let mut tx = Transaction::edit(&base);
    let View::Function { params, body, .. } = base.view().view(base.view().root()) else {
        panic!("a function")
    };
    let View::Let(bindings) = base.view().view(body) else { panic!("a let") };
    let ((a, exp), (b, _)) = (bindings.binding(0), bindings.binding(1));
    let fresh = tx.var("fresh", None);
    let value = tx.call_op("test.distance", &[fresh], Attrs::NONE);
    let list = tx.let_blocks(&[(true, vec![(fresh, exp), (a, fresh), (b, value)])], b);
    let root = tx.function(&params.to_vec(), list, None, Attrs::NONE);
    tx.set_root(root);
    let edited = tx.publish().unwrap();
    assert_source(&edited, "test.distance", "second");
    let body = edited.view();
    let named = |name: &str| {
        let is_named = |&expr: &Expr| matches!(body.view(expr), View::Var { name: own } if body.terms().str(own) == name);
        let var = body.post_order().find(is_named).expect("it is there");
        cx.source_text(body.source(var))
    };
    assert_eq!([named("fresh"), named("a"), named("x")], ["first", "first", ""]);
}

#[test]
fn functions_without_sources_stay_without() {
    let mut tx = Transaction::new(Cx::new());
    let x = tx.var("x", None);
    let exp = tx.call_op("test.double", &[x], Attrs::NONE);
    let root = tx.function(&[x], exp, None, Attrs::NONE);
    tx.set_root(root);
    let function = tx.publish().unwrap();
    let body = function.view();
    assert!(body.post_order().all(|expr| body.source(expr).is_none()));
    assert_eq!(body.kind(body.root()), Kind::FUNCTION);
}

#[test]
fn a_function_with_another_attribute_is_the_same_but_for_its_root() {
    let cx = Cx::new();
    let base = chain(&cx);
    let mut tx = Transaction::edit(&base);
    let (root, body) = (base.view().root(), base.view());
    // Nothing reads it.
    tx.var("unread", None);
    let attrs = cx.attrs(&[("global_symbol", "f".into())]);
    let operands: Vec<Expr> = body.operands_keeping_binders(root).collect();
    let other = tx.push(NodeSpec { attrs, ..body.spec(root) }, &operands);
    tx.set_root(other);
    let edited = tx.publish().unwrap();
    assert_eq!((edited.view().root(), edited.view().attrs(root)), (root, attrs));
    let same = |expr: &Expr| edited.view().raw_node(*expr) == body.raw_node(*expr);
    assert!(body.post_order().filter(|&expr| expr != root).all(|expr| same(&expr)));
    assert_eq!(edited.view().operands(root).to_vec(), operands);
}
