//! §2.4: contexts and their scopes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use tenon_compiler::passes::{Pass, PassContext, PassError};

use crate::support::{SMALL, Watched, call, fails, module, no_plugins, plan_of};

fn at_level(opt_level: u8) -> PassContext {
    PassContext { opt_level, ..PassContext::default() }
}

fn current() -> u8 {
    PassContext::current().opt_level
}

#[test]
fn c058_a_context_has_level_2_and_nothing_else() {
    for cx in [PassContext::default(), PassContext::current()] {
        assert_eq!(cx.opt_level, 2);
        assert!(cx.disabled.is_empty() && cx.required.is_empty() && cx.instruments.is_empty());
        assert!(cx.settings.get("print.elements").is_none());
    }
}

#[test]
fn c059_the_current_context_is_that_of_the_scope() {
    let scope = at_level(3).scope(|_| Ok(current()));
    assert_eq!((scope.unwrap(), current()), (3, 2));
    // A run is a scope.
    let pass = Pass::module("p", |module, _| {
        assert_eq!(current(), 4);
        Ok(module.clone())
    });
    call(&pass, &module(SMALL), &mut at_level(4)).unwrap();
}

#[test]
fn c060_a_context_within_another_inherits_nothing_unless_it_is_derived() {
    let mut outer = PassContext { disabled: vec!["p".to_owned()], ..at_level(3) };
    let derived = outer.derive();
    assert_eq!((derived.opt_level, derived.disabled), (3, vec!["p".to_owned()]));
    outer
        .scope(|_| {
            let inner = PassContext::default().scope(|_| {
                let cx = PassContext::current();
                Ok((cx.opt_level, cx.disabled.len()))
            });
            assert_eq!(inner?, (2, 0));
            assert_eq!(current(), 3);
            Ok(())
        })
        .unwrap();
}

#[test]
fn c061_c066_a_thread_sees_no_scope_of_another_and_is_sent_a_context() {
    at_level(3)
        .scope(|_| {
            assert_eq!(thread::spawn(current).join().unwrap(), 2);
            let mut sent = PassContext::current();
            let there = thread::spawn(move || sent.scope(|_| Ok(current())).unwrap());
            assert_eq!(there.join().unwrap(), 3);
            Ok(())
        })
        .unwrap();
}

#[test]
fn c062_a_context_that_is_entered_twice_is_left_twice() {
    let mut watched = Watched::by(&["a"]);
    watched.cx.scope(|cx| cx.scope(|_| Ok(()))).unwrap();
    watched.assert_told(&["a enter", "a enter", "a exit", "a exit"]);
}

/// Scopes are functions, so they end in the reverse of the order in which they began, and none ends that has
/// not begun.
#[test]
fn c063_c064_scopes_end_in_the_order_of_their_nesting() {
    let (mut a, mut b) = (at_level(3), at_level(4));
    a.scope(|_| {
        assert_eq!(b.scope(|_| Ok(current()))?, 4);
        assert_eq!(current(), 3);
        Ok(())
    })
    .unwrap();
    assert_eq!(current(), 2);
}

#[test]
fn c065_a_scope_is_left_once_whatever_happens_in_it() {
    let mut watched = Watched::by(&["a"]);
    let plan = plan_of(&fails("p")).unwrap();
    let error = watched.cx.scope(|cx| cx.run(&no_plugins(), &plan, &module(SMALL))).unwrap_err();
    assert_eq!(error.to_string(), "pass `p`: this is not to my taste");
    watched.assert_told(&["a enter", "a ask p", "a before p", "a failed p", "a exit"]);
    let panics = || watched.cx.scope(|_| -> Result<(), PassError> { panic!("in the scope") });
    catch_unwind(AssertUnwindSafe(panics)).unwrap_err();
    assert_eq!(current(), 2);
    watched.assert_told(&["a enter", "a exit"]);
}

#[test]
fn several_runs_share_one_scope() {
    let mut watched = Watched::by(&["a"]);
    let plan = plan_of(&watched.pass("p")).unwrap();
    let (registry, before) = (no_plugins(), module(SMALL));
    watched
        .cx
        .scope(|cx| {
            let after = cx.run(&registry, &plan, &before)?;
            cx.run(&registry, &plan, &after)
        })
        .unwrap();
    let run = ["a ask p", "a before p", "p", "a after p"];
    watched.assert_told(&[&["a enter"], &run[..], &run[..], &["a exit"]].concat());
}
