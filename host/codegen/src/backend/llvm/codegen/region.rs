//! Buffers in the regions of what the caller lends, whose sizes are known when it calls.
//!
//! `scratch` says which buffer has which region; here are their addresses.

use inkwell::values::{InstructionOpcode as Op, IntValue, PointerValue};

use super::{
    error::{Problem, Result},
    scratch::{ALIGN, Placement},
    statement::{Emitter, scalar},
};
use crate::backend::Scratch;
use tenon_ir::{Dim, Expr, Kind};

impl<'cx> Emitter<'cx, '_> {
    /// Finds where each region begins, at the beginning of the function.
    pub(super) fn begin_regions(&mut self) -> Result<()> {
        let Scratch { bytes, regions } = self.scratch.lent.clone();
        let Some(lent) = self.frame.lent else { return Ok(()) };
        let byte = self.asm.cx.i8_type().into();
        let mut offset = self.asm.index(bytes as i64);
        for region in regions {
            self.regions.push(self.asm.element(lent.scratch, byte, offset)?);
            let bytes = self.size(region)?;
            let end = self.asm.exact_int_op(Op::Add, offset.into(), bytes.into())?;
            let above = self.asm.index(ALIGN as i64 - 1);
            let end = self.asm.exact_int_op(Op::Add, end, above.into())?;
            let mask = self.asm.index(-(ALIGN as i64));
            offset = self.asm.int_op(Op::And, end, mask.into())?.into_int_value();
        }
        Ok(())
    }

    /// The number that a dimension is.
    fn size(&self, dim: Dim) -> Result<IntValue<'cx>> {
        scalar(self.asm.dim(self.body.terms(), &self.scope.symbols, dim)?)
    }

    /// The beginning of a region.
    pub(super) fn region(&self, region: usize) -> Result<PointerValue<'cx>> {
        match self.regions.get(region) {
            Some(&begin) if self.frame.lent.is_some() => Ok(begin),
            _ => Problem::malformed("a region in a parallel loop"),
        }
    }

    /// Where the place of step 0 is of the buffer `name`, for the body of a parallel loop that begins at step `first`;
    /// `None` for what is made elsewhere.
    pub(super) fn pieces_from(
        &self,
        name: Expr,
        first: IntValue<'cx>,
    ) -> Result<Option<PointerValue<'cx>>> {
        if self.body.kind(name) != Kind::BUFFER || self.scope.buffers.contains_key(&name) {
            return Ok(None);
        }
        let Ok(Placement::Piece { region, stride }) = self.scratch.place(name) else {
            return Ok(None);
        };
        let before = self.asm.int_op(Op::Mul, first.into(), self.size(stride)?.into())?;
        let zero = self.asm.index(0);
        let back = self.asm.int_op(Op::Sub, zero.into(), before)?.into_int_value();
        self.asm
            .element_anywhere(self.region(region)?, self.asm.cx.i8_type().into(), back)
            .map(Some)
    }

    /// The place of a buffer that is made in the body of a parallel loop: that of the first step that the body does.
    /// Where the loop has become part of the function around it, all steps are in the first place.
    pub(super) fn piece(
        &self,
        buffer: Expr,
        region: usize,
        stride: Dim,
    ) -> Result<PointerValue<'cx>> {
        let Some(&begin) = self.scope.pieces.get(&buffer) else { return self.region(region) };
        let func = self.frame.func;
        let Some(first) = func.get_nth_param(func.count_params() - 2) else {
            return Problem::malformed("a parallel body without bounds");
        };
        let offset = self.asm.exact_int_op(Op::Mul, first, self.size(stride)?.into())?;
        let byte = self.asm.cx.i8_type().into();
        self.asm.element_anywhere(begin, byte, offset.into_int_value())
    }
}
