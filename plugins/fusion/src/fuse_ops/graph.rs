//! The graph of a `let`: the calls of tensor programs that it binds, and who reads whose result.

use tenon_plugin_api::ir::Args;
use tenon_plugin_api::prelude::*;

use super::Programs;

pub(super) const NONE: u32 = u32::MAX;

/// A bound call of a tensor program with one result.
pub(super) struct Node {
    /// The number of its binding.
    pub(super) binding: usize,
    pub(super) var: Expr,
    pub(super) call: Expr,
    pub(super) program: Symbol,
    pub(super) pattern: OpPattern,
    target: Option<Term>,
    /// Whether anything but nodes of this graph reads its result.
    pub(super) is_seen_outside: bool,
}

/// Nodes in the order of their bindings, so each stands before those that read its result.
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    /// Where each node's readers begin; one more entry for the end of the last.
    first: Vec<u32>,
    readers: Vec<(u32, OpPattern)>,
}

/// Tables over the nodes of a function, shared by the graphs of its `let`s.
pub(super) struct Scratch {
    /// How often each variable is read.
    uses: SideTable<u32>,
    /// How many bindings each value has.
    bound: SideTable<u32>,
    /// The node that each variable stands for.
    node_of: SideTable<u32>,
    /// As what a group reads each node, while the group is made.
    read_as: Vec<u32>,
    /// The types of the tensors of a call.
    types: Vec<Type>,
}

impl Scratch {
    pub(super) fn of(body: BodyView<'_>) -> Self {
        let (uses, bound) = (SideTable::new(body, 0), SideTable::new(body, 0));
        let node_of = SideTable::new(body, NONE);
        let mut this = Self { uses, bound, node_of, read_as: Vec::new(), types: Vec::new() };
        for expr in body.post_order() {
            if body.kind(expr) == Kind::LET
                && let View::Let(bindings) = body.view(expr)
            {
                bindings.bindings().for_each(|(_, value)| this.bound[value] += 1);
            }
            for (position, operand) in body.operands(expr).iter().enumerate() {
                if body.kind(operand) == Kind::VAR && !body.is_binder(expr, position) {
                    this.uses[operand] += 1;
                }
            }
        }
        this
    }

    /// As what the group that is made reads a node; `NONE` where it does not yet.
    pub(super) fn read_as(&mut self, node: Expr) -> &mut u32 {
        if self.read_as.len() <= node.index() {
            self.read_as.resize(node.index() + 1, NONE);
        }
        &mut self.read_as[node.index()]
    }
}

impl Graph {
    pub(super) fn of(
        rw: &Rewriter,
        expr: Expr,
        effects: &Effects,
        scratch: &mut Scratch,
        programs: &mut Programs,
        module: &Module,
    ) -> Self {
        let body = rw.body();
        let mut nodes: Vec<Node> = Vec::new();
        // Writer, reader and the reader's pattern, in the order of the readers.
        let mut edges: Vec<(u32, u32, OpPattern)> = Vec::new();
        // For each node whether it reads memory, or one that it may be in a group with does: the group may stand
        // where all of them see the same.
        let mut reads_memory: Vec<bool> = Vec::new();
        let View::Let(bindings) = body.view(expr) else {
            return Self { nodes, first: vec![0], readers: Vec::new() };
        };
        nodes.reserve(bindings.len());
        for (binding, (var, call)) in bindings.bindings().enumerate() {
            let is_shared = scratch.bound.get(call).is_none_or(|&bound| bound != 1);
            let Some((program, args)) = program_call(body, call, programs.call_tir) else {
                continue;
            };
            let Some(known) = programs.get(program, module, body.terms()) else { continue };
            let Some(out) = body.ty(call) else { continue };
            scratch.types.clear();
            scratch.types.extend(args.iter().filter_map(|arg| body.ty(arg)).chain([out]));
            let are_typed = scratch.types.len() == args.len() + 1;
            if is_shared || !are_typed || !is_called_with(rw, &known.params, &scratch.types) {
                continue;
            }
            let reader = nodes.len() as u32;
            let mut is_bound_to_memory = effects.version(call) != 0;
            for arg in args.iter() {
                let writer = scratch.node_of.get(arg).copied().unwrap_or(NONE);
                let node = nodes.get(writer as usize).filter(|node| node.target == known.target);
                let Some(node) = node else { continue };
                let is_bound = reads_memory[writer as usize];
                if !is_bound || effects.is_quiet_between(node.call, call) {
                    is_bound_to_memory |= is_bound;
                    let pattern = edge_pattern(body, known.pattern, body.ty(arg), out);
                    edges.push((writer, reader, pattern));
                }
            }
            reads_memory.push(is_bound_to_memory);
            scratch.node_of[var] = reader;
            let (pattern, target, is_seen_outside) = (known.pattern, known.target, false);
            nodes.push(Node { binding, var, call, program, pattern, target, is_seen_outside });
        }
        let mut graph = Self { first: vec![0; nodes.len() + 1], readers: Vec::new(), nodes };
        graph.sort_edges(&edges);
        for (index, node) in graph.nodes.iter_mut().enumerate() {
            let inside = graph.first[index + 1] - graph.first[index];
            node.is_seen_outside = inside < scratch.uses[node.var];
            scratch.node_of[node.var] = NONE;
        }
        graph
    }

    fn sort_edges(&mut self, edges: &[(u32, u32, OpPattern)]) {
        for &(writer, ..) in edges {
            self.first[writer as usize + 1] += 1;
        }
        for index in 1..self.first.len() {
            self.first[index] += self.first[index - 1];
        }
        let mut next = self.first.clone();
        self.readers = vec![(0, OpPattern::Opaque); edges.len()];
        for &(writer, reader, pattern) in edges {
            let place = &mut next[writer as usize];
            self.readers[*place as usize] = (reader, pattern);
            *place += 1;
        }
    }

    /// The nodes that read a node's result, each with how it reads it.
    pub(super) fn readers(&self, node: u32) -> &[(u32, OpPattern)] {
        let node = node as usize;
        &self.readers[self.first[node] as usize..self.first[node + 1] as usize]
    }
}

/// The program and the tensors of a `call_tir` whose tensors are variables and constants.
fn program_call(body: BodyView<'_>, call: Expr, call_tir: Symbol) -> Option<(Symbol, Args<'_>)> {
    let View::Call { callee, args, .. } = body.view(call) else { return None };
    let View::Op { name } = body.view(callee) else { return None };
    let View::Global { name: program } = body.view(args.get(0)?) else { return None };
    let tensors = args.skip(1);
    let is_leaf = |arg: Expr| matches!(body.kind(arg), Kind::VAR | Kind::CONSTANT);
    (name == call_tir && tensors.iter().all(is_leaf)).then_some((program, tensors))
}

/// Whether the parameters of a program have these types, with dimensions in the place of its symbols.
fn is_called_with(rw: &Rewriter, params: &[Type], types: &[Type]) -> bool {
    let mut dims = Substitution::new();
    let cx = rw.cx();
    params == types
        || params.len() == types.len()
            && params.iter().zip(types).all(|(&param, &ty)| dims.match_type(&cx, param, ty))
}

/// How a program reads one argument: one that broadcasts reads what has the shape of its result element by
/// element.
fn edge_pattern(body: BodyView<'_>, pattern: OpPattern, arg: Option<Type>, out: Type) -> OpPattern {
    let dims = |ty| body.terms().tensor(ty).map(|(_, dims)| dims);
    match pattern {
        OpPattern::Broadcast if arg.and_then(dims) == dims(out) => OpPattern::Elementwise,
        pattern => pattern,
    }
}
