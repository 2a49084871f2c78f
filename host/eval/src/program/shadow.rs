//! Who touched which memory while a device runs a program.
//!
//! Threads of a block wait for each other at barriers, which begin a new *epoch*. In one epoch an element that a thread writes may
//! not be touched by another thread; blocks never wait for each other. Numbers prove nothing here: in one order of the threads
//! they may be right all the same.

/// Who touches memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Who {
    /// Counted from one; zero is nobody.
    block: u32,
    thread: u32,
    /// How often the threads of the block have waited for each other.
    epoch: u32,
}

/// Several threads of a block, or several blocks.
const MANY: u32 = u32::MAX;

impl Who {
    const NOBODY: Who = Who { block: 0, thread: 0, epoch: 0 };

    /// Whether what this one did may happen at any time before or behind what `other` does.
    fn is_beside(self, other: Who) -> bool {
        self.block != 0
            && (self.block != other.block
                || self.epoch == other.epoch && self.thread != other.thread)
    }

    /// This one and another one.
    fn and(self, other: Who) -> Who {
        match (self.block, self.epoch == other.epoch) {
            (0, _) => other,
            (block, _) if block != other.block => Who { block: MANY, ..other },
            // What was before the last barrier is in order with all that follows.
            (_, false) => other,
            (_, true) if self.thread != other.thread => Who { thread: MANY, ..other },
            (_, true) => other,
        }
    }

    /// The two, for messages.
    fn with(self, other: Who) -> String {
        let thread = |who: Who| match who.thread {
            MANY => "several threads".to_owned(),
            number => format!("thread {number}"),
        };
        match self.block == other.block {
            true => format!("{} and {}", thread(self), thread(other)),
            false => "several blocks".to_owned(),
        }
    }
}

/// Who last wrote an element, and who has read it.
#[derive(Clone, Copy, Debug)]
struct Cell {
    writer: Who,
    reader: Who,
}

impl Cell {
    const NEW: Cell = Cell { writer: Who::NOBODY, reader: Who::NOBODY };
}

/// What is remembered of a piece of memory.
#[derive(Debug, Default)]
struct Cells {
    /// Bytes of a cell, which are those of an element.
    bytes: usize,
    cells: Vec<Cell>,
    /// It is of one thread.
    is_private: bool,
    /// Reading what nobody has written is a mistake.
    is_shared: bool,
}

/// What is wrong with an access.
#[derive(Debug)]
pub(super) enum Mistake {
    /// The two that meet.
    Race(String),
    /// It reads what nobody has written.
    Unwritten,
}

/// All that is remembered.
#[derive(Debug)]
pub(super) struct Shadow {
    now: Who,
    memory: Vec<Cells>,
}

impl Shadow {
    /// A device begins.
    pub(super) fn new() -> Self {
        Self { now: Who { block: 1, ..Who::NOBODY }, memory: Vec::new() }
    }

    /// The next block begins.
    pub(super) fn next_block(&mut self) {
        self.now = Who { block: self.now.block + 1, thread: 0, epoch: 0 };
    }

    /// From here on a thread of this number runs.
    pub(super) fn be(&mut self, thread: u32) {
        self.now.thread = thread;
    }

    /// All threads have waited for each other.
    pub(super) fn next_epoch(&mut self) {
        self.now.epoch += 1;
    }

    /// A piece of memory is made anew, for one thread or for all of a block.
    pub(super) fn forget(&mut self, block: usize, is_private: bool, is_shared: bool) {
        *self.of(block) = Cells { is_private, is_shared, ..Cells::default() };
    }

    /// Remembers an access to `size` bytes behind `start`, unless it is a mistake.
    pub(super) fn touch(
        &mut self,
        block: usize,
        start: usize,
        size: usize,
        is_store: bool,
    ) -> Result<(), Mistake> {
        let now = self.now;
        let memory = self.of(block);
        if memory.is_private {
            return Ok(());
        }
        if memory.bytes == 0 {
            memory.bytes = size;
        }
        let touched = start / memory.bytes..=(start + size - 1) / memory.bytes;
        if memory.cells.len() <= *touched.end() {
            memory.cells.resize(touched.end() + 1, Cell::NEW);
        }
        for cell in &mut memory.cells[touched] {
            if !is_store && memory.is_shared && cell.writer == Who::NOBODY {
                return Err(Mistake::Unwritten);
            }
            let met = match is_store {
                true => [cell.writer, cell.reader].into_iter().find(|who| who.is_beside(now)),
                false => Some(cell.writer).filter(|who| who.is_beside(now)),
            };
            if let Some(met) = met {
                return Err(Mistake::Race(met.with(now)));
            }
            match is_store {
                true => cell.writer = now,
                false => cell.reader = cell.reader.and(now),
            }
        }
        Ok(())
    }

    fn of(&mut self, block: usize) -> &mut Cells {
        if self.memory.len() <= block {
            self.memory.resize_with(block + 1, Cells::default);
        }
        &mut self.memory[block]
    }
}
