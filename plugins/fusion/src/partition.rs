//! Takes groups of bindings out of a `let` and makes functions of them, for the passes that share a module out
//! among code generators.
//!
//! A group may have several results. It is called where the last of its bindings was; in a block without
//! effects what reads its other results moves behind that, and a group is refused ([`Bindings::may_cut`])
//! where that cannot be done, or where memory that it reads is written in between.

use std::collections::{HashMap, HashSet};

use tenon_plugin_api::prelude::*;

use crate::symbols::Symbols;

/// The number of no group.
pub(crate) const NONE: u32 = u32::MAX;

/// The bindings of a `let`, by their numbers, and who reads whom.
pub(crate) struct Bindings<'a> {
    func: &'a Function,
    pub(crate) body: BodyView<'a>,
    pub(crate) effects: &'a Effects,
    expr: Expr,
    result: Expr,
    pub(crate) vars: Vec<Expr>,
    pub(crate) values: Vec<Expr>,
    blocks: Vec<Block>,
    /// The block of each binding.
    block: Vec<u32>,
    number: HashMap<Expr, u32>,
    reads: Lists,
    readers: Lists,
    /// Whether a binding is read by the result or in another block.
    is_seen_outside: Vec<bool>,
}

struct Block {
    is_dataflow: bool,
    first: usize,
    len: usize,
    /// Whether its bindings may change places.
    is_pure: bool,
}

/// A list of numbers for each binding.
#[derive(Default)]
struct Lists {
    /// Where each list begins; one more entry for the end of the last.
    first: Vec<u32>,
    items: Vec<u32>,
}

impl Lists {
    fn of(&self, number: u32) -> &[u32] {
        let number = number as usize;
        &self.items[self.first[number] as usize..self.first[number + 1] as usize]
    }

    /// The lists the other way round: in the list of `a` stands `b` where in that of `b` stood `a`.
    fn transposed(&self) -> Self {
        let count = self.first.len() - 1;
        let mut first = vec![0; count + 1];
        self.items.iter().for_each(|&item| first[item as usize + 1] += 1);
        for index in 1..=count {
            first[index] += first[index - 1];
        }
        let mut next = first.clone();
        let mut items = vec![0; self.items.len()];
        for number in 0..count as u32 {
            for &item in self.of(number) {
                let place = &mut next[item as usize];
                items[*place as usize] = number;
                *place += 1;
            }
        }
        Self { first, items }
    }
}

/// Bindings that become one function.
pub(crate) struct Group {
    /// In ascending order.
    pub(crate) members: Vec<u32>,
    /// What its function is called, unless something else is.
    pub(crate) name: String,
    pub(crate) attrs: Attrs,
    /// The code generator of a function around it, if it gets one.
    pub(crate) codegen: Option<String>,
}

/// How a group's function is made.
#[derive(Clone, Copy)]
pub(crate) struct Outline {
    /// Whether constants stand inside; they are parameters otherwise.
    pub(crate) binds_constants: bool,
}

/// The nodes that were seen since the last start, without clearing a table for each.
struct Seen {
    round: SideTable<u32>,
    now: u32,
}

impl Seen {
    fn new(body: BodyView<'_>) -> Self {
        Self { round: SideTable::new(body, 0), now: 0 }
    }

    fn start(&mut self) {
        self.now += 1;
    }

    fn is_new(&mut self, expr: Expr) -> bool {
        std::mem::replace(&mut self.round[expr], self.now) != self.now
    }
}

impl<'a> Bindings<'a> {
    /// The bindings of `expr`, a `let` of `func`; `None` for anything else.
    pub(crate) fn of(func: &'a Function, expr: Expr, effects: &'a Effects) -> Option<Self> {
        let body = func.view();
        let View::Let(bindings) = body.view(expr) else { return None };
        let (vars, values): (Vec<Expr>, Vec<Expr>) = bindings.bindings().unzip();
        let number = vars.iter().enumerate().map(|(number, &var)| (var, number as u32)).collect();
        let mut this = Self {
            func,
            body,
            effects,
            expr,
            result: bindings.result(),
            blocks: Vec::new(),
            block: vec![0; vars.len()],
            number,
            reads: Lists { first: vec![0], items: Vec::new() },
            readers: Lists::default(),
            is_seen_outside: vec![false; vars.len()],
            vars,
            values,
        };
        for block in bindings.blocks().iter() {
            let members = block.first..block.first + block.len;
            this.block[members.clone()].fill(this.blocks.len() as u32);
            let is_pure = block.is_dataflow
                || this.values[members].iter().all(|&value| is_plain(body, value, effects));
            let (is_dataflow, first, len) = (block.is_dataflow, block.first, block.len);
            this.blocks.push(Block { is_dataflow, first, len, is_pure });
        }
        let mut seen = Seen::new(body);
        for number in 0..this.vars.len() {
            let from = this.reads.items.len();
            this.find_reads(this.values[number], &mut seen);
            for index in from..this.reads.items.len() {
                let read = this.reads.items[index] as usize;
                this.is_seen_outside[read] |= this.block[read] != this.block[number];
            }
            this.reads.first.push(this.reads.items.len() as u32);
        }
        this.readers = this.reads.transposed();
        let end = this.reads.items.len();
        this.find_reads(this.result, &mut seen);
        for read in this.reads.items.split_off(end) {
            this.is_seen_outside[read as usize] = true;
        }
        Some(this)
    }

    /// Adds the bindings that are read below `expr`.
    fn find_reads(&mut self, expr: Expr, seen: &mut Seen) {
        seen.start();
        let mut work = vec![expr];
        while let Some(expr) = work.pop() {
            if !seen.is_new(expr) {
                continue;
            }
            match self.number.get(&expr) {
                Some(&number) => self.reads.items.push(number),
                None => work.extend(self.body.operands(expr).iter().rev()),
            }
        }
    }

    /// The binding whose variable this is.
    pub(crate) fn number(&self, var: Expr) -> Option<u32> {
        self.number.get(&var).copied()
    }

    /// The bindings that a binding reads.
    pub(crate) fn reads(&self, number: u32) -> &[u32] {
        self.reads.of(number)
    }

    /// Whether anything reads a binding.
    pub(crate) fn is_read(&self, number: u32) -> bool {
        self.is_seen_outside[number as usize] || !self.readers.of(number).is_empty()
    }

    pub(crate) fn is_same_block(&self, a: u32, b: u32) -> bool {
        self.block[a as usize] == self.block[b as usize]
    }

    /// Whether the bindings of a binding's block may change places.
    pub(crate) fn is_in_pure_block(&self, number: u32) -> bool {
        self.blocks[self.block[number as usize] as usize].is_pure
    }

    /// Whether `members`, which are sorted, can be called as one beside the groups there are: all of them give the same
    /// where the last one stands, and nothing that lies between them both reads one and is read by another, directly
    /// or over others. `group_of` says for each
    /// binding its group, and `groups` their members.
    ///
    /// A search that would take long counts as a refusal, so that many of them stay linear.
    pub(crate) fn may_cut(
        &self,
        members: &[u32],
        group_of: &[u32],
        groups: &[Option<Group>],
    ) -> bool {
        const MAX_VISITS: usize = 1024;
        let Some(&last) = members.last() else { return false };
        let place = self.values[last as usize];
        let may_move = |&member: &u32| self.effects.may_move(self.values[member as usize], place);
        if !members.iter().all(may_move) {
            return false;
        }
        let is_member = |number: &u32| members.binary_search(number).is_ok();
        let is_near = |number: &u32| *number < last && self.is_same_block(*number, last);
        let between = |number: u32| self.readers.of(number).iter().copied().filter(is_near);
        let mut work: Vec<u32> = Vec::new();
        let mut seen: HashSet<u32> = HashSet::new();
        for &member in members {
            work.extend(between(member).filter(|reader| !is_member(reader)));
        }
        if !work.is_empty() && !self.is_in_pure_block(last) {
            return false;
        }
        while let Some(number) = work.pop() {
            if !seen.insert(number) {
                continue;
            }
            if seen.len() > MAX_VISITS {
                return false;
            }
            let group = groups.get(group_of[number as usize] as usize).and_then(Option::as_ref);
            let whole = group.map_or(std::slice::from_ref(&number), |group| &group.members);
            for &part in whole {
                // The last member is read by what comes behind it only.
                let readers = self.readers.of(part).iter().copied();
                for reader in
                    readers.filter(|reader| *reader <= last && self.is_same_block(*reader, last))
                {
                    if is_member(&reader) {
                        return false;
                    }
                    work.push(reader);
                }
            }
        }
        true
    }

    /// Makes a function of each group, and the `let` that calls them.
    pub(crate) fn cut(
        &self,
        groups: &[Group],
        outline: Outline,
        rw: &mut Rewriter,
        module: &mut Module,
        cx: &PassContext,
    ) -> Result<()> {
        let mut group_of = vec![NONE; self.vars.len()];
        for (index, group) in groups.iter().enumerate() {
            group.members.iter().for_each(|&member| group_of[member as usize] = index as u32);
        }
        let mut blocks = Vec::with_capacity(self.blocks.len());
        for block in &self.blocks {
            let mut bindings = Vec::with_capacity(block.len);
            for item in self.order(block, &group_of, groups) {
                match group_of[item as usize] {
                    NONE => {
                        bindings.push((self.vars[item as usize], self.values[item as usize]));
                    }
                    group => {
                        let group = &groups[group as usize];
                        let outputs = self.outputs(group);
                        let (function, args) = self.build(group, &outputs, outline, rw, cx)?;
                        let mut name = module.fresh_name(&group.name);
                        module.insert(name, &function);
                        if let Some(codegen) = &group.codegen {
                            let wrapper = wrapper(&function, name, codegen, cx)?;
                            name = module.fresh_name(&format!("{}_{codegen}", group.name));
                            module.insert(name, &wrapper);
                        }
                        let sources = group.members.iter().map(|&member| self.source(member));
                        rw.set_source(NodeSource::union(cx, sources));
                        self.call(name, &args, &outputs, rw, &mut bindings);
                        rw.set_source(NodeSource::NONE);
                    }
                }
            }
            blocks.push((block.is_dataflow, bindings));
        }
        let cut = rw.let_blocks(&blocks, self.result);
        let ty = self.body.ty(self.expr);
        rw.set_type(cut, ty);
        rw.replace(self.expr, cut);
        Ok(())
    }

    /// A block's bindings, of each group the last one, so that each stands behind what it reads, and as
    /// they stood where that leaves a choice.
    fn order(&self, block: &Block, group_of: &[u32], groups: &[Group]) -> Vec<u32> {
        let representative = |number: u32| match group_of[number as usize] {
            NONE => number,
            group => *groups[group as usize].members.last().expect("a group has members"),
        };
        let range = block.first as u32..(block.first + block.len) as u32;
        let mut state = vec![false; block.len];
        let mut order = Vec::with_capacity(block.len);
        for start in range.clone().filter(|&number| representative(number) == number) {
            let mut work = vec![(start, false)];
            while let Some((item, is_ready)) = work.pop() {
                if is_ready {
                    order.push(item);
                    continue;
                }
                if std::mem::replace(&mut state[(item - range.start) as usize], true) {
                    continue;
                }
                work.push((item, true));
                let whole = match group_of[item as usize] {
                    NONE => std::slice::from_ref(&item),
                    group => &groups[group as usize].members,
                };
                for &part in whole.iter().rev() {
                    let reads = self.reads(part).iter().filter(|&read| range.contains(read));
                    work.extend(reads.rev().map(|&read| (representative(read), false)));
                }
            }
        }
        order
    }

    /// The members whose values are read elsewhere.
    fn outputs(&self, group: &Group) -> Vec<u32> {
        let is_outside = |reader: &u32| group.members.binary_search(reader).is_err();
        let is_output = |&member: &u32| {
            self.is_seen_outside[member as usize] || self.readers.of(member).iter().any(is_outside)
        };
        group.members.iter().copied().filter(is_output).collect()
    }

    /// The function of a group, and what it would be called with.
    pub(crate) fn outline(
        &self,
        group: &Group,
        outline: Outline,
        rw: &mut Rewriter,
        cx: &PassContext,
    ) -> Result<(Function, Vec<Expr>)> {
        self.build(group, &self.outputs(group), outline, rw, cx)
    }

    /// The function of a group, and what it is called with.
    fn build(
        &self,
        group: &Group,
        outputs: &[u32],
        outline: Outline,
        rw: &mut Rewriter,
        cx: &PassContext,
    ) -> Result<(Function, Vec<Expr>)> {
        let (body, terms) = (self.body, cx.terms());
        let mut inner = Rewriter::new(cx);
        let (mut params, mut args) = (Vec::new(), Vec::new());
        let mut map: HashMap<Expr, Expr> = HashMap::new();
        for &member in &group.members {
            let var = self.vars[member as usize];
            let View::Var { name } = body.view(var) else { continue };
            map.insert(var, inner.var(terms.str(name), body.ty(var)));
        }
        let mut used = Symbols::new(terms);
        let mut bindings = Vec::with_capacity(group.members.len());
        for &member in &group.members {
            let value = self.values[member as usize];
            let mut work = vec![value];
            while let Some(expr) = work.pop() {
                used.add(body.ty(expr).map(Term::from));
                if map.contains_key(&expr) {
                    continue;
                }
                let name = match body.view(expr) {
                    View::Var { name } => terms.str(name),
                    View::Constant(_) if !outline.binds_constants => "constant",
                    View::Prim { dim } => {
                        used.add(Some(dim.into()));
                        continue;
                    }
                    View::Call { callee, args, .. } => {
                        work.extend(args.iter().rev());
                        if body.kind(callee) == Kind::VAR {
                            work.push(callee);
                        }
                        continue;
                    }
                    _ => {
                        work.extend(body.operands(expr).iter().rev());
                        continue;
                    }
                };
                let param = inner.var(name, body.ty(expr));
                map.insert(expr, param);
                params.push(param);
                args.push(expr);
            }
            let copy = inner.import(self.func, value, &mut map);
            bindings.push((map[&self.vars[member as usize]], copy));
        }
        let unsaid = used.unsaid_by(args.iter().filter_map(|&arg| body.ty(arg)));
        if !unsaid.is_empty() {
            params.push(inner.var("dims", Some(cx.shape_type(Some(&unsaid)))));
            args.push(rw.shape(&unsaid));
        }
        let results: Vec<Expr> =
            outputs.iter().map(|&output| map[&self.vars[output as usize]]).collect();
        let result = match results[..] {
            [result] => result,
            _ => inner.tuple(&results),
        };
        let value = inner.let_blocks(&[(true, bindings)], result);
        let function = inner.function(&params, value, self.result_type(outputs, cx), group.attrs);
        let function = inner.private(function);
        inner.set_root(function);
        Ok((inner.finish()?, args))
    }

    fn result_type(&self, outputs: &[u32], cx: &impl Context) -> Option<Type> {
        let types: Option<Vec<Type>> =
            outputs.iter().map(|&output| self.body.ty(self.vars[output as usize])).collect();
        match types?[..] {
            [ty] => Some(ty),
            ref types => Some(cx.tuple_type(types)),
        }
    }

    /// What a binding came from.
    fn source(&self, number: u32) -> NodeSource {
        self.body.source(self.values[number as usize])
    }

    /// The call of a group's function, and its results under the names they had.
    fn call(
        &self,
        name: Symbol,
        args: &[Expr],
        outputs: &[u32],
        rw: &mut Rewriter,
        bindings: &mut Vec<(Expr, Expr)>,
    ) {
        let cx = rw.cx();
        let ty = self.result_type(outputs, &cx);
        let callee = rw.named(Kind::GLOBAL, name);
        let call = rw.call(callee, args, Attrs::NONE, ty);
        if let [output] = outputs[..] {
            bindings.push((self.vars[output as usize], call));
            return;
        }
        let tuple = rw.var(cx.terms().str(name), ty);
        bindings.push((tuple, call));
        for (index, &output) in outputs.iter().enumerate() {
            let item = rw.tuple_get_item(tuple, index as u32);
            bindings.push((self.vars[output as usize], item));
        }
    }
}

/// A function that calls `callee` and belongs to a code generator.
fn wrapper(callee: &Function, name: Symbol, codegen: &str, cx: &PassContext) -> Result<Function> {
    let body = callee.view();
    let View::Function { params, result, .. } = body.view(body.root()) else {
        return Err(PassError::new("a group is a function"));
    };
    let mut rw = Rewriter::new(cx);
    let params: Vec<Expr> = params
        .iter()
        .map(|param| {
            let View::Var { name } = body.view(param) else { return rw.var("x", body.ty(param)) };
            rw.var(cx.terms().str(name), body.ty(param))
        })
        .collect();
    let callee = rw.named(Kind::GLOBAL, name);
    let call = rw.call(callee, &params, Attrs::NONE, result);
    let var = rw.var("result", result);
    let value = rw.let_blocks(&[(false, vec![(var, call)])], var);
    let attrs = cx.attrs(&[("Codegen", codegen.into())]);
    let function = rw.function(&params, value, result, attrs);
    let function = rw.private(function);
    rw.set_root(function);
    rw.finish()
}

/// Whether a bound value has no effects and is evaluated at once, so that it may change places.
fn is_plain(body: BodyView<'_>, value: Expr, effects: &Effects) -> bool {
    let is_inside = matches!(body.kind(value), Kind::IF | Kind::LET | Kind::FUNCTION);
    !is_inside && !effects.has_effect(value)
}
