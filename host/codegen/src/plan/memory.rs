//! Gives tensors their addresses: in the workspace, in the caller's outputs, or in memory that is taken when its size is known.
//!
//! A branch has an area of the workspace for what it makes. The areas of branches that do not run at the same time share
//! their place, behind what the block around them makes:
//!
//! ```text
//! | the function's | of a branch | of a branch in it |
//!                  | of the other branch |
//!                  | of a branch of a later choice |
//! ```

use super::sizes::{Agreement, Size, Sizes};
use super::{Base, Place, PlanProblem};
use tenon_ir::BinaryOp;

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
    /// As many as it is made room for.
    pub(super) room: Size,
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
    /// The area that it was made in.
    area: usize,
    /// What it is a part of instead of the workspace.
    owner: Option<Owner>,
    /// Its memory, where that is taken when its size is known, by its number among those of the function.
    slot: Option<usize>,
    /// Whether not even the function that has it knows its size.
    is_unsized: bool,
    /// Where it lies in the workspace otherwise.
    offset: Size,
}

/// An output that is memory which the function takes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TakenOutput {
    pub output: usize,
    /// By its number among those of the function.
    pub slot: usize,
    pub shape: Vec<Size>,
}

/// What a storage becomes, so that its tensor need not be copied there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Owner {
    Output(usize),
    /// By its number, which is smaller than that of the storage.
    Storage(usize),
}

/// A part of the workspace.
#[derive(Clone, Copy, Debug)]
struct Area {
    /// The one that it lies behind; the first one lies behind itself.
    parent: usize,
    /// Where it ends.
    end: Size,
}

/// All storages of a function.
#[derive(Debug)]
pub(super) struct Memory {
    storages: Vec<Storage>,
    /// How many of them are taken when their sizes are known.
    slots: usize,
    /// Of these the ones that outputs are, with the outputs.
    taken: Vec<TakenOutput>,
    areas: Vec<Area>,
    /// The area that storages are made in.
    area: usize,
}

impl Default for Memory {
    fn default() -> Memory {
        let function = Area { parent: 0, end: Size::Known(0) };
        let (storages, taken) = (Vec::new(), Vec::new());
        Memory { storages, slots: 0, taken, areas: vec![function], area: 0 }
    }
}

impl Memory {
    /// Begins a branch: what is made from here on is made in it.
    pub(super) fn enter(&mut self) {
        self.areas.push(Area { parent: self.area, end: Size::Known(0) });
        self.area = self.areas.len() - 1;
    }

    /// Ends the branch.
    pub(super) fn leave(&mut self) {
        self.area = self.areas[self.area].parent;
    }

    pub(super) fn storage(&mut self, size: Size, align: u64) -> Home {
        let (align, none) = (align.max(ALIGN), Size::Known(0));
        self.storages.push(Storage {
            size,
            align,
            used: none,
            unit: 1,
            area: self.area,
            owner: None,
            slot: None,
            is_unsized: false,
            offset: none,
        });
        Home::Storage(self.storages.len() - 1)
    }

    /// One that is taken when its size is known.
    pub(super) fn storage_to_take(&mut self, size: Size, align: u64) -> Home {
        let home = self.storage(size, align);
        if let Home::Storage(storage) = home {
            self.storages[storage].slot = Some(self.slots);
            self.slots += 1;
        }
        home
    }

    /// One that is taken by somebody who knows how much it is.
    pub(super) fn unsized_storage(&mut self) -> Home {
        let home = self.storage_to_take(Size::Known(0), 1);
        if let Home::Storage(storage) = home {
            self.storages[storage].is_unsized = true;
        }
        home
    }

    /// What has to be taken for a storage: its number and its size; nothing where it lies in something else. After
    /// [`Memory::settle`].
    pub(super) fn to_take(&self, storage: usize) -> Option<(usize, Size)> {
        let Storage { owner, slot, size, .. } = self.storages[storage];
        match owner {
            None => slot.map(|slot| (slot, size)),
            Some(Owner::Storage(owner)) if self.storages[owner].is_unsized => {
                self.storages[owner].slot.map(|slot| (slot, size))
            }
            Some(_) => None,
        }
    }

    /// The number under which a storage is taken. After [`Memory::settle`].
    pub(super) fn slot_of(&self, storage: usize) -> Option<usize> {
        self.to_take(storage).map(|(slot, _)| slot)
    }

    /// Makes the storage of `tensor` what a choice gives that has no size before: when it is taken in the branch in work, for the
    /// tensor alone.
    pub(super) fn move_to_choice(&mut self, tensor: PlannedTensor, joined: PlannedTensor) -> bool {
        let (Home::Storage(storage), Home::Storage(target)) = (tensor.home, joined.home) else {
            return false;
        };
        let area = self.area;
        let storage = &mut self.storages[storage];
        let moves = storage.slot.is_some()
            && storage.owner.is_none()
            && storage.area == area
            && tensor.offset == 0;
        if moves {
            storage.owner = Some(Owner::Storage(target));
        }
        moves
    }

    /// How many storages are taken, and the outputs that some of them are.
    pub(super) fn slots(&mut self) -> (usize, Vec<TakenOutput>) {
        (self.slots, std::mem::take(&mut self.taken))
    }

    /// Makes the storage of `tensor` an output that is taken; false where it is another one, lies in something else, or is more
    /// than the tensor.
    pub(super) fn take_as_output(
        &mut self,
        tensor: PlannedTensor,
        output: usize,
        shape: &[Size],
    ) -> bool {
        let Home::Storage(storage) = tensor.home else { return false };
        let Storage { owner, slot, .. } = self.storages[storage];
        let slot = slot.filter(|_| owner.is_none() && tensor.offset == 0);
        let slot = slot.filter(|&slot| self.taken.iter().all(|it| it.slot != slot));
        self.taken.extend(slot.map(|slot| TakenOutput { output, slot, shape: shape.to_vec() }));
        slot.is_some()
    }

    /// A tensor in a storage, and what must hold for it to lie there.
    pub(super) fn tensor(
        &mut self,
        sizes: &mut Sizes,
        home: Home,
        offset: u64,
        bytes: Size,
        unit: u64,
    ) -> Result<(PlannedTensor, Option<Agreement>), PlanProblem> {
        let (mut agreement, room) = (None, sizes.most(bytes));
        if let Home::Storage(index) = home
            && !self.storages[index].is_unsized
        {
            let storage = &mut self.storages[index];
            let end = sizes.binary(BinaryOp::Add, Size::Known(offset as i64), room);
            match (end, storage.size) {
                (Size::Known(end), Size::Known(size)) if end > size => {
                    let (bytes, size) = (end as u64 - offset, size as u64);
                    return Err(PlanProblem::DoesNotFit { bytes, offset, size });
                }
                (Size::Known(_), Size::Known(_)) => {}
                (end, size) if end == size => {}
                (end, size) => agreement = Some(Agreement::AtMost(end, size)),
            }
            storage.used = match storage.used {
                Size::Known(0) => end,
                used => sizes.binary(BinaryOp::Max, end, used),
            };
            storage.unit = storage.unit.max(unit);
        }
        Ok((PlannedTensor { home, offset, bytes, room, unit }, agreement))
    }

    /// The memory of a tensor as `bytes` of another kind: as many, which what is known before of either need not say. So the
    /// room stays what it was.
    pub(super) fn view(&mut self, of: PlannedTensor, bytes: Size, unit: u64) -> PlannedTensor {
        if let Home::Storage(storage) = of.home {
            let storage = &mut self.storages[storage];
            storage.unit = storage.unit.max(unit);
        }
        PlannedTensor { bytes, unit, ..of }
    }

    /// Whether the function may write a tensor: it made its memory.
    pub(super) fn is_writable(&self, tensor: PlannedTensor) -> bool {
        matches!(tensor.home, Home::Storage(_))
    }

    /// Makes the storage of `tensor` the caller's output `index`, so that nothing has to be copied; see
    /// [`give`](Self::give).
    pub(super) fn give_to_output(
        &mut self,
        sizes: &Sizes,
        tensor: PlannedTensor,
        index: usize,
    ) -> bool {
        self.give(sizes, tensor, Owner::Output(index))
    }

    /// Whether a tensor begins an output.
    pub(super) fn is_output(&self, tensor: PlannedTensor, index: usize) -> bool {
        let Home::Storage(storage) = tensor.home else { return false };
        tensor.offset == 0 && self.storages[storage].owner == Some(Owner::Output(index))
    }

    /// Makes the storage of `tensor`, which the result of the branch in work is, one with the storage of `joined`, which
    /// the choice was given before: when it is the branch that made it; see [`give`](Self::give).
    pub(super) fn give_to_choice(
        &mut self,
        sizes: &Sizes,
        tensor: PlannedTensor,
        joined: PlannedTensor,
    ) -> bool {
        let (Home::Storage(storage), Home::Storage(target)) = (tensor.home, joined.home) else {
            return false;
        };
        self.storages[storage].area == self.area && self.give(sizes, tensor, Owner::Storage(target))
    }

    /// Makes the storage of `tensor` a part of something else: when it is none already, and nothing in it reaches beyond
    /// the tensor or wants to be aligned better than the elements must. The room there is what the tensor's own extents are
    /// at most, which a view may exceed.
    fn give(&mut self, sizes: &Sizes, tensor: PlannedTensor, owner: Owner) -> bool {
        let Home::Storage(storage) = tensor.home else { return false };
        let is_taken = match owner {
            Owner::Output(_) => false,
            Owner::Storage(owner) => self.storages[owner].slot.is_some(),
        };
        let storage = &mut self.storages[storage];
        let is_all = match (storage.used, tensor.room) {
            (Size::Known(used), Size::Known(bytes)) => used <= bytes,
            (used, bytes) => used == bytes,
        };
        let has_room = [tensor.bytes, sizes.most(tensor.bytes)].contains(&tensor.room);
        let fits = tensor.offset == 0
            && is_all
            && has_room
            && !storage.is_unsized
            && storage.unit <= tensor.unit;
        let fits = fits && storage.owner.is_none() && storage.slot.is_some() == is_taken;
        if fits {
            storage.owner = Some(owner);
        }
        fits
    }

    /// Lays out the storages that are parts of nothing else, in each area those of known size first; gives the size of the
    /// workspace.
    pub(super) fn lay_out(&mut self, sizes: &mut Sizes) -> Result<Size, PlanProblem> {
        let mut inside: Vec<Vec<usize>> = vec![Vec::new(); self.areas.len()];
        for (index, storage) in self.storages.iter().enumerate() {
            if storage.owner.is_none() && storage.slot.is_none() {
                inside[storage.area].push(index);
            }
        }
        let mut all: Option<Size> = None;
        // An area comes behind the one around it.
        for (area, storages) in inside.into_iter().enumerate() {
            let begin = match area {
                0 => Size::Known(0),
                area => self.areas[self.areas[area].parent].end,
            };
            let end = self.lay_out_area(sizes, begin, &storages)?;
            self.areas[area].end = end;
            all = Some(all.map_or(end, |all| sizes.binary(BinaryOp::Max, all, end)));
        }
        Ok(all.unwrap_or_default())
    }

    /// Lays out storages from `begin` on; gives where they end.
    fn lay_out_area(
        &mut self,
        sizes: &mut Sizes,
        begin: Size,
        storages: &[usize],
    ) -> Result<Size, PlanProblem> {
        let mut end = begin.known().map_or(0, |begin| begin as u64);
        for &index in storages {
            let storage = &mut self.storages[index];
            let Size::Known(size) = storage.size else { continue };
            let offset = end.next_multiple_of(storage.align);
            let next = u128::from(offset) + size.unsigned_abs() as u128;
            end = u64::try_from(next)
                .ok()
                .filter(|&end| end < 1 << 47)
                .ok_or(PlanProblem::TooLarge(next))?;
            storage.offset = Size::Known(offset as i64);
            if begin.known().is_none() {
                storage.offset = sizes.binary(BinaryOp::Add, begin, storage.offset);
            }
        }
        let mut end = Size::Known(end.next_multiple_of(ALIGN) as i64);
        if begin.known().is_none() {
            end = sizes.binary(BinaryOp::Add, begin, end);
        }
        for &index in storages {
            let storage = &mut self.storages[index];
            if let Size::Computed(_) = storage.size {
                storage.offset = sizes.aligned(end, storage.align);
                end = sizes.binary(BinaryOp::Add, storage.offset, storage.size);
            }
        }
        Ok(sizes.aligned(end, ALIGN))
    }

    /// What every storage is a part of in the end, if it is one of something; a storage for itself otherwise.
    pub(super) fn settle(&mut self) {
        for index in 0..self.storages.len() {
            if let Some(Owner::Storage(owner)) = self.storages[index].owner {
                let outer = self.storages[owner].owner;
                self.storages[index].owner = outer.or(Some(Owner::Storage(owner)));
            }
        }
    }

    /// The address of a tensor, after [`Memory::lay_out`] and [`Memory::settle`].
    pub(super) fn place(&self, sizes: &mut Sizes, tensor: PlannedTensor) -> Place {
        let offset = Size::Known(tensor.offset as i64);
        match tensor.home {
            Home::Input(index) => Place { base: Base::Input(index), offset },
            Home::Constant(index) => Place { base: Base::Constant(index), offset },
            Home::Storage(index) => {
                let storage = match self.storages[index].owner {
                    Some(Owner::Output(index)) => {
                        return Place { base: Base::Output(index), offset };
                    }
                    Some(Owner::Storage(owner)) => &self.storages[owner],
                    None => &self.storages[index],
                };
                if let Some(slot) = storage.slot {
                    return Place { base: Base::Taken(slot), offset };
                }
                let offset = sizes.binary(BinaryOp::Add, storage.offset, offset);
                Place { base: Base::Workspace, offset }
            }
        }
    }
}
