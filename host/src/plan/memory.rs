//! Gives tensors their addresses: in the workspace, or in the caller's outputs.

use super::sizes::{Agreement, Size, Sizes};
use super::{Base, Place, PlanProblem};
use crate::ir::BinaryOp;

/// Where storages begin: a cache line, and the widest vector.
const ALIGN: u64 = 64;

/// What a tensor lies in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Home {
    Input(usize),
    Constant(usize),
    Storage(usize),
}

/// A tensor that exists while the function runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PlannedTensor {
    pub(super) home: Home,
    pub(super) offset: u64,
    pub(super) bytes: Size,
    /// Bytes of an element, which is how it is aligned at least.
    pub(super) unit: u64,
}

impl PlannedTensor {
    /// Whether both may have a byte in common.
    pub(super) fn overlaps(&self, other: &PlannedTensor) -> bool {
        let begins_before_end = |one: &PlannedTensor, other: &PlannedTensor| match other.bytes {
            Size::Known(bytes) => one.offset < other.offset.saturating_add(bytes as u64),
            Size::Computed(_) => true,
        };
        self.home == other.home && begins_before_end(self, other) && begins_before_end(other, self)
    }
}

/// Memory that the function asked for.
#[derive(Clone, Copy, Debug)]
struct Storage {
    size: Size,
    align: u64,
    /// Bytes up to the end of the last tensor in it.
    used: Size,
    /// Bytes of the largest element in it.
    unit: u64,
    /// The output that it is, if it is one.
    output: Option<usize>,
    /// Where it lies in the workspace otherwise.
    offset: Size,
}

/// All storages of a function.
#[derive(Default, Debug)]
pub(super) struct Memory {
    storages: Vec<Storage>,
    /// What must hold for tensors to lie in their storages.
    pub(super) agreements: Vec<Agreement>,
}

impl Memory {
    pub(super) fn storage(&mut self, size: Size, align: u64) -> Home {
        let (align, none) = (align.max(ALIGN), Size::Known(0));
        self.storages.push(Storage {
            size,
            align,
            used: none,
            unit: 1,
            output: None,
            offset: none,
        });
        Home::Storage(self.storages.len() - 1)
    }

    /// A tensor in a storage.
    pub(super) fn tensor(
        &mut self,
        sizes: &mut Sizes,
        home: Home,
        offset: u64,
        bytes: Size,
        unit: u64,
    ) -> Result<PlannedTensor, PlanProblem> {
        if let Home::Storage(index) = home {
            let storage = &mut self.storages[index];
            let end = sizes.binary(BinaryOp::Add, Size::Known(offset as i64), bytes);
            match (end, storage.size) {
                (Size::Known(end), Size::Known(size)) if end > size => {
                    let (bytes, size) = (end as u64 - offset, size as u64);
                    return Err(PlanProblem::DoesNotFit { bytes, offset, size });
                }
                (Size::Known(_), Size::Known(_)) => {}
                (end, size) if end == size => {}
                (end, size) => self.agreements.push(Agreement::AtMost(end, size)),
            }
            storage.used = match storage.used {
                Size::Known(0) => end,
                used => sizes.binary(BinaryOp::Max, end, used),
            };
            storage.unit = storage.unit.max(unit);
        }
        Ok(PlannedTensor { home, offset, bytes, unit })
    }

    /// Makes the storage of `tensor` the caller's output `index`, so that nothing has to be copied:
    /// when it is not an output already, and nothing in it reaches beyond the tensor or wants to be
    /// aligned better than the caller must.
    pub(super) fn give_to_output(&mut self, tensor: PlannedTensor, index: usize) -> bool {
        let Home::Storage(storage) = tensor.home else { return false };
        let storage = &mut self.storages[storage];
        let is_all = match (storage.used, tensor.bytes) {
            (Size::Known(used), Size::Known(bytes)) => used <= bytes,
            (used, bytes) => used == bytes,
        };
        let fits = tensor.offset == 0 && is_all && storage.unit <= tensor.unit;
        let fits = fits && storage.output.is_none();
        if fits {
            storage.output = Some(index);
        }
        fits
    }

    /// Lays out the storages that are no outputs, those of known size first; gives the size of the workspace.
    pub(super) fn lay_out(&mut self, sizes: &mut Sizes) -> Result<Size, PlanProblem> {
        let mut end = 0u64;
        let is_inside = |storage: &&mut Storage| storage.output.is_none();
        for storage in self.storages.iter_mut().filter(is_inside) {
            let Size::Known(size) = storage.size else { continue };
            let offset = end.next_multiple_of(storage.align);
            let next = u128::from(offset) + size.unsigned_abs() as u128;
            end = u64::try_from(next)
                .ok()
                .filter(|&end| end < 1 << 47)
                .ok_or(PlanProblem::TooLarge(next))?;
            storage.offset = Size::Known(offset as i64);
        }
        let mut end = Size::Known(end.next_multiple_of(ALIGN) as i64);
        for storage in self.storages.iter_mut().filter(is_inside) {
            if let Size::Computed(_) = storage.size {
                storage.offset = sizes.aligned(end, storage.align);
                end = sizes.binary(BinaryOp::Add, storage.offset, storage.size);
            }
        }
        Ok(sizes.aligned(end, ALIGN))
    }

    /// The address of a tensor, after [`Memory::lay_out`].
    pub(super) fn place(&self, sizes: &mut Sizes, tensor: PlannedTensor) -> Place {
        let offset = Size::Known(tensor.offset as i64);
        match tensor.home {
            Home::Input(index) => Place { base: Base::Input(index), offset },
            Home::Constant(index) => Place { base: Base::Constant(index), offset },
            Home::Storage(index) => match self.storages[index] {
                Storage { output: Some(index), .. } => Place { base: Base::Output(index), offset },
                storage => {
                    let offset = sizes.binary(BinaryOp::Add, storage.offset, offset);
                    Place { base: Base::Workspace, offset }
                }
            },
        }
    }
}
