//! Rules that no text can break, because the parser keeps them; passes can.

use std::sync::Arc;

use tenon_ir::check::{PER_RULE, check, check_changed, rules};
use tenon_ir::diagnostics::Source;
use tenon_ir::text::{NoWeights, parse_module};
use tenon_ir::{
    Attrs, Build, BuildPrim, Context, Cx, DType, Expr, Function, Kind, LoopKind, Module, NodeSpec,
    Transaction, Type,
};

/// Builds `@f` in a module that has an `@other`, and returns its broken rules and their problems.
fn broken(build: impl FnOnce(&mut Transaction, Type) -> Expr) -> Vec<String> {
    let cx = tenon_compiler::testing::cx();
    let mut tx = Transaction::new(cx.clone());
    let ty = cx.static_tensor_type(DType::F32, &[4]);
    let root = build(&mut tx, ty);
    tx.set_root(root);
    violations(cx, tx.publish().unwrap())
}

fn violations(cx: Cx, function: Arc<Function>) -> Vec<String> {
    let mut module = Module::new(cx.clone());
    module.insert(cx.symbol("f"), function);
    let found = check(&module);
    assert_eq!(found.len(), check_changed(&Module::new(cx), &module).len());
    found.iter().map(|found| format!("{}: {}", found.rule, found.problem)).collect()
}

fn call(tx: &mut Transaction, op: &str, args: &[Expr], ty: Type) -> Expr {
    let callee = tx.op(op);
    tx.call(callee, args, Attrs::NONE, Some(ty))
}

/// A function of `%x` with these bindings in one block.
fn function(
    tx: &mut Transaction,
    params: &[Expr],
    bindings: Vec<(Expr, Expr)>,
    result: Expr,
) -> Expr {
    let ty = tx.body().ty(result);
    let body = tx.let_blocks(&[(false, bindings)], result);
    tx.set_type(body, ty);
    let root = tx.function(params, body, None, Attrs::NONE);
    let params: Vec<Type> = params.iter().filter_map(|&param| tx.body().ty(param)).collect();
    let signature = tx.cx().func_type(&params, ty.unwrap());
    tx.set_type(root, Some(signature));
    root
}

#[test]
fn who_calls_what_has_changed_is_checked() {
    let cx = tenon_compiler::testing::cx();
    let main = "fn @main(%x: f32[4]) -> f32[4] {\n  %y: f32[4] = @f(%x)\n  ret %y\n}\n\n";
    let parsed = |ty: &str| {
        let text = format!("{main}fn @f(%x: {ty}) -> {ty} {{\n  ret %x\n}}\n");
        parse_module(&cx, &Source::new("test", &text), &mut NoWeights).unwrap()
    };
    let before = parsed("f32[4]");
    // Untyped as it is, @main breaks a rule; nothing of it is told while nothing changes.
    assert!(check_changed(&before, &before).is_empty());
    let mut without = before.clone();
    without.remove(cx.symbol("f"));
    assert!(!check_changed(&before, &without).is_empty());
    let again = Arc::clone(parsed("f32[4]").get(cx.symbol("f")).unwrap());
    let mut same = before.clone();
    same.insert(cx.symbol("f"), again);
    assert!(check_changed(&before, &same).is_empty());
    let mut changed = before.clone();
    changed.insert(cx.symbol("f"), Arc::clone(parsed("f32[2]").get(cx.symbol("f")).unwrap()));
    assert!(!check_changed(&before, &changed).is_empty());
}

#[test]
fn what_is_well_formed_breaks_nothing() {
    let found = broken(|tx, ty| {
        let (x, a) = (tx.var("x", Some(ty)), tx.var("a", Some(ty)));
        let value = call(tx, "test.double", &[x], ty);
        function(tx, &[x], vec![(a, value)], a)
    });
    assert_eq!(found, [""; 0]);
}

#[test]
fn nodes_without_their_parts() {
    let found = broken(|tx, ty| {
        let x = tx.var("x", Some(ty));
        let callee = tx.push(NodeSpec::new(Kind::CALL), &[]);
        let stmt = tx.push(NodeSpec::new(Kind::SEQ), &[]);
        let tuple = tx.push(NodeSpec::new(Kind::TUPLE), &[callee, stmt]);
        let item = tx.push(NodeSpec::new(Kind::TUPLE_GET_ITEM), &[tuple, tuple]);
        // Two bindings are there, and the blocks say three.
        let (a, b) = (tx.var("a", Some(ty)), tx.var("b", Some(ty)));
        let blocks = tx.cx().int_list(&[6]).0;
        let spec = NodeSpec { data: blocks, ..NodeSpec::new(Kind::LET) };
        let body = tx.push(spec, &[a, item, b, x, b]);
        tx.function(&[x], body, None, Attrs::NONE)
    });
    assert_eq!(
        found,
        [
            "parts: a call without the operands or payload of its kind",
            "parts: operand 1 of a tuple is a sequence, but a value belongs there",
            "parts: a tuple item without the operands or payload of its kind",
            "parts: a let without the operands or payload of its kind",
        ]
    );
}

#[test]
fn nodes_of_a_kind_that_is_not_known() {
    let found = broken(|tx, ty| {
        let (x, a) = (tx.var("x", Some(ty)), tx.var("a", Some(ty)));
        let spec = NodeSpec { ty: Some(ty), ..NodeSpec::new(Kind(4000)) };
        let value = tx.push(spec, &[x]);
        function(tx, &[x], vec![(a, value)], a)
    });
    assert_eq!(found, [""; 0]);
}

#[test]
fn functions_that_are_not_there() {
    let found = broken(|tx, ty| {
        let (x, a) = (tx.var("x", Some(ty)), tx.var("a", Some(ty)));
        let callee = tx.global("other");
        let value = tx.call(callee, &[x], Attrs::NONE, Some(ty));
        function(tx, &[x], vec![(a, value)], a)
    });
    assert_eq!(found[0], "globals: there is no function `@other` in the module");
}

#[test]
fn c258_variables_bound_twice() {
    let found = broken(|tx, ty| {
        let (x, a) = (tx.var("x", Some(ty)), tx.var("a", Some(ty)));
        let first = call(tx, "test.double", &[x], ty);
        let second = call(tx, "test.square", &[x], ty);
        function(tx, &[x], vec![(a, first), (a, second)], a)
    });
    assert_eq!(found[0], "bound_once: `%a` is bound at another place too");
}

#[test]
fn variables_that_nothing_binds() {
    let found = broken(|tx, ty| {
        let (x, a) = (tx.var("x", Some(ty)), tx.var("a", Some(ty)));
        let ghost = tx.var("ghost", Some(ty));
        let value = call(tx, "test.total", &[x, ghost], ty);
        function(tx, &[x], vec![(a, value)], a)
    });
    assert_eq!(found, ["scope: nothing binds `%ghost`"]);
}

#[test]
fn variables_before_their_binding_and_in_it() {
    let found = broken(|tx, ty| {
        let x = tx.var("x", Some(ty));
        let [a, b, c] = ["a", "b", "c"].map(|name| tx.var(name, Some(ty)));
        let early = call(tx, "test.double", &[b], ty);
        let late = call(tx, "test.square", &[a], ty);
        let own = call(tx, "test.double", &[c], ty);
        function(tx, &[x], vec![(a, early), (b, late), (c, own)], c)
    });
    assert_eq!(
        found,
        ["scope: `%b` is read before it is bound", "scope: `%c` is read before it is bound"]
    );
}

#[test]
fn variables_of_a_branch_outside_of_it() {
    let found = broken(|tx, ty| {
        let cond_ty = tx.cx().static_tensor_type(DType::BOOL, &[]);
        let (x, c) = (tx.var("x", Some(ty)), tx.var("c", Some(cond_ty)));
        let [a, b, d] = ["a", "b", "d"].map(|name| tx.var(name, Some(ty)));
        let inner = call(tx, "test.double", &[x], ty);
        let then = tx.let_blocks(&[(false, vec![(a, inner)])], a);
        tx.set_type(then, Some(ty));
        let choice = tx.if_else(c, then, x);
        tx.set_type(choice, Some(ty));
        let outside = call(tx, "test.square", &[a], ty);
        function(tx, &[x, c], vec![(b, choice), (d, outside)], d)
    });
    assert_eq!(found, ["scope: `%a` is read outside of the body that binds it"]);
}

#[test]
fn a_function_may_call_itself() {
    let cx = tenon_compiler::testing::cx();
    let text = "fn @f(%x: f32[4], %c: bool[]) {
        %g: fn(f32[4]) -> f32[4] = fn(%y: f32[4]) -> f32[4] {
          %z = %g(%y)
          ret %z
        }
        %r = %g(%x)
        ret %r
      }";
    let module = parse_module(&cx, &Source::new("test", text), &mut NoWeights).unwrap();
    let module = tenon_ir::infer::infer_module(&module).unwrap();
    assert_eq!(violations(cx, module.get_str("f").unwrap().clone()), [""; 0]);
}

#[test]
fn scopes_of_tensor_programs() {
    let found = broken(|tx, ty| {
        let (a, b) = (tx.buffer("A", ty, ""), tx.buffer("B", ty, ""));
        let own = tx.buffer("own", ty, "");
        let (i, k) = (tx.scalar_var("i", DType::I64), tx.scalar_var("k", DType::I64));
        // `%own` before it is made, `%k` before it is named, `%i` behind its loop.
        let value = tx.load(own, &[k]);
        let early = tx.store(b, value, &[i]);
        let alloc = tx.alloc(own);
        let one = tx.index(1);
        let name = tx.let_stmt(k, one);
        let inner = tx.seq(&[early, alloc, name]);
        let looped = tx.for_range(i, 4, LoopKind::Serial, inner);
        let value = tx.load(a, &[i]);
        let late = tx.store(b, value, &[one]);
        let body = tx.seq(&[looped, late]);
        tx.prim_func(&[a, b], 1, body, Attrs::NONE)
    });
    assert_eq!(
        found,
        [
            "scope: `%k` is read before it is bound",
            "scope: `%own` is read before it is bound",
            "scope: `%i` is read outside of the body that binds it",
        ]
    );
}

#[test]
fn types_that_do_not_follow() {
    let found = broken(|tx, ty| {
        let (x, a) = (tx.var("x", Some(ty)), tx.var("a", Some(ty)));
        let wrong = tx.cx().static_tensor_type(DType::F32, &[5]);
        let value = call(tx, "test.double", &[x], wrong);
        function(tx, &[x], vec![(a, value)], a)
    });
    assert_eq!(found, ["types: a call has f32[5], but its operands give f32[4]"]);
    // The variable and what is made of it are as wrong as the value, and for no reason of their own.
    let found = broken(|tx, ty| {
        let wrong = tx.cx().static_tensor_type(DType::F32, &[5]);
        let (x, a) = (tx.var("x", Some(ty)), tx.var("a", Some(wrong)));
        let value = call(tx, "test.double", &[x], wrong);
        let b = tx.var("b", Some(wrong));
        let made = call(tx, "test.double", &[a], wrong);
        function(tx, &[x], vec![(a, value), (b, made)], b)
    });
    assert_eq!(found, ["types: a call has f32[5], but its operands give f32[4]"]);
}

#[test]
fn one_function_shows_a_few_places_of_each_rule() {
    let found = broken(|tx, ty| {
        let x = tx.var("x", Some(ty));
        let ghost = tx.var("ghost", Some(ty));
        let mut result = x;
        for _ in 0..1000 {
            result = call(tx, "test.total", &[result, ghost], ty);
        }
        let root = tx.function(&[x], result, None, Attrs::NONE);
        let signature = tx.cx().func_type(&[ty], ty);
        tx.set_type(root, Some(signature));
        root
    });
    assert_eq!(found.len(), PER_RULE);
}

#[test]
fn rules_have_names_of_their_own() {
    let mut names: Vec<&str> = rules().iter().map(|rule| rule.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), rules().len());
}
