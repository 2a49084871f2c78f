//! Memory that is taken while a function runs, since its size is known no earlier.
//!
//! ```text
//! find     k                            how many there are
//! take     slot 0, 4*k bytes            by the functions that the caller brings
//! @fill    slot 0
//! @sum     slot 0, output 0
//! give back slot 0                      behind the last that touches it, on the same level of choices
//! ```
//!
//! An output whose size nobody knows before is such memory as well, which is the caller's from then on. A function that fails gives
//! back all that it has.

use super::in_place::each_place;
use super::memory::{Home, TakenOutput};
use super::{Action, Base, Code, PlannedAction, Planner, Step, unsupported};
use tenon_ir::Type;

impl Planner<'_> {
    /// Whether nobody knows before how large an extent of a type is.
    pub(super) fn is_open(&mut self, ty: Type) -> Step<bool> {
        Ok(self.shape(ty)?.into_iter().any(|extent| self.sizes.is_open(extent)))
    }

    /// The same of a tensor.
    pub(super) fn is_open_tensor(&self, tensor: usize) -> bool {
        self.sizes.is_open(self.tensors[tensor].memory.bytes)
    }

    /// Makes a tensor an output that is taken: as it is where that is possible, or a copy.
    pub(super) fn take_output(&mut self, tensor: usize, output: usize) -> Step<()> {
        let given = self.tensors[tensor];
        let shape = self.shape(given.ty)?;
        let is_unsized = self.is_unsized(given.ty);
        if self.memory.take_as_output(given.memory, output, &shape) {
            return Ok(());
        }
        if is_unsized {
            return unsized_result();
        }
        // As much as there is, however much there may be.
        let home = self.memory.unsized_storage();
        let copy = self.tensor(home, 0, given.ty)?;
        self.actions.push(PlannedAction::TakeFor(copy, given.memory.bytes));
        self.memory.take_as_output(self.tensors[copy].memory, output, &shape);
        self.actions.push(PlannedAction::Copy(tensor, copy));
        Ok(())
    }

    /// Makes a tensor what a branch gives whose type says nothing of its size: as it is where that is possible, or a copy.
    pub(super) fn give_unsized(&mut self, given: usize, joined: usize) -> Step<()> {
        let (from, to) = (self.tensors[given], self.tensors[joined].memory);
        if self.memory.move_to_choice(from.memory, to) {
            return Ok(());
        }
        if self.is_unsized(from.ty) {
            return unsized_result();
        }
        self.actions.push(PlannedAction::TakeFor(joined, from.memory.bytes));
        self.actions.push(PlannedAction::Copy(given, joined));
        Ok(())
    }

    /// The number under which the memory of a tensor is taken.
    pub(super) fn slot(&self, tensor: usize) -> Option<usize> {
        match self.tensors[tensor].memory.home {
            Home::Storage(storage) => self.memory.slot_of(storage),
            Home::Input(_) | Home::Constant(_) => None,
        }
    }
}

fn unsized_result<T>() -> Step<T> {
    unsupported(
        "a tensor of unknown rank as a result",
        "give its extents besides, and bring it to a shape that has them",
    )
}

/// Gives back what was taken, as soon as nothing touches it any more, but for what is an output.
pub(super) fn give_back(
    actions: Vec<Action>,
    slots: usize,
    outputs: &[TakenOutput],
) -> Vec<Action> {
    if slots == 0 {
        return actions;
    }
    // For each the last action that touches it, and on how many choices at least those stand that do.
    let mut last: Vec<Option<usize>> = vec![None; slots];
    let mut levels = vec![usize::MAX; slots];
    let mut depth = 0;
    for (now, action) in actions.iter().enumerate() {
        match action {
            Action::Choose(_) => depth += 1,
            Action::End => depth -= 1,
            _ => {}
        }
        let mut touch = |slot: usize| {
            last[slot] = Some(now);
            levels[slot] = levels[slot].min(depth);
        };
        match action {
            Action::Take(take) => touch(take.slot),
            &Action::Keep(slot) => touch(slot),
            _ => {}
        }
        each_place(action, |place| {
            if let Base::Taken(slot) = place.base {
                touch(slot);
            }
        });
    }
    outputs.iter().for_each(|output| last[output.slot] = None);
    let mut ending: Vec<Vec<usize>> = vec![Vec::new(); actions.len()];
    for (slot, last) in last.into_iter().enumerate() {
        if let Some(last) = last {
            ending[last].push(slot);
        }
    }
    // How many choices are open, and what waits for a level.
    let mut depth = 0;
    let mut waiting: Vec<Vec<usize>> = vec![Vec::new()];
    let mut all = Vec::with_capacity(actions.len() + slots);
    for (action, ending) in actions.into_iter().zip(ending) {
        match &action {
            Action::Choose(_) => {
                depth += 1;
                waiting.push(Vec::new());
            }
            Action::End => {
                depth -= 1;
                waiting.pop();
            }
            _ => {}
        }
        all.push(action);
        for slot in ending {
            waiting[levels[slot]].push(slot);
        }
        all.extend(waiting[depth].drain(..).map(Action::GiveBack));
    }
    all
}

impl Code {
    /// Says of each body whether it takes memory, or calls what does: of a circle all do, or none.
    pub fn note_what_takes(&mut self) {
        let mut takes: Vec<bool> = Vec::with_capacity(self.routines.len());
        let mut first = 0;
        while let Some(routine) = self.routines.get(first) {
            let circle = routine.circle;
            let members = self.routines[first..].iter();
            let is_one = |it: &&super::Routine| circle.is_some() && it.circle == circle;
            let count = members.take_while(is_one).count().max(1);
            let members = &mut self.routines[first..first + count];
            let is_taking = members.iter().any(|it| it.body.takes_with(&takes));
            members.iter_mut().for_each(|it| it.body.takes = is_taking);
            takes.extend(std::iter::repeat_n(is_taking, count));
            first += count;
        }
        self.entries.iter_mut().for_each(|it| it.body.takes = it.body.takes_with(&takes));
    }
}

impl super::Body {
    /// Whether it takes memory, or calls one of the first routines that does.
    fn takes_with(&self, routines: &[bool]) -> bool {
        let calls = |number: usize| routines.get(number).copied().unwrap_or(false);
        self.takes
            || self.actions.iter().any(|action| match action {
                Action::Call(call) => match call.callee {
                    super::Callee::Routine(number) => calls(number),
                    super::Callee::Kernel(_) => false,
                },
                Action::Loop(it) => calls(it.routine),
                _ => false,
            })
    }
}
