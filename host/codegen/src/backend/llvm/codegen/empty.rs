//! Reads of buffers that may turn out to be empty.
//!
//! ```text
//! %out[i] = %x[min(max(%at[i], 0), n - 1)]      %x: f32[n]
//! ```
//!
//! A program reads what may not be there at the nearest place that is. Where an open extent is 0 there is none, so what is read
//! then are zeros from elsewhere. Places that no minimum, maximum or choice is part of are within the buffer by themselves: loops
//! over an axis that is empty take no steps. A kernel of which all results are empty does nothing, so nothing is written either.

use inkwell::{IntPredicate, module::Linkage, values::IntValue};

use super::{
    access::{Buffer, Extent},
    assembler::Assembler,
    dim::Symbols,
    error::Result,
    statement::{Emitter, scalar},
    value::{Form, Value},
};
use tenon_ir::{Args, BinaryOp, BodyView, DType, Expr, Terms, View};

/// Bytes that are zero: more than the widest vector has, with every second element.
const ZEROS: u32 = 4096;
/// Places of more parts than this are taken for such that may be moved.
const MOST_PARTS: usize = 64;

impl<'cx> Assembler<'cx, '_> {
    /// `buffer[indices]`, or zeros where the buffer is empty; `None` where it needs no such care.
    pub(super) fn read_or_zero(
        &self,
        body: BodyView<'_>,
        symbols: &Symbols<'cx>,
        buffer: &Buffer<'cx>,
        places: Args<'_>,
        indices: &[Value<'cx>],
    ) -> Result<Option<Value<'cx>>> {
        if buffer.is_writable || buffer.layout.is_static() || !may_be_moved(body, places) {
            return Ok(None);
        }
        let is_empty = self.is_empty(body.terms(), symbols, buffer)?;
        let zeros = self.zeros().as_pointer_value();
        let pointer = self.builder.build_select(is_empty, zeros, buffer.pointer, "")?;
        let filled = Buffer {
            pointer: pointer.into_pointer_value(),
            layout: buffer.layout.clone(),
            is_writable: false,
        };
        let indices = indices.iter().map(|&index| self.first_if(is_empty, index));
        self.read(&filled, &indices.collect::<Result<Vec<_>>>()?).map(Some)
    }

    /// Whether a buffer has no elements.
    pub(super) fn is_empty(
        &self,
        terms: Terms<'_>,
        symbols: &Symbols<'cx>,
        buffer: &Buffer<'cx>,
    ) -> Result<IntValue<'cx>> {
        let mut is_empty = self.cx.bool_type().const_zero();
        for extent in &buffer.layout.shape {
            if let &Extent::Symbolic(dim) = extent {
                let extent = scalar(self.dim(terms, symbols, dim)?)?;
                let none = self.index(0);
                let is_none = self.builder.build_int_compare(IntPredicate::EQ, extent, none, "")?;
                is_empty = self.builder.build_or(is_empty, is_none, "")?;
            }
        }
        Ok(is_empty)
    }

    /// An index, or the first one.
    fn first_if(&self, cond: IntValue<'cx>, index: Value<'cx>) -> Result<Value<'cx>> {
        if let Form::Ramp { base, stride: stride @ 1..=2 } = index.form {
            let base =
                self.select(cond.into(), base.get_type().const_zero().into(), base.into())?;
            let form = Form::Ramp { base: base.into_int_value(), stride };
            return Ok(Value { form, ..index });
        }
        let zero = match index.form {
            Form::Uniform(value) => self.int_like(value, 0)?,
            Form::Ramp { base, .. } => base.get_type().const_zero().into(),
            Form::Vector(value) => self.int_like(value, 0)?,
        };
        let form = match index.form {
            Form::Vector(_) => Form::Vector(zero),
            _ => Form::Uniform(zero),
        };
        let zero = Value { form, range: None, ..index };
        let cond = Value::scalar(DType::BOOL, cond);
        self.choose(cond, zero, index)
    }

    /// The bytes that are zero.
    fn zeros(&self) -> inkwell::values::GlobalValue<'cx> {
        const NAME: &str = "tenon.zeros";
        if let Some(zeros) = self.module.get_global(NAME) {
            return zeros;
        }
        let ty = self.cx.i8_type().array_type(ZEROS);
        let zeros = self.module.add_global(ty, None, NAME);
        zeros.set_initializer(&ty.const_zero());
        zeros.set_constant(true);
        zeros.set_alignment(64);
        zeros.set_linkage(Linkage::Private);
        zeros
    }
}

impl Emitter<'_, '_> {
    /// Ends the kernel where it has nothing to write.
    pub(super) fn return_if_nothing_is_written(&mut self, outputs: &[Expr]) -> Result<()> {
        let asm = &self.asm;
        let mut is_nothing: Option<IntValue<'_>> = None;
        for output in outputs {
            let Some(buffer) = self.scope.buffers.get(output) else { return Ok(()) };
            if buffer.layout.is_static() {
                return Ok(());
            }
            let is_empty = asm.is_empty(self.body.terms(), &self.scope.symbols, buffer)?;
            is_nothing = Some(match is_nothing {
                Some(others) => asm.builder.build_and(others, is_empty, "")?,
                None => is_empty,
            });
        }
        let Some(is_nothing) = is_nothing else { return Ok(()) };
        let [done, work] =
            ["done", "work"].map(|name| asm.cx.append_basic_block(self.frame.func, name));
        asm.builder.build_conditional_branch(is_nothing, done, work)?;
        asm.builder.position_at_end(done);
        asm.builder.build_return(Some(&asm.cx.i32_type().const_zero()))?;
        asm.builder.position_at_end(work);
        Ok(())
    }
}

/// Whether a place is moved to one that is there: a minimum, maximum or choice is part of it.
fn may_be_moved(body: BodyView<'_>, places: Args<'_>) -> bool {
    let mut pending: Vec<_> = places.to_vec();
    let mut parts = 0;
    while let Some(expr) = pending.pop() {
        parts += 1;
        match body.view(expr) {
            _ if parts > MOST_PARTS => return true,
            View::Select { .. } | View::Binary { op: BinaryOp::Min | BinaryOp::Max, .. } => {
                return true;
            }
            // What it reads is a number, wherever that is from.
            View::Load { .. } => {}
            _ => pending.extend(body.operands(expr).to_vec()),
        }
    }
    false
}
