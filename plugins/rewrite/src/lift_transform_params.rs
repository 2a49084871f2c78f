//! Moves what depends on weights alone into a function of its own, which runs once.
//!
//! ```ir
//! fn @main(%x: f32[2, 4], %w: f32[3, 4], %v: f32[3]) { num_input = 1 } {
//!   %t = transpose(%w)
//!   %y = matmul(%x, %t)
//!   %z = add(%y, %v)
//!   ret %z
//! }
//! =>
//! fn @main(%x: f32[2, 4], %v: f32[3], %t: f32[4, 3]) { num_input = 1 } {
//!   %y = matmul(%x, %t)
//!   %z = add(%y, %v)
//!   ret %z
//! }
//! fn @main_transform_params(%params: (f32[3, 4], f32[3])) {
//!   %w = %params.0
//!   %t = transpose(%w)
//!   ret (%params.1, %t)
//! }
//! ```
//!
//! The attribute `num_input` says how many parameters are inputs; the others are weights. A call of a pure
//! operator is lifted when all that it reads is: weights, constants, and what is lifted. Calls inside choices and
//! closures stay, and so do those whose types name a symbol that no weight has, and a call with the attribute
//! `relax.stop_lift` with all that reads it. The function takes its inputs, then the weights that it still reads,
//! then what is lifted, which is what `@…_transform_params` returns for the weights there were. Where there is
//! such a function already, the new one calls it first. A function that another one of the module calls stays as
//! it is, since its parameters would change.

use std::collections::{HashMap, HashSet};

use tenon_plugin_api::ir::{TermKind, Terms};
use tenon_plugin_api::prelude::*;

const NUM_INPUT: &str = "num_input";
const STOP: &str = "relax.stop_lift";

/// Moves what depends on weights alone into a function of its own, which runs once.
#[pass(
    name = "relax.LiftTransformParams",
    aliases = ["relax.transform.LiftTransformParams"],
    opt_level = 0,
    phase = "optimize",
    requires = ["relax.Normalize"],
    after = ["relax.CombineParallelMatmul"],
    idempotent = true
)]
fn lift_transform_params(mut module: Module, cx: &PassContext) -> Result<Module> {
    let functions = module.functions();
    let called: HashSet<Symbol> = functions.iter().flat_map(|(_, func)| callees(func)).collect();
    for (name, func) in functions {
        let Some(inputs) = cx.terms().attrs(func.attrs()).int(NUM_INPUT) else { continue };
        if func.is_prim() || called.contains(&name) {
            continue;
        }
        let name_text = cx.terms().str(name).to_owned();
        let transform_name = cx.symbol(&format!("{name_text}_transform_params"));
        let Some(lift) = Lift::of(&func, inputs, cx)? else { continue };
        let earlier = module.get(transform_name).map(|earlier| {
            let earlier_name = module.fresh_name(&format!("{name_text}_transform_params_before"));
            (earlier_name, earlier)
        });
        let transform = lift.transform(&func, earlier.as_ref(), cx)?;
        let main = lift.main(&func)?;
        if let Some((earlier_name, earlier)) = earlier {
            let mut rw = earlier.edit();
            let root = earlier.view().root();
            let private = rw.private(root);
            rw.set_root(private);
            module.insert(earlier_name, &rw.finish()?);
        }
        module.insert(name, &main);
        module.insert(transform_name, &transform);
    }
    Ok(module)
}

/// The functions that a function names.
fn callees(func: &Function) -> Vec<Symbol> {
    let body = func.view();
    let named = body.post_order().filter_map(|expr| match body.view(expr) {
        View::Global { name } => Some(name),
        _ => None,
    });
    named.collect()
}

/// What of a function is lifted.
struct Lift {
    inputs: Vec<Expr>,
    weights: Vec<Expr>,
    /// The weights that the function still reads.
    kept: Vec<Expr>,
    /// What is lifted and read by what is not, in order; a variable where it is bound.
    outputs: Vec<Expr>,
    /// For each node, whether it can be computed from weights and constants.
    is_liftable: SideTable<bool>,
    /// For each node, whether it is computed from a weight and lifted.
    is_lifted: SideTable<bool>,
}

impl Lift {
    /// `None` when there is nothing to lift.
    fn of(func: &Function, inputs: i64, cx: &PassContext) -> Result<Option<Self>> {
        let body = func.view();
        let View::Function { params, body: result, .. } = body.view(body.root()) else {
            return Ok(None);
        };
        let params = params.to_vec();
        let count = usize::try_from(inputs).unwrap_or(usize::MAX);
        if count > params.len() {
            let text =
                format!("`{NUM_INPUT}` is {inputs}, and there are {} parameters", params.len());
            return Err(PassError::new(text));
        }
        let (inputs, weights) = params.split_at(count);
        let View::Let(bindings) = body.view(result) else { return Ok(None) };

        let mut symbols =
            Symbols { terms: body.terms(), known: HashSet::new(), fits: HashMap::new() };
        for &weight in weights {
            symbols.learn(body.ty(weight));
        }
        let mut is_liftable = SideTable::new(body, false);
        let mut is_lifted = SideTable::new(body, false);
        let mut is_weight = SideTable::new(body, false);
        for &weight in weights {
            is_liftable[weight] = true;
            is_weight[weight] = true;
        }
        let is_outer = outer_nodes(body, result);
        // Bindings stand in the order of their values.
        let mut pairs = bindings.bindings().peekable();
        for expr in body.post_order() {
            let operands = || body.operands(expr).iter();
            let is_fit = match body.view(expr) {
                View::Call { callee, attrs, .. } => {
                    let stops = body.terms().attrs(attrs).bool(STOP) == Some(true);
                    !stops && body.op_symbol(callee).is_some_and(|op| cx.is_pure_op(op))
                }
                View::Tuple(_) | View::TupleGetItem { .. } => true,
                View::Constant(_) | View::Shape { .. } | View::Global { .. } | View::Op { .. } => {
                    true
                }
                _ => false,
            };
            if is_fit
                && is_outer[expr]
                && symbols.are_known(body.ty(expr))
                && operands().all(|operand| is_liftable[operand])
            {
                is_liftable[expr] = true;
                let reads_weight =
                    operands().any(|operand| is_lifted[operand] || is_weight[operand]);
                is_lifted[expr] = reads_weight;
            }
            while let Some((var, value)) = pairs.next_if(|(_, value)| *value <= expr) {
                is_liftable[var] = is_liftable[value];
                is_lifted[var] = is_lifted[value] || is_weight[value];
            }
        }
        let mut lift = Self {
            inputs: inputs.to_vec(),
            weights: weights.to_vec(),
            kept: Vec::new(),
            outputs: Vec::new(),
            is_liftable,
            is_lifted,
        };
        let does_work = lift.find_outputs(body);
        Ok(does_work.then_some(lift))
    }

    /// Finds what the function reads of weights and of what is lifted. Whether a call is lifted.
    fn find_outputs(&mut self, body: BodyView<'_>) -> bool {
        let mut read: HashSet<Expr> = HashSet::new();
        for expr in body.post_order().filter(|expr| !self.is_lifted[*expr]) {
            match body.view(expr) {
                // A binding of what is lifted goes.
                View::Let(bindings) => {
                    let own = bindings.bindings().filter(|(var, _)| !self.is_lifted[*var]);
                    read.extend(own.map(|(_, value)| value).chain([bindings.result()]));
                }
                View::Function { body: result, .. } => _ = read.insert(result),
                _ => read.extend(body.operands(expr).iter()),
            }
        }
        self.kept = self.weights.iter().copied().filter(|weight| read.contains(weight)).collect();
        self.outputs =
            body.post_order().filter(|expr| self.is_lifted[*expr] && read.contains(expr)).collect();
        let is_call = |expr: Expr| body.kind(expr) == Kind::CALL && self.is_lifted[expr];
        body.post_order().any(is_call)
    }

    /// The function that computes from the weights what the other one reads.
    fn transform(
        &self,
        func: &Function,
        earlier: Option<&(Symbol, Function)>,
        cx: &PassContext,
    ) -> Result<Function> {
        let body = func.view();
        let mut rw = Rewriter::new(cx);
        let types: Option<Vec<Type>> = self.weights.iter().map(|&weight| body.ty(weight)).collect();
        let types = types.ok_or_else(|| PassError::new("a weight has no type"))?;
        let own = earlier.and_then(|(_, earlier)| earlier.param_types().first().copied().flatten());
        let params_type = own.unwrap_or_else(|| cx.tuple_type(&types));
        let params = rw.var("params", Some(params_type));
        let given = match earlier {
            Some((name, _)) => {
                let callee = rw.named(Kind::GLOBAL, *name);
                rw.call(callee, &[params], Attrs::NONE, Some(cx.tuple_type(&types)))
            }
            None => params,
        };
        let mut map: HashMap<Expr, Expr> = HashMap::new();
        for (index, &weight) in self.weights.iter().enumerate() {
            let item = rw.tuple_get_item(given, index as u32);
            map.insert(weight, item);
        }
        if let Some(View::Let(bindings)) = func.result().map(|result| body.view(result)) {
            for (var, value) in bindings.bindings() {
                if self.is_liftable[value] {
                    let copy = rw.import(func, value, &mut map);
                    map.insert(var, copy);
                }
            }
        }
        let fields: Vec<Expr> = self
            .kept
            .iter()
            .chain(&self.outputs)
            .map(|&expr| rw.import(func, expr, &mut map))
            .collect();
        let result = rw.tuple(&fields);
        let list = rw.let_blocks(&[], result);
        let root = rw.function(&[params], list, None, cx.with_target_of(Attrs::NONE, func));
        rw.set_root(root);
        rw.finish()
    }

    /// The function without what is lifted.
    fn main(&self, func: &Function) -> Result<Function> {
        let body = func.view();
        let mut rw = func.edit();
        let mut params: Vec<Expr> = self.inputs.iter().chain(&self.kept).copied().collect();
        let names: HashSet<Symbol> = self.weights.iter().map(|&var| var_name(body, var)).collect();
        for &output in &self.outputs {
            let name = match body.view(output) {
                // The weight's own name would say that the weight is to be given.
                View::Var { name } if names.contains(&name) => {
                    format!("{}_transformed", body.terms().str(name))
                }
                View::Var { name } => body.terms().str(name).to_owned(),
                _ => "transformed".to_owned(),
            };
            let param = rw.var(&name, body.ty(output));
            rw.replace(output, param);
            params.push(param);
        }
        let (Some(list), View::Function { result: ty, attrs, .. }) =
            (func.result(), body.view(body.root()))
        else {
            return Ok(func.clone());
        };
        let View::Let(bindings) = body.view(list) else { return Ok(func.clone()) };
        let blocks: Vec<(bool, Vec<(Expr, Expr)>)> = bindings
            .blocks()
            .into_iter()
            .map(|block| {
                let own = (block.first..block.first + block.len)
                    .map(|index| bindings.binding(index))
                    .filter(|(var, _)| !self.is_lifted[*var])
                    .map(|(var, value)| (var, rw.body().resolve(value)))
                    .collect();
                (block.is_dataflow, own)
            })
            .collect();
        let result = rw.body().resolve(bindings.result());
        let is_empty = blocks.iter().all(|(_, own)| own.is_empty());
        let list = if is_empty { result } else { rw.let_blocks(&blocks, result) };
        let root = rw.function(&params, list, ty, attrs);
        let operands = rw.body().operands(root).to_vec();
        let root = rw.copy_node(body, body.root(), &operands);
        rw.set_type(root, None);
        rw.set_root(root);
        rw.finish()
    }
}

fn var_name(body: BodyView<'_>, var: Expr) -> Symbol {
    match body.view(var) {
        View::Var { name } => name,
        _ => Symbol(0),
    }
}

/// For each node, whether it is evaluated whenever the function is: outside of choices and closures.
fn outer_nodes(body: BodyView<'_>, result: Expr) -> SideTable<bool> {
    let mut is_outer = SideTable::new(body, false);
    is_outer[result] = true;
    for expr in body.post_order().rev().filter(|&expr| expr <= result) {
        if is_outer[expr] {
            let inner = match body.kind(expr) {
                Kind::IF => 1,
                Kind::FUNCTION => 0,
                _ => usize::MAX,
            };
            body.operands(expr).iter().take(inner).for_each(|operand| is_outer[operand] = true);
        }
    }
    is_outer
}

/// The symbols that types of weights have.
struct Symbols<'a> {
    terms: Terms<'a>,
    known: HashSet<Term>,
    /// For terms that were looked at, whether all of their symbols are known.
    fits: HashMap<Term, bool>,
}

impl Symbols<'_> {
    fn learn(&mut self, ty: Option<Type>) {
        // A dimension gives the value of a symbol only where it is that symbol.
        let mut waiting: Vec<Term> = ty.map(|ty| ty.into()).into_iter().collect();
        while let Some(term) = waiting.pop() {
            match self.terms.kind(term) {
                TermKind::DIM_SYMBOL => _ = self.known.insert(term),
                TermKind::TENSOR | TermKind::TUPLE | TermKind::SHAPE => {
                    waiting.extend(self.terms.children(term));
                }
                _ => {}
            }
        }
    }

    fn are_known(&mut self, ty: Option<Type>) -> bool {
        let Some(ty) = ty else { return true };
        if let Some(&fits) = self.fits.get(&ty.into()) {
            return fits;
        }
        let mut waiting: Vec<Term> = vec![ty.into()];
        let mut fits = true;
        let mut seen: HashSet<Term> = HashSet::new();
        while let Some(term) = waiting.pop() {
            match self.terms.kind(term) {
                TermKind::DIM_SYMBOL => fits &= self.known.contains(&term),
                _ if seen.insert(term) => waiting.extend(self.terms.children(term)),
                _ => {}
            }
        }
        self.fits.insert(ty.into(), fits);
        fits
    }
}
