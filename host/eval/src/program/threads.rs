//! The threads of a block, each a coroutine: it runs until it ends or waits for the others.

use super::ProgramError;
use super::code::Instr;
use super::memory::View;
use super::run::{Run, Stop};

/// A block of more threads is refused; devices have fewer.
const MAX_THREADS: usize = 1 << 14;

/// A thread while others run.
struct Thread {
    number: u32,
    /// The next instruction.
    at: usize,
    ints: Vec<i64>,
    floats: Vec<f64>,
    /// The buffers that are its own.
    own: Vec<(u32, View)>,
}

/// The threads of a block.
#[derive(Default)]
struct Team {
    /// The next one is the last.
    ready: Vec<Thread>,
    waiting: Vec<Thread>,
    started: u32,
    ended: usize,
}

impl Run<'_> {
    /// Runs the loop over threads at an instruction until all of them are done; the instruction behind it.
    pub(super) fn run_threads(&mut self, fork: usize) -> Result<usize, ProgramError> {
        let Instr::Fork { by, .. } = self.program.code[fork] else { return Ok(fork + 1) };
        let (ints, floats) = (self.ints.clone(), self.floats.clone());
        let mut team = Team::default();
        self.split(&mut team, fork)?;
        loop {
            while let Some(thread) = team.ready.pop() {
                self.resume(&mut team, thread)?;
            }
            if team.waiting.is_empty() {
                break;
            }
            self.check_barrier(&team)?;
            self.memory.next_epoch();
            team.ready.extend(team.waiting.drain(..).rev());
        }
        self.memory.next_epoch();
        (self.ints, self.floats) = (ints, floats);
        Ok(fork + 1 + by as usize)
    }

    /// Starts a thread for each step of the loop at an instruction, with what is known here.
    fn split(&mut self, team: &mut Team, fork: usize) -> Result<(), ProgramError> {
        let Instr::Fork { var, min, extent, by } = self.program.code[fork] else { return Ok(()) };
        let (first, count) = (self.ints[min as usize], self.ints[extent as usize].max(0));
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        if count.saturating_add(team.started as usize) > MAX_THREADS {
            return Err(ProgramError::Threads(MAX_THREADS));
        }
        self.budget.step(count as u64 * (u64::from(by) + 1))?;
        for step in (0..count).rev() {
            let mut ints = self.ints.clone();
            ints[var as usize] = first + step as i64;
            let (floats, number) = (self.floats.clone(), team.started + step as u32);
            team.ready.push(Thread { number, at: fork + 1, ints, floats, own: Vec::new() });
        }
        team.started += count as u32;
        Ok(())
    }

    /// Runs a thread until it ends, waits or is split.
    fn resume(&mut self, team: &mut Team, mut thread: Thread) -> Result<(), ProgramError> {
        self.memory.enter(thread.number, std::mem::take(&mut thread.own));
        (self.ints, self.floats) =
            (std::mem::take(&mut thread.ints), std::mem::take(&mut thread.floats));
        let stop = self.advance(thread.at)?;
        let own = self.memory.leave();
        match stop {
            Stop::Barrier(at) => {
                let (ints, floats) =
                    (std::mem::take(&mut self.ints), std::mem::take(&mut self.floats));
                team.waiting.push(Thread { at, ints, floats, own, ..thread });
            }
            Stop::Fork(at) => self.split(team, at)?,
            Stop::End => {
                self.memory.release(own);
                team.ended += 1;
            }
        }
        Ok(())
    }

    /// All threads come to one barrier.
    fn check_barrier(&self, team: &Team) -> Result<(), ProgramError> {
        let at = team.waiting[0].at;
        let waiting = team.waiting.iter().filter(|thread| thread.at == at).count();
        let others = team.ended + team.waiting.len() - waiting;
        match others {
            0 => Ok(()),
            others => {
                let stmt = self.stmt(at - 1);
                Err(ProgramError::Divergence { waiting, others, stmt })
            }
        }
    }
}
