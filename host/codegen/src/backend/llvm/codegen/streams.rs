//! Loops that ask for what they will read.
//!
//! ```text
//! for %k { streams = true } { … w[%k * 64 …] … }    =>    each step: prefetch(&w[%k * 64] + a page); …
//! ```
//!
//! Processors see by themselves that memory is read from one end to the other, but begin anew at each page, and what computes with
//! all that it reads has not enough reads under way meanwhile. So each step asks for the lines that it reads, a page ahead. Nothing is
//! read by that, so it may be behind the end.

use std::collections::{BTreeSet, HashSet};

use inkwell::values::PointerValue;

use super::{
    assembler::Assembler,
    error::Result,
    statement::Emitter,
    value::{Class, Form},
};
use tenon_ir::{BinaryOp, BodyView, Expr, Kind, View};

/// Bytes by which a loop asks ahead: those of a page, behind which processors begin anew.
const AHEAD: i64 = 4096;
/// Bytes that memory gives at once.
const LINE: i64 = 64;
/// Nodes of an index that is compared with others.
const MOST_NODES: usize = 64;

/// Vectors of a buffer that lie constant distances apart.
struct Stream {
    buffer: Expr,
    /// What their indices have in common.
    start: Expr,
    shape: Vec<(Kind, u32, u32)>,
    /// Elements from there at which they begin.
    offsets: Vec<i64>,
}

impl Emitter<'_, '_> {
    /// Asks for what a loop over `var` reads a page behind what its body is about to read.
    pub(super) fn ask_ahead(&mut self, var: Expr, body: Expr) -> Result<()> {
        if self.asm.target.device().is_some() {
            return Ok(());
        }
        self.memo.clear();
        for stream in self.streams(var, body) {
            let Form::Uniform(start) = self.value(stream.start)?.form else { continue };
            let buffer = self.scope.buffer(self.body, stream.buffer)?;
            let class = Class::of(buffer.layout.dtype)?;
            let size = i64::from(class.bytes());
            let element = class.memory(self.asm.cx);
            let first = self.asm.element(buffer.pointer, element, start.into_int_value())?;
            let lines: BTreeSet<i64> =
                stream.offsets.iter().map(|offset| (offset * size).div_euclid(LINE)).collect();
            let byte = self.asm.cx.i8_type();
            for line in lines {
                let ahead = self.asm.index(line * LINE + AHEAD);
                let place = self.asm.element_anywhere(first, byte.into(), ahead)?;
                self.asm.prefetch(place)?;
            }
        }
        Ok(())
    }

    /// The vectors that the statements of a loop read of what is given.
    fn streams(&self, var: Expr, body: Expr) -> Vec<Stream> {
        let mut streams: Vec<Stream> = Vec::new();
        let stmts = match self.body.view(body) {
            View::Seq(stmts) => stmts.to_vec(),
            _ => vec![body],
        };
        for (buffer, index) in vector_loads(self.body, &stmts) {
            let is_given = self.scope.buffer(self.body, buffer).is_ok_and(|it| !it.is_writable);
            let (start, offset) = without_constant(self.body, index);
            let Some(shape) = self.shape(start).filter(|_| is_given) else { continue };
            if !shape.contains(&(Kind::VAR, var.0, 0)) {
                continue;
            }
            let is_same = |it: &&mut Stream| it.buffer == buffer && it.shape == shape;
            match streams.iter_mut().find(is_same) {
                Some(stream) => stream.offsets.push(offset),
                None => streams.push(Stream { buffer, start, shape, offsets: vec![offset] }),
            }
        }
        streams
    }

    /// The nodes of an index, which equal ones have in common; none where there are many, or something has no value yet.
    fn shape(&self, index: Expr) -> Option<Vec<(Kind, u32, u32)>> {
        let (mut shape, mut left) = (Vec::new(), vec![index]);
        while let Some(node) = left.pop() {
            if shape.len() == MOST_NODES {
                return None;
            }
            let kind = self.body.kind(node);
            if kind == Kind::VAR {
                self.scope.vars.get(&node)?;
                shape.push((kind, node.0, 0));
                continue;
            }
            let spec = self.body.spec(node);
            shape.push((kind, spec.data, spec.aux));
            left.extend(self.body.operands(node).iter());
        }
        Some(shape)
    }
}

impl<'cx> Assembler<'cx, '_> {
    /// Asks for the line of memory that an address lies in, to be read soon and more than once.
    fn prefetch(&self, place: PointerValue<'cx>) -> Result<()> {
        let [to_read, to_keep, of_data] =
            [0, 3, 1].map(|word| self.cx.i32_type().const_int(word, false).into());
        let args = [place.into(), to_read, to_keep, of_data];
        self.memory_intrinsic("llvm.prefetch", &[place.get_type().into()], &args).map(drop)
    }
}

/// The loads of elements side by side in some statements, as buffers and the index of the first element.
fn vector_loads(body: BodyView<'_>, stmts: &[Expr]) -> Vec<(Expr, Expr)> {
    let (mut seen, mut loads) = (HashSet::new(), Vec::new());
    let is_stored = |&&stmt: &&Expr| body.kind(stmt) == Kind::STORE;
    let mut left: Vec<Expr> = stmts.iter().filter(is_stored).copied().collect();
    while let Some(node) = left.pop() {
        if !seen.insert(node) {
            continue;
        }
        if let View::Load { buffer, indices } = body.view(node)
            && let [index] = indices.to_vec().as_slice()
            && let View::Ramp { base, stride } = body.view(*index)
            && matches!(body.view(stride), View::Int(1))
        {
            loads.push((buffer, base));
        }
        left.extend(body.operands(node).iter());
    }
    loads
}

/// An index without the constant that is added to it, and that.
fn without_constant(body: BodyView<'_>, index: Expr) -> (Expr, i64) {
    match body.view(index) {
        View::Binary { op: BinaryOp::Add, a, b } => match body.view(b) {
            View::Int(constant) => (a, constant),
            _ => (index, 0),
        },
        _ => (index, 0),
    }
}
