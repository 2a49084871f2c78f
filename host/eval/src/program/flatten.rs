//! From nested pieces of code to one list with jumps.

use super::code::{Instr, Reg};

/// A piece of code: instructions, and other pieces inside.
#[derive(Debug, Default)]
pub(super) struct Piece {
    pub(super) items: Vec<(Item, u32)>,
}

/// An instruction or something with code of its own, by the number of its piece.
#[derive(Debug)]
pub(super) enum Item {
    Instr(Instr),
    Loop { var: Reg, min: Reg, extent: Reg, limit: Reg, body: usize },
    Threads { var: Reg, min: Reg, extent: Reg, body: usize },
    If { cond: Reg, then: usize, otherwise: Option<usize> },
}

/// The instructions of piece `root` with all that is inside, and the statement of each.
pub(super) fn flatten(pieces: Vec<Piece>, root: usize) -> (Vec<Instr>, Vec<u32>) {
    enum Step {
        Piece(usize, usize),
        EndLoop { start: usize, var: Reg, limit: Reg },
        EndThreads { start: usize },
        EndThen { start: usize, otherwise: Option<usize> },
        EndElse { start: usize },
    }
    let (mut code, mut origins) = (Vec::new(), Vec::new());
    let mut push = |instr: Option<Instr>, origin: u32, code: &mut Vec<Instr>| {
        if let Some(instr) = instr {
            code.push(instr);
            origins.push(origin);
        }
        code.len()
    };
    let mut steps = vec![Step::Piece(root, 0)];
    while let Some(step) = steps.pop() {
        match step {
            Step::Piece(piece, at) => {
                let Some((item, origin)) = pieces[piece].items.get(at) else { continue };
                steps.push(Step::Piece(piece, at + 1));
                match *item {
                    Item::Instr(instr) => {
                        push(Some(instr), *origin, &mut code);
                    }
                    Item::Loop { var, min, extent, limit, body } => {
                        let head = Instr::Loop { var, min, extent, limit, by: 0 };
                        let start = push(Some(head), *origin, &mut code);
                        steps.push(Step::EndLoop { start, var, limit });
                        steps.push(Step::Piece(body, 0));
                    }
                    Item::Threads { var, min, extent, body } => {
                        let head = Instr::Fork { var, min, extent, by: 0 };
                        let start = push(Some(head), *origin, &mut code);
                        steps.push(Step::EndThreads { start });
                        steps.push(Step::Piece(body, 0));
                    }
                    Item::If { cond, then, otherwise } => {
                        let head = Instr::JumpUnless { cond, by: 0 };
                        let start = push(Some(head), *origin, &mut code);
                        steps.push(Step::EndThen { start, otherwise });
                        steps.push(Step::Piece(then, 0));
                    }
                }
            }
            Step::EndLoop { start, var, limit } => {
                let back = (code.len() - start) as u32;
                let end = push(Some(Instr::Next { var, limit, back }), 0, &mut code);
                if let Instr::Loop { by, .. } = &mut code[start - 1] {
                    *by = (end - start) as u32;
                }
            }
            Step::EndThreads { start } => {
                let end = push(Some(Instr::Join), 0, &mut code);
                if let Instr::Fork { by, .. } = &mut code[start - 1] {
                    *by = (end - start) as u32;
                }
            }
            Step::EndThen { start, otherwise } => {
                let jump = otherwise.map(|_| Instr::Jump { by: 0 });
                let end = push(jump, 0, &mut code);
                if let Instr::JumpUnless { by, .. } = &mut code[start - 1] {
                    *by = (end - start) as u32;
                }
                if let Some(otherwise) = otherwise {
                    steps.push(Step::EndElse { start: end });
                    steps.push(Step::Piece(otherwise, 0));
                }
            }
            Step::EndElse { start } => {
                let end = code.len();
                if let Instr::Jump { by } = &mut code[start - 1] {
                    *by = (end - start) as u32;
                }
            }
        }
    }
    (code, origins)
}
