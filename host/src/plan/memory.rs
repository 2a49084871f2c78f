//! Gives tensors their addresses: in the workspace, or in the caller's outputs.

use super::{Base, Place, PlanProblem};

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
    pub(super) bytes: u64,
    /// Bytes of an element, which is how it is aligned at least.
    pub(super) unit: u64,
}

impl PlannedTensor {
    /// Whether both have a byte in common.
    pub(super) fn overlaps(&self, other: &PlannedTensor) -> bool {
        self.home == other.home
            && self.offset < other.offset.saturating_add(other.bytes)
            && other.offset < self.offset.saturating_add(self.bytes)
    }
}

/// Memory that the function asked for.
#[derive(Clone, Copy, Debug)]
struct Storage {
    size: u64,
    align: u64,
    /// Bytes up to the end of the last tensor in it.
    used: u64,
    /// Bytes of the largest element in it.
    unit: u64,
    /// The output that it is, if it is one.
    output: Option<usize>,
    /// Where it lies in the workspace otherwise.
    offset: u64,
}

/// All storages of a function.
#[derive(Default, Debug)]
pub(super) struct Memory {
    storages: Vec<Storage>,
}

impl Memory {
    pub(super) fn storage(&mut self, size: u64, align: u64) -> Home {
        let align = align.max(ALIGN);
        self.storages.push(Storage { size, align, used: 0, unit: 1, output: None, offset: 0 });
        Home::Storage(self.storages.len() - 1)
    }

    /// A tensor in a storage.
    pub(super) fn tensor(
        &mut self,
        home: Home,
        offset: u64,
        bytes: u64,
        unit: u64,
    ) -> Result<PlannedTensor, PlanProblem> {
        if let Home::Storage(index) = home {
            let storage = &mut self.storages[index];
            let end = offset.checked_add(bytes).filter(|&end| end <= storage.size);
            let size = storage.size;
            let end = end.ok_or(PlanProblem::DoesNotFit { bytes, offset, size })?;
            storage.used = storage.used.max(end);
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
        let fits =
            tensor.offset == 0 && storage.used <= tensor.bytes && storage.unit <= tensor.unit;
        let fits = fits && storage.output.is_none();
        if fits {
            storage.output = Some(index);
        }
        fits
    }

    /// Lays out the storages that are no outputs; gives the size of the workspace.
    pub(super) fn lay_out(&mut self) -> Result<u64, PlanProblem> {
        let mut end = 0u64;
        for storage in self.storages.iter_mut().filter(|storage| storage.output.is_none()) {
            storage.offset = end.next_multiple_of(storage.align);
            let next = u128::from(storage.offset) + u128::from(storage.size);
            end = u64::try_from(next)
                .ok()
                .filter(|&end| end < 1 << 47)
                .ok_or(PlanProblem::TooLarge(next))?;
        }
        Ok(end.next_multiple_of(ALIGN))
    }

    /// The address of a tensor, after [`Memory::lay_out`].
    pub(super) fn place(&self, tensor: PlannedTensor) -> Place {
        let offset = tensor.offset;
        match tensor.home {
            Home::Input(index) => Place { base: Base::Input(index), offset },
            Home::Constant(index) => Place { base: Base::Constant(index), offset },
            Home::Storage(index) => match self.storages[index] {
                Storage { output: Some(index), .. } => Place { base: Base::Output(index), offset },
                storage => Place { base: Base::Workspace, offset: storage.offset + offset },
            },
        }
    }
}
