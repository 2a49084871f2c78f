//! Whether a tensor program begins with what another one does.

use std::collections::{HashMap, HashSet};

use tenon_plugin_api::prelude::*;

/// A tensor program: buffers that it makes, then steps.
pub(super) struct Program {
    func: Function,
    params: Vec<Expr>,
    outputs: usize,
    /// The numbers of the parameters.
    numbers: HashMap<Expr, usize>,
    /// The buffers that it makes at the outermost level, and the statements that do.
    allocs: HashMap<Expr, Expr>,
    steps: Vec<Expr>,
}

/// That a program begins with what a pattern does.
pub(super) struct Match {
    /// How many of its steps that are.
    steps: usize,
    /// The parameter of the program that each parameter of the pattern is which is read.
    pub(super) inputs: Vec<usize>,
    /// The output of the program that each output of the pattern is, where it is one.
    pub(super) outputs: Vec<Option<usize>>,
    /// What each output of the pattern is in the program.
    written: Vec<Expr>,
    /// What the rest of the program reads of its parameters and of what was written.
    pub(super) rest_inputs: Vec<Source>,
    /// The outputs of the program that its rest writes.
    pub(super) rest_outputs: Vec<usize>,
}

/// Where a value that the rest of a program reads comes from.
#[derive(Clone, Copy)]
pub(super) enum Source {
    /// An output of the leading part.
    Lead(usize),
    /// A parameter of the program.
    Input(usize),
}

/// What a buffer or variable of a program is there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Input,
    Output,
    Alloc,
    Inner,
}

impl Program {
    pub(super) fn of(func: &Function) -> Self {
        let body = func.view();
        let (mut params, mut outputs, mut stmts) = (Vec::new(), 0, Vec::new());
        if let View::PrimFunc { params: all, outputs: written, body: stmt, .. } =
            body.view(body.root())
        {
            (params, outputs) = (all.to_vec(), written);
            stmts = match body.view(stmt) {
                View::Seq(stmts) => stmts.to_vec(),
                _ => vec![stmt],
            };
        }
        let buffer = |&stmt: &Expr| match body.view(stmt) {
            View::Alloc { buffer } => Some((buffer, stmt)),
            _ => None,
        };
        let allocs = stmts.iter().filter_map(buffer).collect();
        stmts.retain(|&stmt| body.kind(stmt) != Kind::ALLOC);
        let numbers = params.iter().enumerate().map(|(number, &param)| (param, number)).collect();
        Self { func: func.clone(), params, outputs, numbers, allocs, steps: stmts }
    }

    /// How this program begins with what `pattern` does.
    pub(super) fn begins_with(&self, pattern: &Program) -> Option<Match> {
        let (body, terms) = (self.func.view(), self.func.view().terms());
        let is_known = |&param: &Expr| {
            body.kind(param) == Kind::VAR
                || body.ty(param).is_some_and(|ty| terms.static_tensor(ty).is_some())
        };
        let count = pattern.steps.len();
        let has_names = self.steps.iter().any(|&step| body.kind(step) == Kind::LET_STMT);
        if count == 0 || count > self.steps.len() || has_names || !self.params.iter().all(is_known)
        {
            return None;
        }
        let found = Unifier::new(self, pattern).unify()?;
        let first_output = pattern.params.len() - pattern.outputs;
        let standing_for = |param: &Expr| found.get(param).copied();
        let read: Vec<Expr> =
            pattern.params[..first_output].iter().map(standing_for).collect::<Option<_>>()?;
        let written: Vec<Expr> =
            pattern.params[first_output..].iter().map(standing_for).collect::<Option<_>>()?;

        let rest = self.used(&self.steps[count..]);
        let is_inner = |alloc: &Expr| found.get(alloc).is_some_and(|&it| rest.reads(it));
        if pattern.allocs.keys().any(is_inner) || written.iter().any(|&it| rest.writes(it)) {
            return None;
        }
        let own_output = self.params.len() - self.outputs;
        let number = |expr: &Expr| self.numbers.get(expr).copied();
        let mut rest_inputs: Vec<Source> = (0..written.len())
            .filter(|&output| rest.reads(written[output]))
            .map(Source::Lead)
            .collect();
        rest_inputs.extend(
            (0..own_output).filter(|&input| rest.reads(self.params[input])).map(Source::Input),
        );
        let rest_outputs: Vec<usize> = (0..self.outputs)
            .filter(|&output| !written.contains(&self.params[own_output + output]))
            .collect();
        let has_rest = count < self.steps.len();
        (has_rest != rest_outputs.is_empty()).then_some(())?;
        let output = |expr| number(expr).and_then(|number| number.checked_sub(own_output));
        Some(Match {
            steps: count,
            inputs: read.iter().map(number).collect::<Option<_>>()?,
            outputs: written.iter().map(output).collect(),
            written,
            rest_inputs,
            rest_outputs,
        })
    }

    /// The program of what is behind the leading part; `None` when nothing is.
    pub(super) fn rest(&self, found: &Match, cx: &PassContext) -> Result<Option<Function>> {
        let steps = &self.steps[found.steps..];
        if steps.is_empty() {
            return Ok(None);
        }
        let used = self.used(steps);
        let mut rw = self.func.edit();
        let first_output = self.params.len() - self.outputs;
        let mut operands: Vec<Expr> = found
            .rest_inputs
            .iter()
            .map(|source| match *source {
                Source::Lead(output) => found.written[output],
                Source::Input(input) => self.params[input],
            })
            .collect();
        operands.extend(found.rest_outputs.iter().map(|output| self.params[first_output + output]));
        let mut stmts: Vec<Expr> = self
            .allocs
            .iter()
            .filter(|(buffer, _)| used.reads(**buffer) && !found.written.contains(buffer))
            .map(|(_, &stmt)| stmt)
            .collect();
        stmts.sort_unstable();
        stmts.extend(steps);
        operands.push(rw.seq(&stmts));
        let spec = rw.body().spec(rw.body().root());
        let outputs = found.rest_outputs.len() as u32;
        let attrs = cx.with_target_of(Attrs::NONE, &self.func);
        let root = rw.push(NodeSpec { data: outputs, attrs, ..spec }, &operands);
        rw.set_root(root);
        rw.finish().map(Some)
    }

    fn role(&self, expr: Expr) -> Role {
        match self.numbers.get(&expr) {
            Some(&number) if number < self.params.len() - self.outputs => Role::Input,
            Some(_) => Role::Output,
            None if self.allocs.contains_key(&expr) => Role::Alloc,
            None => Role::Inner,
        }
    }

    fn used(&self, steps: &[Expr]) -> Used {
        let body = self.func.view();
        let mut used = Used { seen: HashSet::new(), written: HashSet::new() };
        let mut work = steps.to_vec();
        while let Some(expr) = work.pop() {
            if !used.seen.insert(expr) {
                continue;
            }
            let operands = body.operands(expr);
            // What is neither loaded nor named by a block may be written to.
            match body.kind(expr) {
                Kind::LOAD | Kind::REGION => {}
                _ => used.written.extend(operands.iter()),
            }
            work.extend(operands.iter());
        }
        used
    }
}

/// What steps use.
struct Used {
    seen: HashSet<Expr>,
    written: HashSet<Expr>,
}

impl Used {
    fn reads(&self, expr: Expr) -> bool {
        self.seen.contains(&expr)
    }

    fn writes(&self, buffer: Expr) -> bool {
        self.written.contains(&buffer)
    }
}

/// Finds what each buffer and variable of a pattern stands for.
struct Unifier<'a> {
    program: &'a Program,
    pattern: &'a Program,
    found: HashMap<Expr, Expr>,
    /// What something stands for already that nothing else may stand for.
    taken: HashSet<Expr>,
}

impl<'a> Unifier<'a> {
    fn new(program: &'a Program, pattern: &'a Program) -> Self {
        Self { program, pattern, found: HashMap::new(), taken: HashSet::new() }
    }

    fn unify(mut self) -> Option<HashMap<Expr, Expr>> {
        let (pattern, program) = (self.pattern.func.view(), self.program.func.view());
        let steps = self.pattern.steps.iter().copied();
        let mut work: Vec<(Expr, Expr)> = steps.zip(self.program.steps.iter().copied()).collect();
        let mut seen = HashSet::new();
        while let Some((a, b)) = work.pop() {
            let kind = pattern.kind(a);
            if kind != program.kind(b) || pattern.ty(a) != program.ty(b) {
                return None;
            }
            let (own, other) = (pattern.spec(a), program.spec(b));
            if matches!(kind, Kind::VAR | Kind::BUFFER) {
                (own.aux == other.aux && self.bind(a, b)).then_some(())?;
                continue;
            }
            if !seen.insert((a, b)) {
                continue;
            }
            let is_equal = match kind {
                Kind::CONSTANT => {
                    pattern.constant(own.data).bytes == program.constant(other.data).bytes
                }
                Kind::BLOCK => true,
                _ => own.data == other.data,
            };
            let (operands, others) = (pattern.operands(a), program.operands(b));
            let is_equal = is_equal
                && (own.aux, own.attrs, own.flags) == (other.aux, other.attrs, other.flags)
                && operands.len() == others.len();
            is_equal.then_some(())?;
            work.extend(operands.iter().zip(others.iter()));
        }
        Some(self.found)
    }

    /// Notes that `a` of the pattern stands for `b` of the program, if it may.
    fn bind(&mut self, a: Expr, b: Expr) -> bool {
        if let Some(&known) = self.found.get(&a) {
            return known == b;
        }
        let (own, other) = (self.pattern.role(a), self.program.role(b));
        let may = match own {
            Role::Input => other == Role::Input,
            Role::Output => matches!(other, Role::Output | Role::Alloc) && self.taken.insert(b),
            Role::Alloc | Role::Inner => own == other && self.taken.insert(b),
        };
        may && self.found.insert(a, b).is_none()
    }
}
