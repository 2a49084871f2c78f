//! Writes the program of a group as its plan says.
//!
//! What is copied into what is a tree of frames: the loops of a root, inside it the elements that it
//! computes where it reads them, inside those others. A frame walks over the nodes of one program, operands
//! first, and waits where it enters another; the frames are a list, so nothing here recurses.

use std::collections::HashMap;

use tenon_plugin_api::ir::NodeSpec;
use tenon_plugin_api::prelude::*;

use super::group::{Buffer, Group, Member};
use super::plan::{Fate, Plan, Tail};
use super::program::{Axis, Extent, Nest};
use crate::symbols::Symbols;

/// A program, and which of the group's inputs it takes.
pub(super) struct Merged {
    pub(super) func: Function,
    pub(super) inputs: Vec<(usize, Option<u32>)>,
    pub(super) result: Type,
}

pub(super) fn emit(group: &Group, plan: &Plan, attrs: Attrs, cx: &PassContext) -> Result<Merged> {
    let mut emitter = Emitter {
        rw: Rewriter::new(cx),
        group,
        plan,
        buffers: vec![None; group.buffers.len()],
        scope: None,
        names: HashMap::new(),
    };
    let mut stmts = emitter.roots();
    let outputs: Vec<Expr> = group.outputs.iter().map(|&at| emitter.buffer(at)).collect();
    emitter.take_what_says_symbols();
    let Emitter { mut rw, buffers, .. } = emitter;
    let mut params = Vec::new();
    let mut inputs = Vec::new();
    let mut allocs = Vec::new();
    for (number, (buffer, made)) in group.buffers.iter().zip(&buffers).enumerate() {
        let Some(made) = *made else { continue };
        if buffer.writer.is_none() {
            params.push(made);
            inputs.push(group.inputs[number]);
        } else if !buffer.is_output {
            allocs.push(rw.alloc(made));
        }
    }
    stmts.splice(0..0, allocs);
    let body = rw.seq(&stmts);
    params.extend(&outputs);
    let root = rw.prim_func(&params, outputs.len() as u32, body, attrs);
    let root = rw.private(root);
    rw.set_root(root);
    Ok(Merged { func: rw.finish()?, inputs, result: group.result })
}

struct Emitter<'g> {
    rw: Rewriter,
    group: &'g Group,
    plan: &'g Plan,
    /// The group's buffers in the program, as far as they are touched.
    buffers: Vec<Option<Expr>>,
    /// Where scalars are defined, within the loops of a nest.
    scope: Option<Scope>,
    /// How many blocks have each name.
    names: HashMap<Symbol, u32>,
}

#[derive(Default)]
struct Scope {
    stmts: Vec<Expr>,
    /// For members of which one element is read throughout, that element.
    elements: HashMap<usize, Expr>,
}

/// A copy that is being made.
struct Frame<'g> {
    member: usize,
    goal: Goal<'g>,
    next: usize,
    end: usize,
    /// For each node of the program, its copy.
    copies: Vec<Option<Expr>>,
}

enum Goal<'g> {
    /// The whole body, with what is done with each element of the result.
    Body(Option<&'g Tail>),
    /// An element of a nest's result; shared if it is the same for all that read it, in so many places.
    Element { is_shared: bool, uses: u32 },
    /// The statements inside the loops of a nest.
    Inner,
}

enum Step<'g> {
    Copied(Expr),
    Enter(Frame<'g>),
}

impl<'g> Emitter<'g> {
    /// The roots' statements. One with a tail stands where the tail stood: what the tail reads besides is
    /// computed before it, and nothing in between reads the root's result.
    fn roots(&mut self) -> Vec<Expr> {
        let mut owner: Vec<Option<usize>> = vec![None; self.group.members.len()];
        let mut stmts = Vec::new();
        for (index, fate) in self.plan.fates.iter().enumerate() {
            match fate {
                Fate::Dead | Fate::Inlined { .. } => {}
                Fate::Root { tail: Some(tail) } => owner[tail.member] = Some(index),
                Fate::Root { tail: None } => stmts.push(self.root(index, None)),
                Fate::Tail => {
                    let owner = owner[index].expect("a tail comes after its owner");
                    let Fate::Root { tail } = &self.plan.fates[owner] else { continue };
                    stmts.push(self.root(owner, tail.as_ref()));
                }
            }
        }
        stmts
    }

    fn root(&mut self, index: usize, tail: Option<&'g Tail>) -> Expr {
        let program = &self.group.members[index].program;
        let body = program.func.view();
        let Some(nest) = &program.nest else {
            let end = program.body.index() + 1;
            return self.run(self.frame(index, Goal::Body(tail), end));
        };
        let fresh = |rw: &mut Rewriter, var: Expr| rw.push(body.spec(var), &[]);
        let vars: Vec<Expr> = nest.loops.iter().map(|each| fresh(&mut self.rw, each.var)).collect();
        let places: Vec<Expr> = match nest.block {
            Some(_) => nest.loops.iter().map(|each| fresh(&mut self.rw, each.place)).collect(),
            None => vars.clone(),
        };
        self.scope = Some(Scope::default());
        let frame = self.inner(index, nest, &places);
        let mut stmt = self.run(frame);
        if let Some(block) = nest.block {
            stmt = self.block(body, block, places.iter().zip(&vars), stmt);
        }
        for (each, &var) in nest.loops.iter().zip(&vars).rev() {
            let extent = match each.extent {
                Extent::Known(extent) => self.rw.index(extent),
                Extent::Symbolic(dim) => self.rw.prim(dim),
            };
            let zero = self.rw.index(0);
            stmt = self.rw.push(body.spec(each.stmt), &[var, zero, extent, stmt]);
        }
        stmt
    }

    /// A nest's block around a statement, with iterators and what they are bound to in the order of the loops.
    fn block<'v>(
        &mut self,
        body: BodyView<'_>,
        block: Expr,
        iters: impl Iterator<Item = (&'v Expr, &'v Expr)>,
        stmt: Expr,
    ) -> Expr {
        let operands = iters.flat_map(|(&place, &var)| [place, var]).chain([stmt]);
        let operands: Vec<Expr> = operands.collect();
        let kinds = operands.len() / 2;
        let spec = body.spec(block);
        let aux = self.rw.with_cx(|cx| {
            let (spatial, none) = (cx.symbol("spatial").into(), cx.int(0));
            cx.list(&[vec![spatial; kinds], vec![none; 2]].concat())
        });
        let data = self.unique(Symbol(spec.data)).0;
        self.rw.push(NodeSpec { aux: aux.0, data, ..spec }, &operands)
    }

    /// A name for a block that no other one of the program has: the name, or that with a number.
    fn unique(&mut self, name: Symbol) -> Symbol {
        let count = self.names.entry(name).or_insert(0);
        *count += 1;
        if *count == 1 {
            return name;
        }
        let numbered = format!("{}_{}", self.rw.terms().str(name), *count - 1);
        let numbered = self.rw.with_cx(|cx| cx.symbol(&numbered));
        self.unique(numbered)
    }

    fn frame(&self, member: usize, goal: Goal<'g>, end: usize) -> Frame<'g> {
        let len = self.group.members[member].program.func.view().len();
        Frame { member, goal, next: 0, end, copies: vec![None; len] }
    }

    /// The inside of a nest with `vars` for the variables of its loops.
    fn inner(&self, member: usize, nest: &Nest, vars: &[Expr]) -> Frame<'g> {
        let mut frame = self.frame(member, Goal::Inner, nest.store.index());
        for (each, &var) in nest.loops.iter().zip(vars) {
            frame.copies[each.place.index()] = Some(var);
        }
        frame
    }

    fn run(&mut self, frame: Frame<'g>) -> Expr {
        let mut frames = vec![frame];
        loop {
            let frame = frames.last_mut().expect("the first frame ends the loop");
            if frame.next == frame.end {
                let result = self.close(frame);
                frames.pop();
                let Some(outer) = frames.last_mut() else { return result };
                outer.copies[outer.next] = Some(result);
                outer.next += 1;
                continue;
            }
            match self.step(frame) {
                Some(Step::Enter(inner)) => frames.push(inner),
                Some(Step::Copied(copy)) => {
                    frame.copies[frame.next] = Some(copy);
                    frame.next += 1;
                }
                None => frame.next += 1,
            }
        }
    }

    /// Copies the next node of a frame; `None` when it has no copy of its own.
    fn step(&mut self, frame: &Frame<'g>) -> Option<Step<'g>> {
        let expr = Expr(frame.next as u32);
        let member = &self.group.members[frame.member];
        let body = member.program.func.view();
        if frame.copies[expr.index()].is_some() || member.program.param_of.contains_key(&expr) {
            return None;
        }
        let is_inner = !matches!(frame.goal, Goal::Body(_));
        match body.view(expr) {
            View::For { .. } | View::Block(_) | View::Seq(_) if is_inner => return None,
            View::Load { buffer, indices } => {
                if let Some(writer) = self.writer(member, buffer) {
                    let known = self.scope.as_ref().and_then(|scope| scope.elements.get(&writer));
                    if let Some(&element) = known {
                        return Some(Step::Copied(element));
                    }
                    if let Fate::Inlined { is_shared, uses } = self.plan.fates[writer] {
                        let goal = Goal::Element { is_shared, uses };
                        let indices = indices.iter().map(|index| self.copy_of(frame, index));
                        let indices: Vec<Expr> = indices.collect();
                        return Some(Step::Enter(self.element(writer, goal, &indices)));
                    }
                }
            }
            View::Store { buffer, value, indices } => {
                if let Goal::Body(Some(tail)) = frame.goal
                    && member.program.param_of.contains_key(&buffer)
                {
                    let value = self.copy_of(frame, value);
                    let indices = indices.iter().map(|index| self.copy_of(frame, index));
                    let indices: Vec<Expr> = indices.collect();
                    return Some(Step::Enter(self.tail(frame.member, tail, value, &indices)));
                }
            }
            View::Constant(constant) => {
                let copy = self.rw.share_constant(&member.program.func, constant.index);
                return Some(Step::Copied(copy));
            }
            _ => {}
        }
        let operands = body.operands(expr).iter().map(|operand| self.copy_of(frame, operand));
        let operands: Vec<Expr> = operands.collect();
        let copy = match (body.view(expr), operands.as_slice()) {
            (View::Binary { op, .. }, &[a, b]) => self.rw.binary(op, a, b),
            (View::Block(block), operands) => {
                let data = self.unique(block.name).0;
                self.rw.push(NodeSpec { data, ..body.spec(expr) }, operands)
            }
            _ => self.rw.push(body.spec(expr), &operands),
        };
        if let Some(scope) = self.scope.as_mut().filter(|_| is_inner)
            && body.kind(expr) == Kind::LET_STMT
        {
            scope.stmts.push(copy);
        }
        Some(Step::Copied(copy))
    }

    /// What a finished frame has made.
    fn close(&mut self, frame: &Frame<'g>) -> Expr {
        let member = &self.group.members[frame.member];
        let nest = match (&frame.goal, &member.program.nest) {
            (Goal::Body(_), _) | (_, None) => return self.copy_of(frame, member.program.body),
            (_, Some(nest)) => nest,
        };
        let value = self.copy_of(frame, nest.value);
        match frame.goal {
            Goal::Element { is_shared: true, uses } => self.share(frame.member, value, uses),
            Goal::Element { .. } => value,
            Goal::Inner | Goal::Body(_) => {
                let body = member.program.func.view();
                let operands = body.operands(nest.store).iter();
                let operands: Vec<Expr> = operands.map(|at| self.copy_of(frame, at)).collect();
                let store = self.rw.push(body.spec(nest.store), &operands);
                let mut stmts = self.scope.take().unwrap_or_default().stmts;
                stmts.push(store);
                self.rw.seq(&stmts)
            }
        }
    }

    /// The copy of an operand, which came before; a buffer of the group where it is a parameter.
    fn copy_of(&mut self, frame: &Frame<'g>, operand: Expr) -> Expr {
        let member = &self.group.members[frame.member];
        match (frame.copies[operand.index()], member.program.param_of.get(&operand)) {
            (Some(copy), _) => copy,
            (None, Some(&param)) => self.buffer(member.buffers[param]),
            (None, None) => unreachable!("operands are copied before their users"),
        }
    }

    /// The member that writes what is read from a parameter.
    fn writer(&self, member: &Member, buffer: Expr) -> Option<usize> {
        let param = member.program.param_of.get(&buffer)?;
        self.group.buffers[member.buffers[*param]].writer
    }

    /// The element of a nest's result at `indices`.
    fn element(&mut self, member: usize, goal: Goal<'g>, indices: &[Expr]) -> Frame<'g> {
        let nest = self.nest(member);
        let vars = self.vars(nest, &nest.axes, indices);
        Frame { goal, ..self.inner(member, nest, &vars) }
    }

    /// What `tail` does with the element `value` of the result of `owner` at `indices`.
    fn tail(&mut self, owner: usize, tail: &Tail, value: Expr, indices: &[Expr]) -> Frame<'g> {
        let nest = self.nest(tail.member);
        let vars = self.vars(nest, &tail.axes, indices);
        self.scope = Some(Scope::default());
        self.share(owner, value, tail.uses);
        self.inner(tail.member, nest, &vars)
    }

    /// Remembers the element of a member that all readers share, under a name if that saves work.
    fn share(&mut self, member: usize, value: Expr, uses: u32) -> Expr {
        let is_leaf = self.rw.body().operands(value).is_empty();
        let output = self.group.members[member].buffers.last().copied();
        let name = output.map_or("", |output| self.group.buffers[output].name.as_str());
        let Some(scope) = &mut self.scope else { return value };
        let mut element = value;
        if uses > 1 && !is_leaf {
            element = self.rw.var(name, self.rw.body().ty(value));
            scope.stmts.push(self.rw.let_stmt(element, value));
        }
        scope.elements.insert(member, element);
        element
    }

    fn nest(&self, member: usize) -> &'g Nest {
        let nest = self.group.members[member].program.nest.as_ref();
        nest.expect("only nests are inlined or tails")
    }

    /// For each loop of a nest its index, where `axes` says which index is that of which loop.
    fn vars(&mut self, nest: &Nest, axes: &[Axis], indices: &[Expr]) -> Vec<Expr> {
        let mut vars: Vec<Option<Expr>> = vec![None; nest.loops.len()];
        for (axis, &index) in axes.iter().zip(indices) {
            if let Axis::Loop(number) = *axis {
                vars[number] = Some(index);
            }
        }
        // The other loops have one step.
        vars.into_iter().map(|var| var.unwrap_or_else(|| self.rw.index(0))).collect()
    }

    fn buffer(&mut self, number: usize) -> Expr {
        let buffer = &self.group.buffers[number];
        let rw = &mut self.rw;
        *self.buffers[number].get_or_insert_with(|| rw.buffer(&buffer.name, buffer.ty, ""))
    }
    /// Takes inputs that nothing reads, as those of a member that computes nothing, where they alone say what a symbol is.
    fn take_what_says_symbols(&mut self) {
        let (group, body) = (self.group, self.rw.body());
        let mut symbols = Symbols::new(body.terms());
        for expr in body.post_order() {
            if let View::Prim { dim } = body.view(expr) {
                symbols.add(Some(dim.into()));
            }
        }
        let touched = group.buffers.iter().zip(&self.buffers).filter(|(_, made)| made.is_some());
        let touched: Vec<&Buffer> = touched.map(|(buffer, _)| buffer).collect();
        touched.iter().for_each(|buffer| symbols.add(Some(buffer.ty.into())));
        let ends = touched.iter().filter(|buffer| buffer.writer.is_none() || buffer.is_output);
        let mut unsaid = symbols.unsaid_by(ends.map(|buffer| buffer.ty));
        let mut taken = Vec::new();
        for (number, buffer) in group.buffers.iter().enumerate() {
            let dims = body.terms().tensor(buffer.ty).map_or(&[][..], |(_, dims)| dims);
            let before = unsaid.len();
            if buffer.writer.is_none() {
                unsaid.retain(|symbol| !dims.contains(symbol));
            }
            if unsaid.len() < before {
                taken.push(number);
            }
        }
        for number in taken {
            self.buffer(number);
        }
    }
}
