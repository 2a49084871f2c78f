//! §2.7: what the error of a pass says.

use tenon_compiler::ir::Expr;
use tenon_compiler::passes::{Pass, PassContext};
use tenon_compiler::registry::PassFailure;

use crate::support::{SMALL, call, calls, module};

/// Fails at a node.
fn complains(at: impl Fn(Expr) -> Expr + Send + Sync + 'static) -> Pass {
    Pass::function("acme.Complains", move |function, _, _| {
        let (call, _) = calls(function, "test.double")[0];
        Err(PassFailure { node: Some(at(call)), ..PassFailure::error("the shapes do not match") })
    })
}

fn error(pass: &Pass) -> String {
    let error = call(pass, &module(SMALL), &mut PassContext::default()).unwrap_err();
    error.to_diagnostic().to_string()
}

const MESSAGE: &str = "error: pass `acme.Complains` in function @main: the shapes do not match";

#[test]
fn c111_the_message_is_kept_with_the_pass_and_the_node_in_the_text() {
    let text = error(&complains(|call| call));
    assert!(text.starts_with(MESSAGE), "{text}");
    let line = |wanted: &str| text.lines().any(|line| line.contains(wanted));
    assert!(
        line("@main before acme.Complains:2:") && line("test.double(%x)") && line("^^^"),
        "{text}"
    );
}

#[test]
fn c112_the_place_is_told_once_however_deep_the_pass_stands() {
    let mut nested = complains(|call| call);
    for _ in 0..5 {
        nested = Pass::sequential([nested]);
    }
    let text = error(&nested);
    assert_eq!(text.matches("before acme.Complains").count(), 1, "{text}");
    assert_eq!(text.matches("the shapes do not match").count(), 1, "{text}");
}

#[test]
fn c113_a_node_that_is_not_there_does_not_hide_the_error() {
    assert_eq!(error(&complains(|_| Expr(1_000_000))), MESSAGE);
}

#[test]
fn a_panic_is_an_error_with_its_place() {
    let text = error(&Pass::module("acme.Panics", |module, _| {
        assert!(module.is_empty(), "only empty modules");
        Ok(module.clone())
    }));
    assert!(text.starts_with("error: pass `acme.Panics`: panic at "), "{text}");
    assert!(text.contains("errors.rs:") && text.contains("only empty modules"), "{text}");
}
