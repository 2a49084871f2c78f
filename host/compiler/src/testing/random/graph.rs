//! Random graph functions.

use std::sync::Arc;

use super::{Random, Vocabulary, random_attrs};
use crate::ir::{
    AttrValue, Attrs, Build, Context, Cx, DType, Expr, Function, Kind, Module, NodeSpec, Symbol,
    Transaction, Type, TypeView, View,
};

const NAMES: &[&str] = &["x", "y", "x_1", "lv", "a b", "0", "gpu_0/conv", "if", ""];

/// The most bytes that a value has: three axes of at most four elements.
const LARGEST: i64 = 4 * 4 * 4 * 4;

/// Functions, branches and blocks within each other.
const DEEPEST: usize = 4;

/// A graph function that may call those of `module`. Most of its values are of type `tensor`, and there is memory of
/// that type if a program `write` writes it.
pub(super) fn function(
    module: &Module,
    vocabulary: &Vocabulary,
    random: &mut Random,
    size: usize,
    (tensor, write): (Type, Option<Symbol>),
) -> Arc<Function> {
    let cx = module.cx();
    let mut writer = Writer {
        module,
        vocabulary,
        cx,
        tensor,
        tx: Transaction::new(cx.clone()),
        values: Vec::new(),
        write,
        memory: Vec::new(),
        reads: Vec::new(),
        budget: size,
        // What is written must have its place in the order.
        has_calls: write.is_none() && random.chance(60),
        is_dataflow: false,
        sizes: super::sizes(cx),
        random,
    };
    let root = writer.function(0);
    writer.tx.set_root(root);
    let published = match writer.random.chance(50) {
        true => writer.tx.publish(),
        false => writer.tx.finish(),
    };
    published.expect("all operands are nodes of this body, and none uses itself")
}

struct Writer<'a> {
    module: &'a Module,
    vocabulary: &'a Vocabulary,
    cx: &'a Cx,
    random: &'a mut Random,
    tx: Transaction,
    /// The type of most values.
    tensor: Type,
    /// What may be used here, variables and not.
    values: Vec<Expr>,
    /// The program that writes its first argument to the second.
    write: Option<Symbol>,
    /// The memory that is visible.
    memory: Vec<Expr>,
    /// What was read of memory and is not in a result yet.
    reads: Vec<Expr>,
    /// Nodes that may still be made.
    budget: usize,
    /// Whether calls stand inside of other expressions.
    has_calls: bool,
    /// Whether effects may not stand here.
    is_dataflow: bool,
    /// The type of the parameter that all symbols come from.
    sizes: Type,
}

impl Writer<'_> {
    fn ty(&self, expr: Expr) -> Type {
        self.tx.body().ty(expr).expect("all values are typed")
    }

    fn fresh(&mut self, ty: Type) -> Expr {
        let name = self.random.pick(NAMES);
        self.tx.var(name, Some(ty))
    }

    /// A function of tensors of the one type; what is around it stays visible in it.
    fn function(&mut self, depth: usize) -> Expr {
        let visible = self.values.len();
        let mut params = Vec::new();
        for _ in 0..1 + self.random.below(3) {
            params.push(self.fresh(self.tensor));
        }
        let truth = self.cx.tensor_type(DType::BOOL, &[]);
        if depth == 0 {
            params.push(self.tx.var("flag", Some(truth)));
            params.push(self.tx.var("sizes", Some(self.sizes)));
        }
        self.values.extend(&params);
        let body = self.scope(depth);
        self.values.truncate(visible);
        let types: Vec<Type> = params.iter().map(|&param| self.ty(param)).collect();
        let ty = Some(self.cx.func_type(&types, self.tensor));
        let operands: Vec<Expr> = params.into_iter().chain([body]).collect();
        let spec = NodeSpec {
            ty,
            flags: (depth == 0 && self.random.chance(30)) as u16,
            data: self.tensor.0,
            attrs: random_attrs(self.cx, self.random),
            ..NodeSpec::new(Kind::FUNCTION)
        };
        self.tx.push(spec, &operands)
    }

    /// An expression of the one type, with bindings before it or not.
    fn scope(&mut self, depth: usize) -> Expr {
        let visible = (self.values.len(), self.memory.len(), self.reads.len());
        let has_bindings = self.random.chance(70);
        let mut blocks = Vec::new();
        let mut operands = Vec::new();
        if has_bindings {
            for _ in 0..self.random.below(4) {
                // A shared branch or function must not be needed first in a dataflow block.
                let is_dataflow = !self.has_calls && self.random.chance(50);
                let before = operands.len();
                let outside = std::mem::replace(&mut self.is_dataflow, is_dataflow);
                let most = if self.write.is_some() { 12 } else { 6 };
                for _ in 0..self.random.below(most) {
                    if let Some(write) =
                        self.write.filter(|_| !is_dataflow && self.random.chance(50))
                    {
                        self.write(write, &mut operands);
                        continue;
                    }
                    let value = self.value(if is_dataflow { DEEPEST } else { depth });
                    let var = self.fresh(self.ty(value));
                    operands.extend([var, value]);
                    self.values.push(var);
                }
                self.is_dataflow = outside;
                let count = (operands.len() - before) as i64;
                blocks.push(self.cx.int(count + is_dataflow as i64));
            }
        }
        let mut result = self.tensor_value(depth);
        let before = operands.len();
        result = self.sum(result, visible.2, &mut operands);
        if operands.len() > before {
            blocks.push(self.cx.int((operands.len() - before) as i64));
        }
        self.values.truncate(visible.0);
        self.memory.truncate(visible.1);
        if blocks.is_empty() {
            return result;
        }
        operands.push(result);
        let spec = NodeSpec {
            ty: Some(self.tensor),
            data: self.cx.list(&blocks).0,
            ..NodeSpec::new(Kind::LET)
        };
        self.tx.push(spec, &operands)
    }

    fn bind(&mut self, bindings: &mut Vec<Expr>, value: Expr) -> Expr {
        let var = self.fresh(self.ty(value));
        bindings.extend([var, value]);
        var
    }

    /// Binds a write to memory, which is made first now and then, and reads of memory before it and behind.
    fn write(&mut self, write: Symbol, bindings: &mut Vec<Expr>) {
        let data = self.visible(self.tensor);
        let is_there = !self.memory.is_empty() && self.random.chance(70);
        let memory = match is_there {
            true => self.random.pick(&self.memory),
            false => self.make_memory(bindings),
        };
        let op = self.random.pick(&self.vocabulary.unary);
        if is_there {
            self.read(&op, bindings);
        }
        let nothing = self.cx.tuple_type(&[]);
        let ty = Some(self.cx.func_type(&[self.tensor, self.tensor], nothing));
        let global = NodeSpec { ty, data: write.0, ..NodeSpec::new(Kind::GLOBAL) };
        let callee = self.tx.push(global, &[]);
        let call = self.tx.call(callee, &[data, memory], Attrs::NONE, Some(nothing));
        self.bind(bindings, call);
        if !is_there {
            self.memory.push(memory);
            self.values.push(memory);
        }
        self.read(&op, bindings);
    }

    /// Binds memory of its own, or a view.
    fn make_memory(&mut self, bindings: &mut Vec<Expr>) -> Expr {
        let ty = ("ty", self.tensor.into());
        let value = if !self.memory.is_empty() && self.random.chance(20) {
            let memory = self.random.pick(&self.memory);
            self.op_of_type("memory.view", &[memory], ty, self.tensor)
        } else {
            let (object, size) = (self.cx.object_type("storage"), ("size", LARGEST.into()));
            let storage = self.op_of_type("memory.alloc_storage", &[], size, object);
            let storage = self.bind(bindings, storage);
            self.op_of_type("memory.alloc_tensor", &[storage], ty, self.tensor)
        };
        self.bind(bindings, value)
    }

    /// Binds what an operator gives of some memory, which counts in the result.
    fn read(&mut self, op: &str, bindings: &mut Vec<Expr>) {
        let memory = self.random.pick(&self.memory);
        let op = self.tx.op(op);
        let read = self.tx.call(op, &[memory], Attrs::NONE, Some(self.tensor));
        let read = self.bind(bindings, read);
        self.reads.push(read);
    }

    /// Binds what the first operator of two arguments makes of a value and all that was read in this scope.
    fn sum(&mut self, result: Expr, first: usize, bindings: &mut Vec<Expr>) -> Expr {
        let mut sum = result;
        for read in self.reads.split_off(first) {
            let op = self.tx.op(&self.vocabulary.binary[0]);
            let read = match self.random.chance(30) {
                true => {
                    let unary = self.tx.op(&self.vocabulary.unary[0]);
                    let value = self.tx.call(unary, &[read], Attrs::NONE, Some(self.tensor));
                    self.bind(bindings, value)
                }
                false => read,
            };
            let value = self.tx.call(op, &[sum, read], Attrs::NONE, Some(self.tensor));
            sum = self.bind(bindings, value);
        }
        sum
    }

    fn op_of_type(&mut self, name: &str, args: &[Expr], attr: (&str, AttrValue), ty: Type) -> Expr {
        let op = self.tx.op(name);
        let attrs = self.cx.attrs(&[attr]);
        self.tx.call(op, args, attrs, Some(ty))
    }

    /// A visible value of a type, or a constant.
    fn visible(&mut self, ty: Type) -> Expr {
        let all: Vec<Expr> =
            self.values.iter().copied().filter(|&value| self.ty(value) == ty).collect();
        self.random.pick(&all)
    }

    /// Something of the one type.
    fn tensor_value(&mut self, depth: usize) -> Expr {
        if self.budget == 0 || self.random.chance(30) {
            return self.visible(self.tensor);
        }
        self.budget -= 1;
        match self.random.below(8) {
            0 if depth < DEEPEST => self.choice(depth),
            1 if depth < DEEPEST => self.closure_call(depth),
            2 if !self.is_dataflow => self.global_call(),
            3 => self.through_tuple(depth),
            4 => self.scalar_operand(depth),
            5 | 6 => {
                let name = self.random.pick(&self.vocabulary.binary);
                let args = [self.argument(depth), self.argument(depth)];
                self.call_op(&name, &args)
            }
            _ => {
                let name = self.random.pick(&self.vocabulary.unary);
                let args = [self.argument(depth)];
                self.call_op(&name, &args)
            }
        }
    }

    fn argument(&mut self, depth: usize) -> Expr {
        match self.has_calls {
            true => {
                let value = self.tensor_value(depth);
                // Used again by chance, so that graphs share.
                self.values.push(value);
                value
            }
            false => self.visible(self.tensor),
        }
    }

    fn call_op(&mut self, name: &str, args: &[Expr]) -> Expr {
        let op = self.tx.op(name);
        let attrs = random_attrs(self.cx, self.random);
        self.tx.call(op, args, attrs, Some(self.tensor))
    }

    fn choice(&mut self, depth: usize) -> Expr {
        let truth = self.cx.tensor_type(DType::BOOL, &[]);
        let cond = match self.random.chance(50) {
            true => self.visible(truth),
            false => self.tx.constant(truth, &[self.random.below(2) as u8]),
        };
        let then = self.scope(depth + 1);
        let otherwise = if self.random.chance(10) { then } else { self.scope(depth + 1) };
        let spec = NodeSpec { ty: Some(self.tensor), ..NodeSpec::new(Kind::IF) };
        self.tx.push(spec, &[cond, then, otherwise])
    }

    fn closure_call(&mut self, depth: usize) -> Expr {
        let is_closure =
            |&value: &Expr| matches!(self.cx.terms().ty(self.ty(value)), TypeView::Func { .. });
        let bound: Vec<Expr> = self.values.iter().copied().filter(is_closure).collect();
        let function = match bound.is_empty() || self.random.chance(50) {
            true => self.function(depth + 1),
            false => self.random.pick(&bound),
        };
        let TypeView::Func { params, .. } = self.cx.terms().ty(self.ty(function)) else {
            return self.visible(self.tensor);
        };
        let args: Vec<Expr> = params.iter().map(|_| self.visible(self.tensor)).collect();
        self.tx.call(function, &args, Attrs::NONE, Some(self.tensor))
    }

    /// A call of a function of the module with the right types, when there is one.
    fn global_call(&mut self) -> Expr {
        let functions: Vec<(Symbol, Arc<Function>)> = self
            .module
            .iter()
            .filter(|(_, function)| !function.is_prim())
            .map(|(name, function)| (name, function.clone()))
            .collect();
        // What gets memory may give back that, or a value.
        if functions.is_empty() || !self.memory.is_empty() {
            return self.visible(self.tensor);
        }
        let (name, function) = self.random.pick(&functions);
        let body = function.view();
        let View::Function { params, result, .. } = body.view(body.root()) else {
            return self.visible(self.tensor);
        };
        let types: Vec<Option<Type>> = params.iter().map(|param| body.ty(param)).collect();
        let truth = self.cx.tensor_type(DType::BOOL, &[]);
        let known = [Some(self.tensor), Some(truth), Some(self.sizes)];
        let is_known = |ty: &Option<Type>| known.contains(ty);
        if result != Some(self.tensor) || !types.iter().all(is_known) {
            return self.visible(self.tensor);
        }
        let args: Vec<Expr> = types.into_iter().flatten().map(|ty| self.visible(ty)).collect();
        let data = name.0;
        let ty = body.ty(body.root());
        let callee = self.tx.push(NodeSpec { ty, data, ..NodeSpec::new(Kind::GLOBAL) }, &[]);
        self.tx.call(callee, &args, Attrs::NONE, Some(self.tensor))
    }

    fn through_tuple(&mut self, depth: usize) -> Expr {
        let (a, b) = (self.argument(depth), self.argument(depth));
        let pair = self.tuple(&[a, b]);
        let item = self.random.below(2) as u32;
        let spec =
            NodeSpec { ty: Some(self.tensor), data: item, ..NodeSpec::new(Kind::TUPLE_GET_ITEM) };
        self.tx.push(spec, &[pair])
    }

    fn tuple(&mut self, fields: &[Expr]) -> Expr {
        let types: Vec<Type> = fields.iter().map(|&field| self.ty(field)).collect();
        let ty = Some(self.cx.tuple_type(&types));
        self.tx.push(NodeSpec { ty, ..NodeSpec::new(Kind::TUPLE) }, fields)
    }

    /// An operation with a small constant that is broadcast.
    fn scalar_operand(&mut self, depth: usize) -> Expr {
        let scalar = self.cx.tensor_type(DType::F32, &[]);
        let bytes = match self.random.below(3) {
            0 => (self.random.any() as u32).to_le_bytes(),
            _ => (self.random.below(9) as f32 / 2.0).to_le_bytes(),
        };
        let constant = self.tx.constant(scalar, &bytes);
        let name = self.random.pick(&self.vocabulary.binary);
        let args = [self.argument(depth), constant];
        self.call_op(&name, &args)
    }

    /// The value of a binding: mostly of the one type.
    fn value(&mut self, depth: usize) -> Expr {
        match self.random.below(12) {
            0 => {
                let (a, b) = (self.visible(self.tensor), self.visible(self.tensor));
                self.tuple(&[a, b])
            }
            1 => self.tuple(&[]),
            2 if depth < DEEPEST => self.function(depth + 1),
            3 => self.constant(),
            4 => {
                let dims = [super::random_dim(self.cx, self.random)];
                self.tx.shape(&dims)
            }
            5 => {
                let dim = super::random_dim(self.cx, self.random);
                self.tx.prim(dim)
            }
            // What calls something external cannot be evaluated.
            6 if !self.is_dataflow && self.write.is_none() => {
                let ty = Some(self.cx.object_type("storage"));
                let callee = self.tx.extern_func("make storage");
                let args = [self.visible(self.tensor)];
                self.tx.call(callee, &args, Attrs::NONE, ty)
            }
            _ => self.tensor_value(depth),
        }
    }

    /// A constant of any dtype, short or long.
    fn constant(&mut self) -> Expr {
        let dtypes: Vec<DType> = DType::all().collect();
        let dtype = self.random.pick(&dtypes);
        let count = self.random.pick(&[0, 1, 3, 8, 9, 20]);
        let ty = self.cx.static_tensor_type(dtype, &[count]);
        let len = dtype.bytes(count as u64).unwrap_or(0) as usize;
        let fill = self.random.chance(20).then(|| self.random.any() as u8 & 1);
        let mut bytes: Vec<u8> =
            (0..len).map(|_| fill.unwrap_or(self.random.any() as u8)).collect();
        let used = count as u32 * dtype.bits() % 8;
        if used != 0
            && let Some(last) = bytes.last_mut()
        {
            // Nothing stands in a byte behind the last element.
            *last &= (1 << used) - 1;
        }
        self.tx.constant(ty, &bytes)
    }
}
