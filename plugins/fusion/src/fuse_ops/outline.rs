//! Makes groups functions, and calls them.

use rustc_hash::{FxHashMap, FxHashSet};
use tenon_plugin_api::prelude::*;

use super::graph::{Graph, NONE, Node, Scratch};
use super::groups::Groups;
use crate::names;
use crate::symbols::Symbols;

/// The functions made so far.
#[derive(Default)]
pub(super) struct Outlines {
    by_group: FxHashMap<Vec<u32>, Symbol>,
    /// How the calls of a program appear in the names of groups.
    labels: FxHashMap<Symbol, String>,
}

/// Calls of which one function is made.
struct Group<'g> {
    members: Vec<&'g Node>,
    /// What they read from outside, in the order in which they read it.
    args: Vec<Expr>,
    /// What the members read, one behind the other: `2 * m` for the result of member m, `2 * a + 1` for argument a.
    reads: Vec<u32>,
    /// Symbols within the dimensions of its tensors that are none of its arguments' dimensions. It is told them.
    unsaid: Vec<Dim>,
}

impl Outlines {
    /// The `let` with its groups replaced by calls.
    pub(super) fn apply(
        &mut self,
        rw: &mut Rewriter,
        expr: Expr,
        graph: &Graph,
        (mut groups, scratch): (Groups, &mut Scratch),
        module: &mut Module,
        cx: &PassContext,
    ) -> Result<Expr> {
        let View::Let(bindings) = rw.view(expr) else { return Ok(expr) };
        let (blocks, result) = (bindings.blocks(), bindings.result());
        let mut values: Vec<Option<(Expr, Expr)>> = bindings.bindings().map(Some).collect();
        for group in groups_of(graph, &mut groups, scratch, rw.body()) {
            let name = self.function(rw, &group, module, cx)?;
            let (last, others) = group.members.split_last().expect("a group has members");
            others.iter().for_each(|member| values[member.binding] = None);
            let body = rw.body();
            let sources = group.members.iter().map(|member| body.source(member.call));
            rw.set_source(NodeSource::union(cx, sources));
            let callee = rw.global(cx.terms().str(name));
            let ty = rw.body().ty(last.call);
            let mut args = group.args.clone();
            if !group.unsaid.is_empty() {
                args.push(rw.shape(&group.unsaid));
            }
            let call = rw.call(callee, &args, Attrs::NONE, ty);
            rw.set_source(NodeSource::NONE);
            values[last.binding] = Some((last.var, call));
        }
        let kept = |first: usize, len: usize| values[first..first + len].iter().flatten().copied();
        let blocks: Vec<(bool, Vec<(Expr, Expr)>)> = blocks
            .iter()
            .map(|block| (block.is_dataflow, kept(block.first, block.len).collect()))
            .collect();
        let fused = rw.let_blocks(&blocks, result);
        let ty = rw.body().ty(expr);
        rw.set_type(fused, ty);
        Ok(fused)
    }

    /// The function of a group: an equal one that was made before, or a new one.
    fn function(
        &mut self,
        rw: &Rewriter,
        group: &Group<'_>,
        module: &mut Module,
        cx: &PassContext,
    ) -> Result<Symbol> {
        let body = rw.body();
        let key = group.key(body);
        if let Some(&name) = self.by_group.get(&key) {
            return Ok(name);
        }
        let name = module.fresh_name(&self.name(group, module, cx));
        module.insert(name, &group.build(body, cx)?);
        self.by_group.insert(key, name);
        Ok(name)
    }

    /// `fused_`, then what the members compute.
    fn name(&mut self, group: &Group<'_>, module: &Module, cx: &PassContext) -> String {
        let terms = cx.terms();
        for member in &group.members {
            self.labels.entry(member.program).or_insert_with(|| {
                let attrs = module.get(member.program).map_or(Attrs::NONE, |func| func.attrs());
                names::label(terms, attrs, terms.str(member.program)).to_owned()
            });
        }
        let labels = group.members.iter().map(|member| self.labels[&member.program].as_str());
        format!("fused_{}", names::join(labels))
    }
}

/// The groups of two and more in the order of their last calls.
fn groups_of<'g>(
    graph: &'g Graph,
    groups: &mut Groups,
    scratch: &mut Scratch,
    body: BodyView<'_>,
) -> Vec<Group<'g>> {
    let nodes = graph.nodes.len() as u32;
    let root_of: Vec<u32> = (0..nodes).map(|node| groups.find(node)).collect();
    // The last call of a group stands for it.
    let roots = (0..nodes).filter(|&node| root_of[node as usize] == node && !groups.is_alone(node));
    let mut number = vec![0; graph.nodes.len()];
    let mut members: Vec<Vec<&Node>> = Vec::new();
    for root in roots.collect::<Vec<_>>() {
        number[root as usize] = members.len();
        members.push(Vec::with_capacity(groups.size(root)));
    }
    for (node, root) in graph.nodes.iter().zip(root_of) {
        if !groups.is_alone(root) {
            members[number[root as usize]].push(node);
        }
    }
    let groups = members.into_iter().map(|members| Group::of(members, scratch, body));
    groups.filter(|group| group.says_its_sizes(body)).collect()
}

impl<'g> Group<'g> {
    fn of(members: Vec<&'g Node>, scratch: &mut Scratch, body: BodyView<'_>) -> Self {
        let mut args: Vec<Expr> = Vec::new();
        let mut reads = Vec::with_capacity(2 * members.len());
        for (index, member) in members.iter().enumerate() {
            for tensor in tensors(body, member.call) {
                let read = scratch.read_as(tensor);
                if *read == NONE {
                    args.push(tensor);
                    *read = 2 * args.len() as u32 - 1;
                }
                reads.push(*read);
            }
            *scratch.read_as(member.var) = 2 * index as u32;
        }
        let own = members.iter().map(|member| member.var);
        own.chain(args.iter().copied()).for_each(|read| *scratch.read_as(read) = NONE);
        let mut group = Self { members, args, reads, unsaid: Vec::new() };
        group.unsaid = group.unsaid(body);
        group
    }

    /// The members, each with what it reads.
    fn members<'a>(&'a self, body: BodyView<'a>) -> impl Iterator<Item = (&'g Node, &'a [u32])> {
        let mut rest = &self.reads[..];
        self.members.iter().map(move |&member| {
            let (reads, others) = rest.split_at(tensors(body, member.call).len());
            rest = others;
            (member, reads)
        })
    }

    fn unsaid(&self, body: BodyView<'_>) -> Vec<Dim> {
        let mut symbols = Symbols::new(body.terms());
        let params = self.args.iter().filter_map(|&arg| body.ty(arg));
        params.clone().for_each(|ty| symbols.add(Some(ty.into())));
        self.members.iter().for_each(|it| symbols.add(body.ty(it.call).map(Term::from)));
        symbols.unsaid_by(params)
    }

    /// Whether what it reads and gives says how large all is: nobody would tell a program a symbol that stands between its members
    /// alone.
    fn says_its_sizes(&self, body: BodyView<'_>) -> bool {
        let last = self.members.last().map(|member| member.call);
        let terms = body.terms();
        let inside = dims(body, self.members.iter().map(|member| member.call));
        let mut inside = inside.filter(|&dim| terms.dim_value(dim).is_none()).peekable();
        if inside.peek().is_none() {
            return true;
        }
        let said: FxHashSet<Dim> = dims(body, self.args.iter().copied().chain(last)).collect();
        inside.all(|dim| {
            let mut symbols = Symbols::new(terms);
            symbols.add(Some(dim.into()));
            said.contains(&dim) || symbols.found.iter().all(|symbol| said.contains(symbol))
        })
    }

    /// Equal for groups that one function computes: programs, types and who reads whom.
    fn key(&self, body: BodyView<'_>) -> Vec<u32> {
        let (members, reads, args) = (self.members.len(), self.reads.len(), self.args.len());
        let mut key = Vec::with_capacity(1 + 2 * members + reads + args + self.unsaid.len());
        key.push(members as u32);
        for (member, reads) in self.members(body) {
            key.extend([member.program.0, body.raw_node(member.call).ty]);
            key.extend(reads);
        }
        key.extend(self.args.iter().map(|&arg| body.raw_node(arg).ty));
        key.extend(self.unsaid.iter().map(|dim| dim.0));
        key
    }

    fn build(&self, body: BodyView<'_>, cx: &PassContext) -> Result<Function> {
        let mut rw = Rewriter::new(cx);
        let terms = cx.terms();
        let mut params: Vec<Expr> = self
            .args
            .iter()
            .map(|&arg| {
                let name = match body.view(arg) {
                    View::Var { name } => terms.str(name),
                    _ => "constant",
                };
                rw.var(name, body.ty(arg))
            })
            .collect();
        if !self.unsaid.is_empty() {
            let ty = rw.cx().shape_type(Some(&self.unsaid));
            params.push(rw.var("dims", Some(ty)));
        }
        let call_tir = rw.op("call_tir");
        let mut bindings: Vec<(Expr, Expr)> = Vec::with_capacity(self.members.len());
        for (member, reads) in self.members(body) {
            let mut operands = vec![rw.global(terms.str(member.program))];
            operands.extend(reads.iter().map(|&read| match read % 2 {
                0 => bindings[read as usize / 2].0,
                _ => params[read as usize / 2],
            }));
            let ty = body.ty(member.call);
            rw.set_source(body.source(member.call));
            let call = rw.call(call_tir, &operands, body.attrs(member.call), ty);
            let name = terms.str(Symbol(body.raw_node(member.var).data));
            bindings.push((rw.var(name, ty), call));
        }
        rw.set_source(NodeSource::NONE);
        let (result, last) = *bindings.last().expect("a group has members");
        let ty = rw.body().ty(last);
        let value = rw.let_blocks(&[(false, bindings)], result);
        let attrs = cx.attrs(&[("Primitive", 1i64.into())]);
        let root = rw.function(&params, value, ty, attrs);
        let root = rw.private(root);
        rw.set_root(root);
        rw.finish()
    }
}

/// The dimensions of tensors.
fn dims<'a>(body: BodyView<'a>, tensors: impl Iterator<Item = Expr>) -> impl Iterator<Item = Dim> {
    let of = move |expr| body.terms().tensor(body.ty(expr)?).map(|(_, dims)| dims);
    tensors.filter_map(of).flatten().copied()
}

/// What a `call_tir` reads.
fn tensors(body: BodyView<'_>, call: Expr) -> impl ExactSizeIterator<Item = Expr> {
    // The operator and the program come first.
    body.operands(call).skip(2).iter()
}
