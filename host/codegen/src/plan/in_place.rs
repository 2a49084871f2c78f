//! Inputs that are updated in place.
//!
//! ```text
//! copy     input 1 -> output 0          a caller may give one buffer for both, and nothing is copied then
//! @put     rows, output 0               what stands behind the copy reads output 0, never input 1
//! ```
//!
//! That is found in what the function does, whoever wrote it: where the copy is not the first to write the output, or the input is
//! read behind it, the buffers have to be apart.

use std::collections::HashSet;

use super::sizes::Size;
use super::{
    Action, Base, Copy, EntryArgument, Limit, LoopArgument, Place, PlanProblem, PlannedAction,
    Planner, Room, Step, Value, malformed,
};
use tenon_ir::Args;

impl<'a> Planner<'a> {
    /// Notes a copy of one tensor to the memory of another.
    pub(super) fn copy(&mut self, args: Args<'a>) -> Step<Value> {
        let (Some(from), Some(to)) = (args.get(0), args.get(1)) else {
            return malformed("a copy of nothing");
        };
        let (Value::Tensor(from), Value::Tensor(to)) = (self.resolve(from)?, self.resolve(to)?)
        else {
            return malformed("a copy of something that is no tensor");
        };
        let [read, written] = [from, to].map(|tensor| self.tensors[tensor].memory);
        if !self.memory.is_writable(written) {
            let (program, what) = ("memory.copy".to_owned(), "an input or a constant");
            return Err(PlanProblem::ReadOnly { program, index: 1, what });
        }
        if self.tensors[from].ty == self.tensors[to].ty || read.bytes == written.bytes {
            self.actions.push(PlannedAction::Copy(from, to));
        } else {
            self.copy_to_front(from, to)?;
        }
        Ok(self.tuple(Vec::new()))
    }
}

/// The inputs, each with the output, for which a caller may give one buffer; the copies between them are marked. `inputs` and
/// `outputs` are the bytes of each, and `is_same` says whether two are of one type and shape; `rooms` are those of outputs that are
/// longer than the input.
pub(super) fn in_place(
    actions: &mut [Action],
    [inputs, outputs]: [&[Size]; 2],
    is_same: impl Fn([usize; 2]) -> bool,
    rooms: &[Room],
) -> Vec<[usize; 2]> {
    let times = Times::of(actions, inputs.len(), outputs.len());
    let with_room: HashSet<[usize; 2]> = rooms.iter().map(|it| [it.input, it.output]).collect();
    let mut pairs: Vec<[usize; 2]> = Vec::new();
    let mut depth = 0;
    for (now, action) in actions.iter_mut().enumerate() {
        match action {
            Action::Choose(_) => depth += 1,
            Action::End => depth -= 1,
            Action::Copy(copy) if depth == 0 => {
                let [from, to] = [copy.from, copy.to];
                let (Base::Input(input), Base::Output(output)) = (from.base, to.base) else {
                    continue;
                };
                let is_at_begin = [from, to].iter().all(|place| place.offset == Size::Known(0));
                let has_room = with_room.contains(&[input, output]);
                let is_all = copy.bytes == inputs[input]
                    && copy.bytes == outputs[output]
                    && copy.rows.is_none()
                    && is_same([input, output]);
                let is_whole = is_at_begin && (is_all || has_room && copy.rows.is_some());
                let is_alone = !pairs.iter().any(|pair| pair[0] == input || pair[1] == output);
                if is_whole
                    && is_alone
                    && times.last_of_input[input] == Some(now)
                    && times.first_of_output[output] == Some(now)
                {
                    copy.unless_same = true;
                    pairs.push([input, output]);
                }
            }
            _ => {}
        }
    }
    pairs.sort_unstable();
    pairs
}

/// When inputs are touched last, and outputs first.
struct Times {
    last_of_input: Vec<Option<usize>>,
    first_of_output: Vec<Option<usize>>,
}

impl Times {
    fn of(actions: &[Action], inputs: usize, outputs: usize) -> Self {
        let mut times =
            Times { last_of_input: vec![None; inputs], first_of_output: vec![None; outputs] };
        for (now, action) in actions.iter().enumerate() {
            each_place(action, |place| match place.base {
                Base::Input(input) => times.last_of_input[input] = Some(now),
                Base::Output(output) => {
                    times.first_of_output[output].get_or_insert(now);
                }
                Base::Constant(_) | Base::Workspace | Base::Taken(_) => {}
            });
        }
        times
    }
}

/// All places that an action may touch.
pub(super) fn each_place(action: &Action, mut note: impl FnMut(Place)) {
    match action {
        Action::Call(call) => call.args.iter().for_each(|arg| match *arg {
            EntryArgument::Memory(place) | EntryArgument::Taken(place) => note(place),
            EntryArgument::Scalar { .. } => {}
        }),
        Action::Write(write) => note(write.to),
        Action::Copy(Copy { from, to, .. }) => [*from, *to].into_iter().for_each(note),
        Action::Find(find) => note(find.from),
        &Action::Expect(place, _) | &Action::Choose(place) => note(place),
        Action::Agree(..) | Action::Otherwise | Action::End => {}
        Action::Take(_) | Action::GiveBack(_) | Action::Keep(_) => {}
        Action::Loop(it) => {
            [it.go, it.again, it.trip].into_iter().for_each(&mut note);
            if let Limit::At(place) = it.limit {
                note(place);
            }
            let carried = it.carried.iter().flat_map(|it| [it.from, it.here, it.there]);
            let rows = it.rows.iter().flat_map(|rows| [Some(rows.to), rows.more]).flatten();
            carried.chain(rows).for_each(&mut note);
            it.args.iter().for_each(|arg| match *arg {
                LoopArgument::Memory(place) => note(place),
                LoopArgument::Current(_) | LoopArgument::Next(_) | LoopArgument::Row(_) => {}
            });
        }
    }
}
