//! Computes in f16 or bf16 what gains by it, and keeps the rest in f32.
//!
//! ```ir
//! %c = nn.conv2d(%x, %w)                %h = cast(%x) { dtype = "f16" }
//! %d = nn.relu(%c)                      %v = cast(%w) { dtype = "f16" }
//! %e = nn.softmax(%d)             =>    %c = nn.conv2d(%h, %v) { out_dtype = "f32" }
//!                                       %t = cast(%c) { dtype = "f16" }
//!                                       %d = nn.relu(%t)
//!                                       %e = nn.softmax(cast(%d) { dtype = "f32" })
//! ```
//!
//! A rule of the facet `precision` says of an operator that it is always computed narrow, or follows its arguments; one
//! without a rule never is. Options say otherwise. What is
//! computed narrow has a cast back to f32 behind it, which all that is not narrow reads; casts that nothing reads
//! go with `relax.DeadCodeElimination`, casts of weights with `relax.FoldConstant`. Products are summed in f32
//! and give f32, unless `out_dtype` says otherwise. Calls of functions and tensor programs, choices and results
//! stay f32, so signatures do; parameters that are named in `narrow_params` become narrow.
//!
//! Where `precision` is asked for the whole compilation, less is narrow on processors: their narrow floats become f32 in registers, so what
//! computes much for each byte that it reads, as convolutions and products of many rows, would only lose by it. There a call is computed
//! narrow whose rule of the facet `cost` says of it less than 8 operations for each byte, or has unknown sizes; and whose largest argument
//! is stored, or narrow already: one that was just computed, as keys and values so far, is read wide in the time in which it is converted.
//! `always` says otherwise.
//!
//! After P. Micikevicius et al., "Mixed Precision Training", 2018.

use std::collections::{HashMap, HashSet};

use tenon_plugin_api::prelude::*;
use tenon_plugin_api::rule::{CostOf, NarrowPrecision, Precision, Rules};

/// Operations that a core does in the time in which it reads a byte of memory.
const OPERATIONS_PER_BYTE: i64 = 8;

/// Computes in f16 or bf16 what gains by it, and keeps the rest in f32.
#[pass(
    name = "relax.ToMixedPrecision",
    aliases = ["relax.transform.ToMixedPrecision", "relay._transform.ToMixedPrecision",
               "raf.pass_.AutoCast"],
    opt_level = 0,
    phase = "optimize",
    requires = ["relax.Normalize"],
    before = ["relax.FoldConstant"],
    asks = ["cost", "precision"],
    idempotent = true,
    tolerance = 0.05
)]
fn to_mixed_precision(
    func: Function,
    _: &Module,
    cx: &PassContext,
    options: Options,
) -> Result<Function> {
    let narrow = match options.precision.as_str() {
        "" => options.dtype.as_str(),
        asked => asked,
    };
    if narrow == "f32" {
        return Ok(func);
    }
    let out = options.out_dtype.as_str();
    if out != "f32" && out != narrow {
        return Err(PassError::new(format!("`out_dtype` is f32 or {narrow}, not {out}")));
    }
    let is_for_cpu = cx.target().str("kind").is_none_or(|kind| kind == "cpu");
    let body = func.view();
    let mut pass = Mixed {
        body,
        rw: func.edit(),
        dtype: DType::from_name(narrow).unwrap_or(DType::F16),
        keeps_sums: out == "f32",
        rules: cx.rules(),
        costs: (!options.precision.is_empty() && is_for_cpu).then(|| cx.rules()),
        said: said(&options),
        forms: HashMap::new(),
        sources: HashSet::new(),
        at_hand: HashMap::default(),
    };
    pass.narrow_params(&options.narrow_params);
    for expr in body.post_order() {
        match body.view(expr) {
            View::Call { callee, attrs, .. } => {
                if let View::Op { name } = body.view(callee) {
                    pass.call(expr, name, attrs)?;
                }
            }
            View::TupleGetItem { tuple, index } => pass.item(expr, tuple, index),
            _ => {}
        }
    }
    pass.rw.finish()
}

#[derive(Options)]
struct Options {
    /// the narrow element type; f32 leaves all as it is
    #[option(default = "f16", one_of = ["f16", "bf16", "f32"])]
    dtype: String,
    /// the narrow element type where it is asked for the whole compilation, as `tenon compile --precision` does
    #[option(default = "", one_of = ["", "f16", "bf16", "f32"])]
    precision: String,
    /// element type of products: f32 or the narrow one
    #[option(default = "f32", one_of = ["f32", "f16", "bf16"])]
    out_dtype: String,
    /// names of parameters that become narrow
    #[option(default = [])]
    narrow_params: Vec<String>,
    /// operators that are computed narrow
    #[option(default = [])]
    always: Vec<Symbol>,
    /// operators that are computed as their arguments are
    #[option(default = [])]
    follow: Vec<Symbol>,
    /// operators that are computed in f32
    #[option(default = [])]
    never: Vec<Symbol>,
}

/// What the options say of operators.
fn said(options: &Options) -> HashMap<Symbol, Said> {
    let lists = [
        (&options.always, Said::Always),
        (&options.follow, Said::Follow),
        (&options.never, Said::Never),
    ];
    lists.into_iter().flat_map(|(ops, said)| ops.iter().map(move |&op| (op, said))).collect()
}

/// What an option says of an operator.
#[derive(Clone, Copy)]
enum Said {
    Always,
    Follow,
    Never,
}

struct Mixed<'a> {
    /// The function as it was.
    body: BodyView<'a>,
    rw: Rewriter,
    /// The narrow element type.
    dtype: DType,
    /// Whether products give f32.
    keeps_sums: bool,
    rules: Rules<NarrowPrecision>,
    /// Where what computes much stays wide.
    costs: Option<Rules<CostOf>>,
    said: HashMap<Symbol, Said>,
    /// For values of the function, their narrow form once there is one.
    forms: HashMap<Expr, Expr>,
    /// The values that are computed narrow.
    sources: HashSet<Expr>,
    /// Of values that were asked for, whether they are stored, narrow, or follow such a value.
    at_hand: HashMap<Expr, bool>,
}

impl Mixed<'_> {
    fn call(&mut self, expr: Expr, op: Symbol, attrs: Attrs) -> Result<()> {
        let args = self.body.operands(expr).skip(1).to_vec();
        let precision = self.precision(expr, op)?;
        let is_narrow = match precision {
            Precision::Always { .. } => args.iter().all(|&arg| self.is_wide(arg)),
            Precision::Follow => self.follows(&args),
            Precision::Never => false,
        };
        if !is_narrow {
            return Ok(());
        }
        let sums = match precision {
            Precision::Always { sums } if self.keeps_sums => sums,
            _ => None,
        };
        let attrs = match &sums {
            Some(sums) => self.rw.cx().with_attr(attrs, sums, "f32".into()),
            None => attrs,
        };
        let args: Vec<Expr> = args.iter().map(|&arg| self.narrow(arg)).collect();
        let value = self.rw.call_op(self.body.terms().str(op), &args, attrs);
        self.sources.insert(expr);
        if sums.is_some() {
            self.rw.replace(expr, value);
        } else {
            self.set_narrow(expr, value);
        }
        Ok(())
    }

    /// When a call of an operator is computed narrow: what the options say, else its rule.
    fn precision(&mut self, expr: Expr, op: Symbol) -> Result<Precision> {
        let by_rule = self.rules.precision(&mut self.rw, op, expr)?.unwrap_or(Precision::Never);
        let has_no_gain = self.computes_much(expr, op)? || self.converts_much(expr)?;
        Ok(match (self.said.get(&op), by_rule) {
            (None, Precision::Always { .. }) if has_no_gain => Precision::Never,
            (None, by_rule) => by_rule,
            (Some(Said::Always), Precision::Always { sums }) => Precision::Always { sums },
            (Some(Said::Always), _) => Precision::Always { sums: None },
            (Some(Said::Follow), _) => Precision::Follow,
            (Some(Said::Never), _) => Precision::Never,
        })
    }

    /// Whether a call takes as long narrow as wide, since it computes much for each byte.
    fn computes_much(&mut self, expr: Expr, op: Symbol) -> Result<bool> {
        let Some(costs) = &mut self.costs else { return Ok(false) };
        let Some(cost) = costs.cost(&mut self.rw, op, expr)? else { return Ok(false) };
        let known = |dim| self.body.terms().dim_value(dim);
        Ok(match (known(cost.flops), known(cost.bytes)) {
            (Some(flops), Some(bytes)) => flops / OPERATIONS_PER_BYTE >= bytes,
            _ => false,
        })
    }

    /// Whether the largest argument of a call would have to be converted each time; not where a size is not known.
    fn converts_much(&mut self, call: Expr) -> Result<bool> {
        if self.costs.is_none() {
            return Ok(false);
        }
        let mut largest = None;
        for arg in self.body.operands(call).skip(1).iter() {
            let Some((_, dims)) = self.rw.tensor(arg) else { return Ok(false) };
            let extents = dims.iter().map(|&dim| self.body.terms().dim_value(dim));
            let Some(elements) = extents.product::<Option<i64>>() else { return Ok(false) };
            if largest.is_none_or(|(most, _)| elements > most) {
                largest = Some((elements, arg));
            }
        }
        match largest {
            Some((_, arg)) => Ok(!self.is_at_hand(arg)?),
            None => Ok(false),
        }
    }

    /// Whether a value is stored or narrow, or made by what only follows such a value. Asked of many calls, a chain is gone through once.
    fn is_at_hand(&mut self, mut at: Expr) -> Result<bool> {
        let mut path = Vec::new();
        let is_at_hand = loop {
            let definition = self.rw.original_definition(at);
            if let Some(&known) = self.at_hand.get(&definition) {
                break known;
            }
            path.push(definition);
            if self.sources.contains(&definition) {
                break true;
            }
            let View::Call { callee, args, .. } = self.body.view(definition) else {
                break matches!(self.body.kind(definition), Kind::CONSTANT | Kind::VAR);
            };
            let (View::Op { name }, Some(arg)) = (self.body.view(callee), args.get(0)) else {
                break false;
            };
            match self.rules.precision(&mut self.rw, name, definition)? {
                Some(Precision::Follow) => at = arg,
                _ => break false,
            }
        };
        self.at_hand.extend(path.into_iter().map(|definition| (definition, is_at_hand)));
        Ok(is_at_hand)
    }

    /// A field of a tuple that is computed narrow is narrow.
    fn item(&mut self, expr: Expr, tuple: Expr, index: usize) {
        let tuple = self.rw.original_definition(tuple);
        if let Some(&narrow) = self.forms.get(&tuple).filter(|_| self.sources.contains(&tuple)) {
            let value = self.rw.tuple_get_item(narrow, index as u32);
            self.sources.insert(expr);
            self.set_narrow(expr, value);
        }
    }

    /// Sets what a value is in its narrow form; what reads it wide reads a cast. A tuple has no cast: its fields
    /// do.
    fn set_narrow(&mut self, expr: Expr, value: Expr) {
        self.forms.insert(expr, value);
        if self.element_type(expr) == Some(DType::F32) {
            let wide = self.rw.in_dtype(value, DType::F32);
            self.rw.replace(expr, wide);
        }
    }

    /// Whether a call that follows is computed narrow: an argument is, and all others can be without a loss,
    /// or are constants.
    fn follows(&mut self, args: &[Expr]) -> bool {
        let mut leaves: Vec<Expr> = Vec::new();
        for &arg in args {
            let definition = self.rw.original_definition(arg);
            match self.body.view(definition) {
                View::Tuple(fields) => leaves.extend(fields.to_vec()),
                _ => leaves.push(arg),
            }
        }
        let mut is_source = false;
        for leaf in leaves {
            let definition = self.rw.original_definition(leaf);
            let is_narrow = self.sources.contains(&definition);
            is_source |= is_narrow;
            let is_fit = is_narrow || !self.is_float(leaf) || self.rw.is_constant(leaf);
            if !is_fit {
                return false;
            }
        }
        is_source
    }

    /// The narrow form of a value; of a tuple that is spelled out, field by field. What is no f32 is itself.
    fn narrow(&mut self, expr: Expr) -> Expr {
        let definition = self.rw.original_definition(expr);
        if let Some(&form) = self.forms.get(&definition) {
            return form;
        }
        if let View::Tuple(fields) = self.body.view(definition) {
            let fields: Vec<Expr> = fields.iter().map(|field| self.narrow_leaf(field)).collect();
            return self.rw.tuple(&fields);
        }
        self.narrow_leaf(expr)
    }

    fn narrow_leaf(&mut self, expr: Expr) -> Expr {
        let definition = self.rw.original_definition(expr);
        if let Some(&form) = self.forms.get(&definition) {
            return form;
        }
        if !self.is_wide(expr) {
            return self.rw.body().resolve(expr);
        }
        let wide = self.rw.body().resolve(expr);
        let form = self.rw.in_dtype(wide, self.dtype);
        // Memory may be another value where it is read next.
        if !self.rw.effects().is_memory(expr) {
            self.forms.insert(definition, form);
        }
        form
    }

    fn is_wide(&self, expr: Expr) -> bool {
        self.element_type(expr) == Some(DType::F32)
    }

    fn is_float(&self, expr: Expr) -> bool {
        self.element_type(expr).is_some_and(DType::is_float)
    }

    fn element_type(&self, expr: Expr) -> Option<DType> {
        let ty = self.body.ty(expr)?;
        match self.body.terms().ty(ty) {
            TypeView::Tensor { dtype, .. } => Some(dtype),
            _ => None,
        }
    }

    /// Makes the parameters of the function that are named narrow.
    fn narrow_params(&mut self, names: &[String]) {
        let body = self.body;
        let names: HashSet<&str> = names.iter().map(String::as_str).collect();
        let View::Function { params, body: result, result: ty, attrs } = body.view(body.root())
        else {
            return;
        };
        let mut params = params.to_vec();
        let mut is_changed = false;
        for param in &mut params {
            let View::Var { name } = body.view(*param) else { continue };
            let name = body.terms().str(name);
            let Some((DType::F32, dims)) = self.rw.tensor(*param) else { continue };
            if names.contains(name) {
                let narrow = self.rw.cx().tensor_type(self.dtype, &dims);
                let own = self.rw.var(name, Some(narrow));
                self.sources.insert(*param);
                self.set_narrow(*param, own);
                *param = own;
                is_changed = true;
            }
        }
        if is_changed {
            let root = self.rw.function(&params, result, ty, attrs);
            let operands = self.rw.body().operands(root).to_vec();
            let root = self.rw.copy_node(body, body.root(), &operands);
            self.rw.set_type(root, None);
            self.rw.set_root(root);
        }
    }
}
