//! Editing a function.

use std::collections::HashMap;

use crate::abi::host::{Host, TransactionHandle};
use crate::ir::{
    Attrs, BodyView, Build, Expr, Kind, NodeSource, NodeSpec, Substitution, Symbol, Term, Type,
    View,
};
use crate::pass::{
    Bindings, Calls, Effects, Function, LetList, OpInfo, PassContext, PassError, Result,
};

/// A function being edited.
///
/// It shows the function with the replacements made so far. [`Rewriter::finish`] publishes: it applies
/// them, drops what is unreachable, and binds nested calls where the function is in block form. A
/// rewriter that is dropped leaves nothing behind.
pub struct Rewriter {
    transaction: TransactionHandle,
    /// Made when first asked for.
    bindings: Option<Bindings>,
    /// Made when first asked for.
    effects: Option<Effects>,
    base_len: usize,
    /// Of what is built.
    source: NodeSource,
}

const KNOWN_OPS: usize = 64;

impl Rewriter {
    /// Edits a function.
    pub fn edit(function: &Function) -> Self {
        let transaction = function.0.host().edit(Some(&function.0));
        let base_len = transaction.body().len();
        Self::of(transaction, base_len)
    }

    /// Builds a new function; [`Rewriter::set_root`] must be called.
    pub fn new(cx: &PassContext) -> Self {
        Self::on(cx.host())
    }

    pub(crate) fn on(host: &Host) -> Self {
        Self::of(host.edit(None), 0)
    }

    fn of(transaction: TransactionHandle, base_len: usize) -> Self {
        Self { transaction, bindings: None, effects: None, base_len, source: NodeSource::NONE }
    }

    /// Says what nodes came from that are built from here on, but for copies, which keep their own. Without it, or
    /// with [`NodeSource::NONE`], a node that is built is from where what it replaces was from, or what reads it.
    pub fn set_source(&mut self, source: NodeSource) {
        self.source = source;
    }

    /// The transaction, for whoever asks rules about it.
    pub(crate) fn transaction(&mut self) -> &mut TransactionHandle {
        &mut self.transaction
    }

    /// The nodes that the function had when the edit began, operands before their users.
    pub fn post_order(&self) -> impl DoubleEndedIterator<Item = Expr> + use<> {
        (0..self.base_len as u32).map(Expr)
    }

    /// What may be moved over what in the function as it was when the edit began. Calls of other functions may have
    /// any effect.
    pub fn effects(&mut self) -> &Effects {
        let (host, len) = (self.transaction.host(), self.base_len);
        let body = BodyView::new(self.transaction.body().records());
        self.effects.get_or_insert_with(|| {
            // The host is asked once for each operator, as long as two do not meet at one place.
            let mut known = [(Symbol(0), 0); KNOWN_OPS];
            let info = |op: Symbol| {
                let place = &mut known[op.0 as usize % KNOWN_OPS];
                if place.0 != op {
                    *place = (op, host.op_info(op));
                }
                OpInfo::from_code(place.1)
            };
            Effects::scan(body, len, info, |_| false)
        })
    }

    /// As [`Calls::definition`], in the function as it was when the edit began.
    pub fn original_definition(&mut self, expr: Expr) -> Expr {
        self.bindings().original(expr)
    }

    /// What the variables of the base stand for.
    fn bindings(&mut self) -> &mut Bindings {
        if self.bindings.is_none() {
            let len = self.base_len;
            self.effects();
            let body = BodyView::new(self.transaction.body().records());
            self.bindings = self.effects.as_ref().map(|effects| Bindings::of(body, len, effects));
        }
        self.bindings.as_mut().expect("they were just found")
    }

    /// Makes every use of `old` by the nodes the function had read `new`. Nodes that this rewriter built
    /// keep the operands they were given, so a replacement may be built from what it replaces.
    ///
    /// # Panics
    /// When either is no node of this body.
    pub fn replace(&mut self, old: Expr, new: Expr) {
        let body = self.transaction.body();
        let count = body.len();
        assert!(
            old.index() < count && new.index() < count,
            "{old:?} or {new:?} is not in this body"
        );
        if let Some(bindings) = &mut self.bindings {
            bindings.replaces(body.resolve(old));
        }
        self.transaction.replace(old, new);
    }

    /// Sets the root: a function or a tensor program.
    pub fn set_root(&mut self, root: Expr) {
        self.transaction.set_root(root);
    }

    /// Sets the type of a node; `None` has it inferred again.
    pub fn set_type(&mut self, expr: Expr, ty: Option<Type>) {
        self.transaction.set_type(expr, ty.map_or(0, |ty| ty.0));
    }

    /// Adds constant number `index` of another function, sharing its bytes.
    pub fn share_constant(&mut self, function: &Function, index: u32) -> Expr {
        self.transaction.share_constant(&function.0, index)
    }

    /// A copy of node `expr` of this body with other operands.
    pub fn rebuild(&mut self, expr: Expr, operands: &[Expr]) -> Expr {
        let spec = self.body().spec(expr);
        self.push(spec, operands)
    }

    /// A copy of node `expr` of this body with other attributes.
    pub fn with_attrs(&mut self, expr: Expr, attrs: Attrs) -> Expr {
        let spec = NodeSpec { attrs, ..self.body().spec(expr) };
        let operands: Vec<Expr> = self.body().operands_keeping_binders(expr).collect();
        self.push(spec, &operands)
    }

    /// Evaluates an operator call by the reference evaluator. Its arguments, with the replacements made so
    /// far, must be constants, tuples of constants or shapes; those of `call_tir` follow a tensor program of the
    /// module that the pass was given. The result is a new node: a constant or a tuple of constants.
    pub fn evaluate(&mut self, expr: Expr) -> Result<Expr> {
        self.transaction.evaluate(expr).map_err(|message| PassError::new(message).at(expr))
    }

    /// Copies what `root` of `from` reaches into this body. Nodes in `map` are taken as they are mapped;
    /// copied nodes are added to it. Constants share their bytes.
    pub fn import(&mut self, from: &Function, root: Expr, map: &mut HashMap<Expr, Expr>) -> Expr {
        self.import_with(from, root, map, &mut Substitution::new())
    }

    /// As [`Rewriter::import`], with dimensions in the place of symbols.
    pub fn import_with(
        &mut self,
        from: &Function,
        root: Expr,
        map: &mut HashMap<Expr, Expr>,
        dims: &mut Substitution,
    ) -> Expr {
        let body = from.view();
        let mut stack = vec![(root, false)];
        while let Some((expr, is_ready)) = stack.pop() {
            if map.contains_key(&expr) {
                continue;
            }
            if !is_ready {
                stack.push((expr, true));
                stack.extend(body.operands(expr).iter().rev().map(|operand| (operand, false)));
                continue;
            }
            let operands: Vec<Expr> =
                body.operands(expr).iter().map(|operand| map[&operand]).collect();
            let copy = self.copy_from(from, expr, &operands, dims);
            map.insert(expr, copy);
        }
        map[&root]
    }

    /// A copy of node `expr` of `from` with other operands, and with dimensions in the place of symbols. A
    /// constant shares its bytes.
    pub fn copy_from(
        &mut self,
        from: &Function,
        expr: Expr,
        operands: &[Expr],
        dims: &mut Substitution,
    ) -> Expr {
        let body = from.view();
        if let View::Constant(constant) = body.view(expr) {
            return self.share_constant(from, constant.index);
        }
        let mut spec = body.spec(expr);
        if !dims.is_empty() {
            let cx = self.cx();
            spec.ty = spec.ty.map(|ty| Type(dims.apply(&cx, ty).0));
            spec.attrs = Attrs(dims.apply(&cx, spec.attrs).0);
            if matches!(spec.kind, Kind::SHAPE | Kind::PRIM | Kind::FUNCTION) {
                spec.data = dims.apply(&cx, Term(spec.data)).0;
            }
        }
        self.push(spec, operands)
    }

    /// Writes the bindings of `block`, a `let` of the function that is edited, anew: `rewrite` is given each in
    /// order, as whether its block is a dataflow block, variable and value, and binds what is to take its place. What
    /// it replaces on the way is replaced in the values behind, and in the result.
    /// A `let` whose bindings stay as they were is left alone, one without any is its result. What is built on the way came from where the binding did.
    pub fn rewrite_bindings(
        &mut self,
        block: Expr,
        mut rewrite: impl FnMut(&mut Self, &mut LetList, bool, Expr, Expr) -> Result<()>,
    ) -> Result<()> {
        let View::Let(view) = self.view(block) else { return Ok(()) };
        let old: Vec<(bool, Expr, Expr)> = view
            .blocks()
            .iter()
            .flat_map(|block| {
                (block.first..block.first + block.len).map(|at| (block.is_dataflow, at))
            })
            .map(|(is_dataflow, at)| {
                let (var, value) = view.binding(at);
                (is_dataflow, var, value)
            })
            .collect();
        let result = view.result();
        let mut list = LetList::new();
        let outer = self.source;
        for &(is_dataflow, var, value) in &old {
            let value = self.body().resolve(value);
            let body = self.body();
            let own = [value, var].map(|expr| body.source(expr));
            self.source = own.into_iter().find(|own| !own.is_none()).unwrap_or(outer);
            rewrite(self, &mut list, is_dataflow, var, value)?;
        }
        self.source = outer;
        let result = self.body().resolve(result);
        if list.is_empty() {
            self.replace(block, result);
        } else if !list.iter().eq(old.iter().copied()) {
            let ty = self.body().ty(block);
            let new = list.finish(self, result);
            self.set_type(new, ty);
            self.replace(block, new);
        }
        Ok(())
    }

    /// Publishes the function: the same object when nothing was changed.
    pub fn finish(self) -> Result<Function> {
        self.transaction.finish().map(Function).map_err(PassError::new)
    }
}

impl Build for Rewriter {
    type Cx = Host;

    fn cx(&self) -> Host {
        self.transaction.host().clone()
    }

    fn with_cx<R>(&self, work: impl FnOnce(&Host) -> R) -> R {
        work(self.transaction.host())
    }

    fn body(&self) -> BodyView<'_> {
        self.transaction.body()
    }

    fn push(&mut self, spec: NodeSpec, operands: &[Expr]) -> Expr {
        let span = if spec.span == 0 { self.source.0 } else { spec.span };
        self.transaction.push(NodeSpec { span, ..spec }, operands)
    }

    fn constant(&mut self, ty: Type, bytes: &[u8]) -> Expr {
        match self.transaction.constant(ty.0, bytes) {
            Some(constant) => constant,
            None => panic!("{} bytes do not fit the type of this constant", bytes.len()),
        }
    }
}

impl Calls for Rewriter {
    fn definition(&mut self, expr: Expr) -> Expr {
        self.bindings();
        let body = self.transaction.body();
        match &mut self.bindings {
            Some(bindings) => bindings.definition(body, expr),
            None => expr,
        }
    }

    fn is_nested_read(&mut self, expr: Expr) -> bool {
        self.bindings();
        match (&self.bindings, &self.effects) {
            (Some(bindings), Some(effects)) => bindings.is_nested_read(effects, expr),
            _ => false,
        }
    }
}
