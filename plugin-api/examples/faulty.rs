//! A plugin whose passes misbehave in every way that a host must survive.

use tenon_plugin_api::prelude::*;

plugin! { id = "test.faulty", summary = "Passes that misbehave" }

/// What a function evaluates, behind its bindings.
fn value(func: &Function) -> Option<Expr> {
    match func.view().view(func.result()?) {
        View::Let(bindings) => Some(bindings.result()),
        _ => func.result(),
    }
}

mod no_op {
    use super::*;

    /// Changes nothing.
    #[pass(name = "test.NoOp")]
    fn no_op(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
        Ok(func)
    }
}

mod panics {
    use super::*;

    /// Reads behind the end of a vector after it has edited the function.
    #[pass(name = "test.Panic")]
    fn panics(func: Function, _: &Module, _: &PassContext, options: Options) -> Result<Function> {
        let mut rw = func.edit();
        rw.var("never_published", None);
        let empty: Vec<u32> = Vec::new();
        assert_eq!(empty[options.at], 0);
        rw.finish()
    }

    #[derive(Options)]
    struct Options {
        /// where
        #[option(default = 7, max = 100)]
        at: usize,
    }
}

mod options {
    use super::*;

    /// Fails with the values of its options.
    #[pass(name = "test.Options")]
    fn options(_: Function, _: &Module, _: &PassContext, options: Options) -> Result<Function> {
        let Options { count, scale, on, mode, sizes, names } = options;
        Err(PassError::new(format!("{count} {scale} {on} {mode} {sizes:?} {names:?}")))
    }

    #[derive(Options)]
    struct Options {
        /// how many
        #[option(default = -3, min = -5, max = 5)]
        count: i64,
        /// how large
        #[option(default = 1.5, min = 0)]
        scale: f64,
        /// whether
        #[option(default = true)]
        on: bool,
        /// how
        #[option(default = "fast", one_of = ["fast", "small"])]
        mode: String,
        /// of each axis
        #[option(default = [8, 8], min = 1)]
        sizes: Vec<usize>,
        #[option(default = [], one_of = ["x", "y"])]
        names: Vec<String>,
    }
}

mod parallel {
    use super::*;

    /// Fails with what its threads found out, of each index by more of them.
    #[pass(name = "test.Parallel")]
    fn parallel(_: Function, _: &Module, cx: &PassContext, options: Options) -> Result<Function> {
        let rows = cx.parallel_for(options.rows, |row| {
            let cells = cx.parallel_for(options.columns, |column| {
                assert!((row, column) < (options.panics, 3), "row {row}, column {column}");
                let name = cx.symbol(&format!("cell_{row}_{column}"));
                cx.terms().str(name).len()
            })?;
            Ok(cells.into_iter().sum::<usize>())
        })?;
        let sums = rows.into_iter().collect::<Result<Vec<usize>>>()?;
        Err(PassError::new(format!("the sums are {sums:?}")))
    }

    #[derive(Options)]
    struct Options {
        /// how many there are
        #[option(default = 4)]
        rows: usize,
        /// how many a row has
        #[option(default = 4)]
        columns: usize,
        /// the first row that panics, from its column 3 on
        #[option(default = 1000000)]
        panics: usize,
    }
}

mod fails {
    use super::*;

    /// Finds something wrong with the first call.
    #[pass(name = "test.Fail")]
    fn fails(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
        let body = func.view();
        let call = body.post_order().find(|&expr| body.kind(expr) == Kind::CALL);
        Err(PassError::new("this is not to my taste").at(call.unwrap_or(body.root())))
    }
}

mod no_text {
    use super::*;

    /// Names a variable by bytes that are not UTF-8.
    #[pass(name = "test.NoText")]
    fn no_text(func: Function, _: &Module, cx: &PassContext) -> Result<Function> {
        let bytes = vec![b'a', 0xff, b'b'];
        // SAFETY: there is none; that the host looks at the bytes before it uses them is what is tested.
        let name = unsafe { str::from_utf8_unchecked(&bytes) };
        cx.note(name);
        let mut rw = func.edit();
        let var = rw.var(name, None);
        let call = func.view().post_order().find(|&expr| func.view().kind(expr) == Kind::CALL);
        if let Some(call) = call {
            rw.replace(call, var);
        }
        rw.finish()
    }
}

mod no_text_in_error {
    use super::*;

    /// Fails with a message that is not UTF-8.
    #[pass(name = "test.NoTextInError")]
    fn no_text_in_error(_: Function, _: &Module, _: &PassContext) -> Result<Function> {
        // SAFETY: as above.
        let message = unsafe { String::from_utf8_unchecked(vec![b'a', 0xff, b'b']) };
        Err(PassError::new(message))
    }
}

mod wrong_node {
    use super::*;

    /// Replaces a node that does not exist.
    #[pass(name = "test.WrongNode")]
    fn wrong_node(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
        let mut rw = func.edit();
        rw.replace(Expr(1_000_000), Expr(0));
        rw.finish()
    }
}

mod cycle {
    use super::*;

    /// Replaces each parameter by what is built from the result.
    #[pass(name = "test.Cycle")]
    fn cycle(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
        let body = func.view();
        let mut rw = func.edit();
        let operand = body.post_order().find(|&expr| body.kind(expr) == Kind::CALL);
        if let (Some(call), Some(result)) = (operand, func.result()) {
            rw.replace(call, result);
        }
        rw.finish()
    }
}

mod untyped {
    use super::*;

    /// Leaves a call of an operator that does not take its argument.
    #[pass(name = "test.Untyped")]
    fn untyped(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
        let body = func.view();
        let mut rw = func.edit();
        if let Some(call) = body.post_order().find(|&expr| body.kind(expr) == Kind::CALL) {
            let wrong = rw.call_op("test.joined", &[call], Attrs::NONE);
            rw.replace(call, wrong);
        }
        rw.finish()
    }
}

mod module_panics {
    use super::*;

    /// Removes every function, then panics.
    #[pass(name = "test.ModulePanic")]
    fn module_panics(mut module: Module, _: &PassContext) -> Result<Module> {
        for (name, _) in module.functions() {
            module.remove(name);
        }
        panic!("after all was removed");
    }
}

mod keeps_handles {
    use super::*;
    use std::sync::Mutex;

    static KEPT: Mutex<Vec<Function>> = Mutex::new(Vec::new());

    /// Keeps every function it sees for ever.
    #[pass(name = "test.KeepHandles")]
    fn keeps_handles(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
        let mut kept = KEPT.lock().expect("no panic while it is held");
        // What was kept by an earlier run is still readable.
        assert!(kept.iter().all(|function| !function.view().is_empty()));
        kept.push(func.clone());
        Ok(func)
    }
}

mod needs_missing {
    use super::*;

    /// Requires a pass that nobody offers.
    #[pass(name = "test.NeedsMissing", requires = ["test.Missing"])]
    fn needs_missing(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
        Ok(func)
    }
}

mod ring_a {
    use super::*;

    /// Requires what requires it.
    #[pass(name = "test.RingA", requires = ["test.RingB"])]
    fn ring_a(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
        Ok(func)
    }
}

mod ring_b {
    use super::*;

    /// Requires what requires it.
    #[pass(name = "test.RingB", requires = ["test.RingA"])]
    fn ring_b(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
        Ok(func)
    }
}

mod needs {
    use super::*;

    /// Requires a pass that is there.
    #[pass(name = "test.Needs", requires = ["test.NoOp"])]
    fn needs(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
        Ok(func)
    }
}

mod wait {
    use super::*;

    /// Does nothing until it is told to stop, for a minute at most.
    #[pass(name = "test.Wait")]
    fn wait(func: Function, _: &Module, cx: &PassContext) -> Result<Function> {
        for _ in 0..6000 {
            if cx.is_cancelled() {
                return Err(PassError::cancelled());
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        Ok(func)
    }
}

mod deaf {
    use super::*;

    /// Does nothing for a minute, whatever it is told.
    #[pass(name = "test.Deaf")]
    fn deaf(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
        std::thread::sleep(std::time::Duration::from_secs(60));
        Ok(func)
    }
}

mod placed {
    use super::*;

    /// Finds its place behind another.
    #[pass(name = "test.Placed", phase = "optimize", after = ["test.NoOp"])]
    fn placed(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
        Ok(func)
    }
}

mod random_nodes {
    use super::*;

    /// Builds nodes of every kind from any payload and any operands, and returns the last.
    #[pass(name = "test.RandomNodes")]
    fn random_nodes(
        func: Function,
        _: &Module,
        _: &PassContext,
        options: Options,
    ) -> Result<Function> {
        let Some(result) = value(&func) else { return Ok(func) };
        let mut state = options.seed as u64 + 1;
        // Numbers like those of `next`, over a small range, so that many of them are there.
        let mut next = |below: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % below
        };
        let mut rw = func.edit();
        let is_bound = |expr: &Expr| matches!(rw.body().kind(*expr), Kind::VAR | Kind::CALL);
        let mut nodes: Vec<Expr> = rw.post_order().filter(is_bound).collect();
        for _ in 0..1 + next(6) {
            let kind = Kind::ALL[next(Kind::ALL.len() as u64) as usize];
            let operands: Vec<Expr> =
                (0..next(5)).map(|_| nodes[next(nodes.len() as u64) as usize]).collect();
            let spec = NodeSpec {
                flags: next(2) as u16,
                ty: (next(2) == 0).then(|| Type(next(14) as u32)),
                data: next(14) as u32,
                aux: next(14) as u32,
                attrs: Attrs(next(14) as u32),
                ..NodeSpec::new(kind)
            };
            nodes.push(rw.push(spec, &operands));
        }
        let last = nodes.pop().expect("some were built");
        rw.replace(result, last);
        rw.finish()
    }

    #[derive(Options)]
    struct Options {
        /// where to start
        #[option(default = 0)]
        seed: i64,
    }
}

mod unknown {
    use super::*;
    use tenon_plugin_api::ir::TermKind;

    /// Wraps what each function evaluates in a node of a kind that nobody knows, of its type, with attributes
    /// that nobody knows.
    #[pass(name = "test.MakeUnknown")]
    fn make_unknown(func: Function, _: &Module, cx: &PassContext) -> Result<Function> {
        let Some(result) = value(&func) else { return Ok(func) };
        let ty = func.view().ty(result);
        let child = cx.int(5);
        let value = cx.intern(TermKind(900), 1, 77, &[child]);
        let attrs = cx.attrs(&[("later", AttrValue::Term(value))]);
        let mut rw = func.edit();
        let spec = NodeSpec { flags: 2, ty, data: 3, aux: 4, attrs, ..NodeSpec::new(Kind(1000)) };
        let wrapped = rw.push(spec, &[result, result]);
        rw.replace(result, wrapped);
        rw.finish()
    }
}

mod evaluates {
    use super::*;

    /// Evaluates calls, with what the host has for it, and leaves them as they are.
    #[pass(name = "test.Evaluate")]
    fn evaluates(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
        let body = func.view();
        let mut rw = func.edit();
        for expr in body.post_order().filter(|&expr| matches!(body.view(expr), View::Call { .. })) {
            rw.evaluate(expr)?;
        }
        Ok(func)
    }
}

mod asks_in_secret {
    use super::*;
    use tenon_plugin_api::rule::CostOf;

    /// Asks for rules of a facet that its manifest does not name.
    #[pass(name = "test.AsksInSecret")]
    fn asks_in_secret(func: Function, _: &Module, cx: &PassContext) -> Result<Function> {
        cx.rules::<CostOf>().has(cx.symbol("exp"))?;
        Ok(func)
    }
}

mod rename_operators {
    use super::*;

    /// Calls `test.opposite` where `test.double` is called, whatever the call stands in.
    #[pass(name = "test.Rewrite")]
    fn rename_operators(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
        let body = func.view();
        let mut rw = func.edit();
        for expr in rw.post_order() {
            let View::Call { callee, args, attrs } = body.view(expr) else { continue };
            if body.op_name(callee) == Some("test.double") {
                let call = rw.call_op("test.opposite", &args.to_vec(), attrs);
                rw.replace(expr, call);
            }
        }
        rw.finish()
    }
}

mod panics_in_destructors {
    use super::*;

    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("a destructor panics");
        }
    }

    /// Panics when it is done.
    #[pass(name = "test.PanicInDrop")]
    fn panics_in_drop(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
        let _bomb = Bomb;
        Ok(func)
    }

    mod payload {
        use super::*;

        /// Panics with something that panics when it is dropped.
        #[pass(name = "test.PanicPayload")]
        fn panic_payload(_: Function, _: &Module, _: &PassContext) -> Result<Function> {
            std::panic::panic_any(Bomb)
        }
    }
}

/// Right ones, which passes of this plugin call.
#[path = "../../host/tests/support/operators.rs"]
mod right_operators;

/// Those that misbehave.
#[path = "faulty/operators.rs"]
mod operators;
