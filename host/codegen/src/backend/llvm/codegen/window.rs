//! Lanes that read a few neighbours.
//!
//! ```text
//! A[broadcast(i, 16) + ramp(0, 1, 16) floordiv 4 * 4]     13 elements side by side in one load, and a shuffle of them
//! ```
//!
//! A load of each lane's element alone is as many loads as there are lanes. Where the offsets are one number and constants, and elements
//! of one vector hold all that is read, one load does; what of it lies in front of the first or behind the last is not touched.

use inkwell::{
    types::VectorType,
    values::{BasicValueEnum, InstructionOpcode as Op, InstructionValue, IntValue, VectorValue},
};

use super::{access::Buffer, assembler::Assembler, error::Result, value::Class};

/// Terms of a sum that are looked at.
const MOST_TERMS: usize = 64;

impl<'cx> Assembler<'cx, '_> {
    /// The elements at constant distances from each other, where one vector holds them; none where they lie otherwise.
    pub(super) fn read_window(
        &self,
        buffer: &Buffer<'cx>,
        class: Class,
        offsets: VectorValue<'cx>,
    ) -> Result<Option<BasicValueEnum<'cx>>> {
        let lanes = i64::from(offsets.get_type().get_size());
        let Some((parts, beyond)) = parts_of(offsets) else { return Ok(None) };
        let (Some(&first), Some(&last)) = (beyond.iter().min(), beyond.iter().max()) else {
            return Ok(None);
        };
        if last.saturating_sub(first) >= lanes {
            return Ok(None);
        }
        let mut base = self.index(first);
        for part in parts {
            base = self.exact_int_op(Op::Add, base.into(), part.into())?.into_int_value();
        }
        let bit = self.cx.bool_type();
        let is_read = |lane| bit.const_int(u64::from(lane <= last - first), false);
        let mask: Vec<IntValue<'cx>> = (0..lanes).map(is_read).collect();
        let mask = VectorType::const_vector(&mask);
        let vector = self.read_masked(buffer, class, base, mask)?.into_vector_value();
        let lanes = beyond.into_iter().map(|at| at.abs_diff(first));
        Ok(Some(self.shuffle(vector, vector, lanes)?.into()))
    }
}

/// Numbers that all lanes of a sum have in common, and what each lane has beyond them.
fn parts_of(sum: VectorValue<'_>) -> Option<(Vec<IntValue<'_>>, Vec<i64>)> {
    let mut beyond = vec![0i64; sum.get_type().get_size() as usize];
    let (mut parts, mut left) = (Vec::new(), vec![sum]);
    // A sum of sums of the same numbers has more terms than nodes.
    for _ in 0..MOST_TERMS {
        let Some(part) = left.pop() else { return Some((parts, beyond)) };
        if part.is_constant_data_vector() {
            for (lane, at) in beyond.iter_mut().enumerate() {
                let element = part.get_element_as_constant(lane as u32).into_int_value();
                *at = at.checked_add(element.get_sign_extended_constant()?)?;
            }
            continue;
        }
        if part.is_null() {
            continue;
        }
        let made = part.as_instruction()?;
        match made.get_opcode() {
            Op::Add => left.extend([
                operand(made, 0)?.into_vector_value(),
                operand(made, 1)?.into_vector_value(),
            ]),
            Op::ShuffleVector => parts.push(spread(made)?),
            _ => return None,
        }
    }
    None
}

/// The number that a vector has in all lanes, as [`Assembler::splat`] makes it.
fn spread(shuffle: InstructionValue<'_>) -> Option<IntValue<'_>> {
    let one = operand(shuffle, 0)?.into_vector_value().as_instruction()?;
    let is_one = one.get_opcode() == Op::InsertElement
        && operand(one, 0)?.into_vector_value().is_undef()
        && operand(one, 2)?.into_int_value().get_zero_extended_constant() == Some(0);
    if is_one { Some(operand(one, 1)?.into_int_value()) } else { None }
}

fn operand<'cx>(of: InstructionValue<'cx>, at: u32) -> Option<BasicValueEnum<'cx>> {
    of.get_operand(at)?.value()
}
