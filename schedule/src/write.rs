//! Writing a tree back as a program, with the regions of its blocks.

use rustc_hash::FxHashMap as HashMap;

use tenon_plugin_api::ir::{
    BlockIter, Build, BuildPrim, Context, Expr, Kind, NewBlock, NodeSpec, Walk,
};
use tenon_plugin_api::pass::{PassError, PrimFunc};

use crate::index::Sum;
use crate::refusal::Refusal;
use crate::schedule::Schedule;
use crate::tree::{BlockNode, Id, Iter, Node};

/// Attribute of a tensor program: what was done to it.
const TRACE: &str = "trace";

impl Schedule {
    /// The program as it is now. Its attribute `trace` says what was done to it.
    pub fn finish(mut self) -> Result<PrimFunc, PassError> {
        let trace = self.trace.to_string();
        self.write((!trace.is_empty()).then_some(trace));
        Ok(self.rw.finish()?.into())
    }

    /// The program as it is now, of which an attribute says something that holds.
    pub(crate) fn finish_with(mut self, attribute: &str) -> Result<PrimFunc, PassError> {
        self.write(None);
        let root = self.rw.body().root();
        let mut spec = self.rw.body().spec(root);
        let attrs = spec.attrs;
        spec.attrs = self.rw.with_cx(|cx| cx.with_attr(attrs, attribute, true.into()));
        let operands = self.rw.body().operands(root).to_vec();
        let root = self.rw.push(spec, &operands);
        self.rw.set_root(root);
        Ok(self.rw.finish()?.into())
    }

    /// The error of a primitive that was refused, or of anything else that is wrong with the schedule: it shows the program as
    /// it is now, with the statement that it is about underlined.
    pub fn explain(mut self, refusal: &Refusal) -> PassError {
        let error = PassError::new(refusal.to_string());
        let Some(place) = refusal.place else { return error };
        let shown = self.tree.walk(self.tree.root);
        let is_written =
            |&&id: &&Id| !matches!(self.tree.get(id), Node::Seq(stmts) if stmts.len() == 1);
        let order: Vec<Id> = shown.iter().filter(is_written).copied().collect();
        let Some(at) = order.iter().position(|&id| id == place) else { return error };
        self.write(None);
        let Ok(program) = self.rw.finish() else { return error };
        let body = program.view();
        let Some(root) = program.result() else { return error };
        let enters = body.walk(root).filter_map(|step| match step {
            Walk::Enter(stmt) => Some(stmt),
            Walk::Leave(_) => None,
        });
        match enters.into_iter().nth(at) {
            Some(node) => error.in_function(program.clone(), node),
            None => error,
        }
    }

    fn write(&mut self, trace: Option<String>) {
        let mut made: HashMap<Id, Expr> = HashMap::default();
        for id in self.tree.walk(self.tree.root).into_iter().rev() {
            let stmt = self.write_node(id, &made);
            made.insert(id, stmt);
        }
        let body = made[&self.tree.root];
        let root = self.rw.body().root();
        let mut spec = self.rw.body().spec(root);
        if let Some(trace) = trace {
            let before = self.rw.body().terms().attrs(spec.attrs).str(TRACE).map(str::to_owned);
            let whole = before.into_iter().chain([trace]).collect::<Vec<_>>().join("; ");
            let attrs = spec.attrs;
            spec.attrs = self.rw.with_cx(|cx| cx.with_attr(attrs, TRACE, whole.into()));
        }
        let operands: Vec<Expr> = self.params.iter().copied().chain([body]).collect();
        let root = self.rw.push(spec, &operands);
        self.rw.set_root(root);
    }

    fn write_node(&mut self, id: Id, made: &HashMap<Id, Expr>) -> Expr {
        match self.tree.get(id).clone() {
            Node::For(each) => {
                let spec = NodeSpec {
                    data: each.kind as u32,
                    aux: each.thread.0,
                    attrs: each.attrs,
                    ..NodeSpec::new(Kind::FOR)
                };
                self.rw.push(spec, &[each.var, each.min, each.extent, made[&each.body]])
            }
            Node::Block(block) => self.write_block(id, &block, made),
            Node::Seq(stmts) => {
                let stmts: Vec<Expr> = stmts.iter().map(|stmt| made[stmt]).collect();
                self.rw.seq(&stmts)
            }
            Node::If { cond, then, otherwise } => {
                let otherwise = otherwise.map(|otherwise| made[&otherwise]);
                self.rw.if_stmt(cond, made[&then], otherwise)
            }
            Node::Alloc(buffer) => self.rw.alloc(buffer),
            Node::Let { var, value } => self.rw.let_stmt(var, value),
            Node::Store { buffer, value, indices } => self.rw.store(buffer, value, &indices),
            Node::Evaluate(value) => self.rw.push(NodeSpec::new(Kind::EVALUATE), &[value]),
            Node::Gone => self.rw.seq(&[]),
        }
    }

    fn write_block(&mut self, id: Id, block: &BlockNode, made: &HashMap<Id, Expr>) -> Expr {
        let (reads, writes) = self.regions(id);
        let has_domains = self.has_own_domains(id, block);
        let iter = |iter: &Iter| BlockIter {
            var: iter.var,
            binding: iter.binding,
            kind: iter.kind,
            domain: has_domains.then_some([iter.min, iter.extent]),
        };
        let iters: Vec<BlockIter> = block.iters.iter().map(iter).collect();
        self.rw.block(&NewBlock {
            name: block.name,
            iters: &iters,
            predicate: block.predicate,
            reads: &reads,
            writes: &writes,
            init: block.init.map(|init| made[&init]),
            body: made[&block.body],
            attrs: block.attrs,
        })
    }

    /// Whether the domain of an iterator is not just what its binding goes through, as far as that is known of what is around the block: who
    /// reads the program knows of no quotient that stands in a domain which is left out.
    fn has_own_domains(&mut self, id: Id, block: &BlockNode) -> bool {
        let (mut space, body) = (self.space_around(id), self.body());
        let bindings: Vec<Sum> =
            block.iters.iter().map(|iter| space.read(body, iter.binding)).collect();
        let ranges: Vec<Option<[Sum; 2]>> =
            bindings.iter().map(|binding| space.extremes(binding, &|_| false)).collect();
        block.iters.iter().zip(ranges).any(|(iter, range)| {
            let [min, extent] = [iter.min, iter.extent].map(|expr| space.read(body, expr));
            range.is_none_or(|[low, high]| low != min || high.sub(&low).add_int(1) != extent)
        })
    }
}
