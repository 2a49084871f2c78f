//! Gives the leading part of a tensor program to a program of a library's.
//!
//! ```ir
//! %c = call_tir(@matmul_relu, %x, %w) { out = … }        %0 = call_tir(@acme_matmul, %x, %w) { out = … }
//!                                                   =>   %c = call_tir(@matmul_relu_rest, %0) { out = … }
//! prim @matmul_relu(%X, %W, out %C) {                    prim @matmul_relu_rest(%T, out %C) {
//!   alloc %T                                               for … { %C[%i, %j] = max(%T[%i, %j], 0.0) }
//!   for … { %T[%i, %j] = … }                             }
//!   for … { %C[%i, %j] = max(%T[%i, %j], 0.0) }
//! }
//! ```
//!
//! With `patterns = ["matmul = acme_matmul"]`, where both are programs of the module with the same parameters. What
//! `@matmul` does is found as it is written, with other names ([`matching`]): statement for statement from the first
//! on, behind the buffers that are made. Names of blocks do not matter, annotations do. Of several patterns the
//! first that matches counts, and what is left is looked at again. A program all of which matches is not called any
//! more; nothing is split that would write to one tensor in both parts.

mod matching;

use std::collections::{HashMap, HashSet};

use tenon_plugin_api::prelude::*;

use matching::{Match, Program, Source};

/// Gives the leading part of a tensor program to a program of a library's.
#[pass(
    name = "relax.SplitCallTIRByPattern",
    aliases = ["relax.transform.SplitCallTIRByPattern"],
    phase = "fuse",
    after = ["relax.FuseTIR"],
    idempotent = true
)]
fn split_call_tir_by_pattern(
    mut module: Module,
    cx: &PassContext,
    options: Options,
) -> Result<Module> {
    let libraries = Library::read(&options.patterns, &module, cx)?;
    if libraries.is_empty() {
        return Ok(module);
    }
    let mut splits: HashMap<Symbol, Split> = HashMap::new();
    let kept: HashSet<Symbol> =
        libraries.iter().flat_map(|library| [library.name, library.program]).collect();
    let mut work = module.functions();
    work.retain(|(name, func)| func.is_prim() && !kept.contains(name));
    while let Some((name, func)) = work.pop() {
        if cx.is_cancelled() {
            return Err(PassError::cancelled());
        }
        let program = Program::of(&func);
        let found = libraries.iter().find_map(|library| {
            let found = program.begins_with(&library.pattern)?;
            Some((library, found))
        });
        let Some((library, found)) = found else { continue };
        let mut rest = None;
        if let Some(program) = program.rest(&found, cx)? {
            let name = module.fresh_name(&format!("{}_rest", cx.terms().str(name)));
            module.insert(name, &program);
            work.push((name, program));
            rest = Some(name);
        }
        splits.insert(name, Split { library: library.program, rest, found });
    }
    module.map_functions(cx, |module, _, func| call_parts(&func, &splits, module, cx))?;
    let calls = CallGraph::of(&module);
    for name in splits.into_keys().filter(|&name| calls.uses(name) == 0) {
        if module.get(name).is_some_and(|program| program.is_private()) {
            module.remove(name);
        }
    }
    Ok(module)
}

#[derive(Options)]
struct Options {
    /// `pattern = program`: what computes the leading part of a program that does what the pattern does
    #[option(default = [])]
    patterns: Vec<String>,
}

/// What is looked for, and what computes it.
struct Library {
    name: Symbol,
    pattern: Program,
    program: Symbol,
}

impl Library {
    fn read(patterns: &[String], module: &Module, cx: &PassContext) -> Result<Vec<Self>> {
        let program = |name: &str| {
            let symbol = cx.symbol(name);
            let program = module.get(symbol).filter(Function::is_prim);
            let missing = || PassError::new(format!("there is no tensor program `{name}`"));
            program.map(|program| (symbol, program)).ok_or_else(missing)
        };
        let read = |text: &str| {
            let Some((pattern, library)) = text.split_once('=') else {
                return Err(PassError::new(format!("`{text}` is no `pattern = program`")));
            };
            let (name, pattern) = program(pattern.trim())?;
            let (library, by) = program(library.trim())?;
            let interface = |program: &Function| {
                let body = program.view();
                match body.view(body.root()) {
                    View::PrimFunc { outputs, .. } => (program.param_types(), outputs),
                    _ => (Vec::new(), 0),
                }
            };
            if interface(&pattern) != interface(&by) {
                let [pattern, by] = [name, library].map(|name| cx.terms().str(name));
                let message = format!("`{by}` has other parameters than `{pattern}`");
                return Err(PassError::new(message));
            }
            Ok(Self { name, pattern: Program::of(&pattern), program: library })
        };
        patterns.iter().map(|text| read(text)).collect()
    }
}

/// What a program is split into.
struct Split {
    library: Symbol,
    /// The program of what is left; `None` when nothing is.
    rest: Option<Symbol>,
    found: Match,
}

/// A function with calls of the parts where it calls programs that are split.
fn call_parts(
    func: &Function,
    splits: &HashMap<Symbol, Split>,
    module: &Module,
    cx: &PassContext,
) -> Result<Function> {
    let mut rw = func.edit();
    for expr in rw.post_order() {
        let View::Call { callee, args, .. } = rw.view(expr) else { continue };
        if rw.body().op_name(callee) != Some("call_tir") {
            continue;
        }
        let View::Global { name: mut program } = rw.view(args.at(0)) else { continue };
        if !splits.contains_key(&program) {
            continue;
        }
        let mut inputs = args.skip(1).to_vec();
        let mut results = vec![None; outputs_of(module, program)];
        // Which result each output of `program` is.
        let mut outputs: Vec<usize> = (0..results.len()).collect();
        while let Some(Split { library, rest, found }) = splits.get(&program) {
            let lead: Vec<Expr> = found.inputs.iter().map(|&input| inputs[input]).collect();
            let lead = call(&mut rw, module, *library, &lead, cx);
            for (&value, output) in lead.iter().zip(&found.outputs) {
                if let Some(output) = output {
                    results[outputs[*output]] = Some(value);
                }
            }
            let Some(rest) = rest else { break };
            let value = |source: &Source| match *source {
                Source::Lead(output) => lead[output],
                Source::Input(input) => inputs[input],
            };
            inputs = found.rest_inputs.iter().map(value).collect();
            outputs = found.rest_outputs.iter().map(|&output| outputs[output]).collect();
            program = *rest;
        }
        if !splits.contains_key(&program) {
            let values = call(&mut rw, module, program, &inputs, cx);
            outputs.iter().zip(values).for_each(|(&output, value)| results[output] = Some(value));
        }
        let results: Vec<Expr> = results.into_iter().flatten().collect();
        let is_tuple = rw.body().ty(expr).is_some_and(|ty| rw.terms().tensor(ty).is_none());
        let value = match results.as_slice() {
            &[result] if !is_tuple => result,
            results => rw.tuple(results),
        };
        rw.replace(expr, value);
    }
    rw.finish()
}

fn outputs_of(module: &Module, program: Symbol) -> usize {
    let program = module.get(program);
    program.map_or(0, |program| match program.view().view(program.view().root()) {
        View::PrimFunc { outputs, .. } => outputs,
        _ => 0,
    })
}

/// The results of a call of a program.
fn call(
    rw: &mut Rewriter,
    module: &Module,
    program: Symbol,
    inputs: &[Expr],
    cx: &PassContext,
) -> Vec<Expr> {
    let params = module.get(program).map_or(Vec::new(), |program| program.param_types());
    let types: Vec<Type> = params.into_iter().skip(inputs.len()).flatten().collect();
    let mut operands = vec![rw.named(Kind::GLOBAL, program)];
    operands.extend(inputs);
    let out = match types.as_slice() {
        &[ty] => ty,
        types => cx.tuple_type(types),
    };
    let attrs = cx.attrs(&[("out", AttrValue::Term(out.into()))]);
    let call = rw.call_op("call_tir", &operands, attrs);
    match types.len() {
        1 => vec![call],
        count => (0..count as u32).map(|field| rw.tuple_get_item(call, field)).collect(),
    }
}
