//! Reads a group: a function whose bindings are calls of tensor programs.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use tenon_plugin_api::ir::{DimView, Terms};
use tenon_plugin_api::prelude::*;
use tenon_plugin_api::program::TARGET;

use super::program::{Extent, Program};
use crate::symbols::Symbols;

/// A group as members that read and write buffers.
pub(super) struct Group {
    pub(super) members: Vec<Member>,
    pub(super) buffers: Vec<Buffer>,
    /// The parameters with tuples field by field: number of the parameter, field of a tuple.
    pub(super) inputs: Vec<(usize, Option<u32>)>,
    /// The buffers that the group returns.
    pub(super) outputs: Vec<usize>,
    /// What it returns.
    pub(super) result: Type,
}

/// A call of a tensor program.
pub(super) struct Member {
    pub(super) name: Symbol,
    pub(super) program: Rc<Program>,
    /// The buffer for each parameter of the program.
    pub(super) buffers: Vec<usize>,
}

/// A tensor of a group. The inputs come first.
pub(super) struct Buffer {
    pub(super) name: String,
    pub(super) ty: Type,
    pub(super) shape: Vec<Extent>,
    /// The member that writes it; `None` for an input.
    pub(super) writer: Option<usize>,
    pub(super) is_output: bool,
}

#[derive(Clone)]
enum Value {
    Tensor(usize),
    Tuple(Vec<usize>),
}

/// The programs of the module, each analysed once.
pub(super) struct Programs {
    call_tir: Symbol,
    known: HashMap<Symbol, Option<Rc<Program>>>,
    /// Programs with dimensions in the place of their symbols, by the types of their parameters.
    called: HashMap<(Symbol, Vec<Type>), Option<Rc<Program>>>,
}

impl Programs {
    pub(super) fn new(cx: &PassContext) -> Self {
        let call_tir = cx.symbol("call_tir");
        Self { call_tir, known: HashMap::new(), called: HashMap::new() }
    }

    fn get(&mut self, name: Symbol, module: &Module) -> Option<Rc<Program>> {
        let read = || module.get(name).and_then(Program::of).map(Rc::new);
        self.known.entry(name).or_insert_with(read).clone()
    }

    /// A program with what its symbols are where its parameters have these types.
    fn called(
        &mut self,
        name: Symbol,
        program: &Program,
        types: Vec<Type>,
        cx: &PassContext,
    ) -> Option<Rc<Program>> {
        let key = (name, types);
        if let Some(known) = self.called.get(&key) {
            return known.clone();
        }
        let mut rw = Rewriter::new(cx);
        let (from, own) = (&program.func, rw.cx());
        let mut dims = Substitution::new();
        let params = from.param_types();
        let fits = params.len() == key.1.len()
            && params
                .iter()
                .zip(&key.1)
                .all(|(&param, &ty)| param.is_some_and(|param| dims.match_type(&own, param, ty)));
        let made = fits.then(|| {
            let root = from.view().root();
            let root = rw.import_with(from, root, &mut HashMap::new(), &mut dims);
            rw.set_root(root);
            rw.finish().ok().and_then(Program::of).map(Rc::new)
        });
        self.called.entry(key).or_insert(made.flatten()).clone()
    }
}

/// What the code of a program is for, where it says that.
fn target_of(terms: Terms<'_>, program: &Program) -> Option<Term> {
    terms.attrs(program.attrs).term(TARGET)
}

impl Group {
    /// `None` when the function does anything but call tensor programs.
    pub(super) fn of(
        func: &Function,
        module: &Module,
        programs: &mut Programs,
        cx: &PassContext,
    ) -> Option<Self> {
        let body = func.view();
        let View::Function { params, body: value, .. } = body.view(body.root()) else {
            return None;
        };
        let View::Let(bindings) = body.view(value) else { return None };
        let mut this = Self {
            members: Vec::new(),
            buffers: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            result: body.ty(value)?,
        };
        let mut values: HashMap<Expr, Value> = HashMap::new();
        for (number, param) in params.iter().enumerate() {
            let value = this.input(body, param, number)?;
            values.insert(param, value);
        }
        for (var, value) in bindings.bindings() {
            let value = match body.view(value) {
                View::Call { callee, args, .. } if is_op(body, callee, programs.call_tir) => {
                    this.member(body, var, &args.to_vec(), &values, module, programs)?
                }
                _ => read(body, value, &values)?,
            };
            values.insert(var, value);
        }
        this.outputs = match read(body, bindings.result(), &values)? {
            Value::Tensor(buffer) => vec![buffer],
            Value::Tuple(buffers) => buffers,
        };
        for &output in &this.outputs {
            let buffer = &mut this.buffers[output];
            // What is passed through, or returned twice, would have to be copied.
            if buffer.writer.is_none() || std::mem::replace(&mut buffer.is_output, true) {
                return None;
            }
        }
        this.settle_sizes(programs, cx)?;
        if !this.says_its_symbols(body.terms()) {
            return None;
        }
        let target = |member: &Member| target_of(body.terms(), &member.program);
        let first = this.members.first().and_then(target);
        this.members.iter().all(|member| target(member) == first).then_some(this)
    }

    /// Gives programs that are called with other dimensions than those of their parameters these dimensions. What would be no dimension
    /// of a parameter, being computed of symbols, is a symbol of the whole program, as it is one of each.
    fn settle_sizes(&mut self, programs: &mut Programs, cx: &PassContext) -> Option<()> {
        let types_of = |this: &Self, member: &Member| -> Vec<Type> {
            member.buffers.iter().map(|&at| this.buffers[at].ty).collect()
        };
        let is_as_written = |member: &Member| {
            let types = types_of(self, member).into_iter().map(Some);
            types.eq(member.program.func.param_types())
        };
        if self.members.iter().all(is_as_written) {
            return Some(());
        }
        let names = self.names_of_sizes(cx);
        let terms = cx.terms();
        for buffer in &mut self.buffers {
            let (dtype, dims) = terms.tensor(buffer.ty)?;
            let dims: Vec<Dim> = dims.iter().map(|dim| *names.get(dim).unwrap_or(dim)).collect();
            buffer.ty = cx.tensor_type(dtype, &dims);
            buffer.shape = Extent::all_of(terms, buffer.ty)?;
        }
        for at in 0..self.members.len() {
            let types = types_of(self, &self.members[at]);
            let Member { name, program, .. } = &self.members[at];
            self.members[at].program = programs.called(*name, program, types, cx)?;
        }
        Some(())
    }

    /// Symbols for what is computed of symbols and a dimension of what the group reads or gives.
    fn names_of_sizes(&self, cx: &PassContext) -> HashMap<Dim, Dim> {
        let terms = cx.terms();
        let mut used = Symbols::new(terms);
        self.buffers.iter().for_each(|it| used.add(Some(it.ty.into())));
        let mut fresh = (0..).map(|number| cx.dim_symbol(&format!("d{number}")));
        let mut names = HashMap::new();
        for buffer in self.buffers.iter().filter(|it| it.writer.is_none() || it.is_output) {
            for &dim in terms.tensor(buffer.ty).map_or(&[][..], |(_, dims)| dims) {
                let is_plain =
                    terms.dim_value(dim).is_some() || matches!(terms.dim(dim), DimView::Symbol(_));
                if !is_plain && !names.contains_key(&dim) {
                    let name = fresh.find(|name| !used.found.contains(name));
                    names.insert(dim, name.unwrap_or(dim));
                }
            }
        }
        names
    }

    /// Whether inputs and outputs say all symbols: of one that stands in a buffer between them alone a program would know nothing.
    fn says_its_symbols(&self, terms: Terms<'_>) -> bool {
        let ends = self.buffers.iter().filter(|it| it.writer.is_none() || it.is_output);
        let dims = ends.filter_map(|it| Some(terms.tensor(it.ty)?.1)).flatten();
        let said: HashSet<Dim> = dims.copied().collect();
        let mut all = Symbols::new(terms);
        self.buffers.iter().for_each(|it| all.add(Some(it.ty.into())));
        all.found.iter().all(|symbol| said.contains(symbol))
    }

    /// What its members are for, which is one thing.
    pub(super) fn target(&self, terms: Terms<'_>) -> Option<Term> {
        self.members.first().and_then(|member| target_of(terms, &member.program))
    }

    fn input(&mut self, body: BodyView<'_>, param: Expr, number: usize) -> Option<Value> {
        let ty = body.ty(param)?;
        let name = body.terms().str(Symbol(body.raw_node(param).data));
        let mut input = |ty, field| {
            let shape = Extent::all_of(body.terms(), ty)?;
            self.inputs.push((number, field));
            let name = field.map_or(name.to_owned(), |field| format!("{name}_{field}"));
            self.buffers.push(Buffer { name, ty, shape, writer: None, is_output: false });
            Some(self.buffers.len() - 1)
        };
        match body.terms().ty(ty) {
            TypeView::Tuple(fields) => {
                let fields = (0..).zip(fields).map(|(field, &ty)| input(ty, Some(field)));
                Some(Value::Tuple(fields.collect::<Option<_>>()?))
            }
            // It says symbols, which no program asks for.
            TypeView::Shape(_) => Some(Value::Tuple(Vec::new())),
            _ => input(ty, None).map(Value::Tensor),
        }
    }

    fn member(
        &mut self,
        body: BodyView<'_>,
        var: Expr,
        args: &[Expr],
        values: &HashMap<Expr, Value>,
        module: &Module,
        programs: &mut Programs,
    ) -> Option<Value> {
        let (&callee, args) = args.split_first()?;
        let View::Global { name: callee } = body.view(callee) else { return None };
        let program = programs.get(callee, module)?;
        let mut buffers = Vec::with_capacity(program.params.len());
        for &arg in args {
            match read(body, arg, values)? {
                Value::Tensor(buffer) => buffers.push(buffer),
                Value::Tuple(fields) => buffers.extend(fields),
            }
        }
        let given = match body.terms().ty(body.ty(var)?) {
            TypeView::Tuple(fields) => fields.to_vec(),
            _ => vec![body.ty(var)?],
        };
        let outputs = program.params.len() - program.first_output;
        if [buffers.len(), given.len()] != [program.first_output, outputs] {
            return None;
        }
        let name = body.terms().str(Symbol(body.raw_node(var).data));
        let first = self.buffers.len();
        for ty in given {
            let writer = Some(self.members.len());
            let name = name.to_owned();
            let shape = Extent::all_of(body.terms(), ty)?;
            self.buffers.push(Buffer { name, ty, shape, writer, is_output: false });
        }
        let outputs: Vec<usize> = (first..self.buffers.len()).collect();
        buffers.extend(&outputs);
        self.members.push(Member { name: callee, program, buffers });
        match body.terms().ty(body.ty(var)?) {
            TypeView::Tuple(_) => Some(Value::Tuple(outputs)),
            _ => outputs.first().map(|&output| Value::Tensor(output)),
        }
    }
}

fn is_op(body: BodyView<'_>, callee: Expr, op: Symbol) -> bool {
    matches!(body.view(callee), View::Op { name } if name == op)
}

/// What a variable, a flat tuple or a field of one stands for.
fn read(body: BodyView<'_>, expr: Expr, values: &HashMap<Expr, Value>) -> Option<Value> {
    let tensor = |expr: Expr| match values.get(&expr) {
        Some(&Value::Tensor(buffer)) => Some(buffer),
        _ => None,
    };
    match body.view(expr) {
        View::Var { .. } => values.get(&expr).cloned(),
        View::Tuple(fields) => {
            Some(Value::Tuple(fields.iter().map(tensor).collect::<Option<_>>()?))
        }
        View::TupleGetItem { tuple, index } => match values.get(&tuple) {
            Some(Value::Tuple(fields)) => fields.get(index).map(|&field| Value::Tensor(field)),
            _ => None,
        },
        _ => None,
    }
}
