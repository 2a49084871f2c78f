//! Rows of a buffer that lie a little further apart.
//!
//! ```ir
//! block "B" … writes(%B[…]) { … }      =>      block "B" … writes(%B[…]) { storage_align = [[0, 0, 32, 8]] } { … }
//! ```
//!
//! So many elements lie between the starts of two rows that the remainder by `factor` is `offset`: threads that read a column
//! then meet different banks of a memory, and rows different lines of a cache. The buffer keeps its shape until all primitives are done;
//! `tir.CompactBuffers` makes its rows longer (`align.rs`).

use crate::align::{Alignment, alignments, write_alignments};
use crate::refusal::{Result, refuse};
use crate::schedule::Schedule;
use crate::trace::{Args, Handle, Kind, Param, Primitive};

use super::cache::named;

pub(super) static STORAGE_ALIGN: Primitive = Primitive {
    name: "storage_align",
    version: 1,
    summary: "Makes rows of a buffer that a block writes start a number of elements apart whose remainder by a factor is an offset.",
    params: &[
        Param::new("block", Kind::Block),
        Param::new("buffer", Kind::Text),
        Param::new("axis", Kind::Int),
        Param::new("factor", Kind::Int),
        Param::new("offset", Kind::Int),
    ],
    apply,
};

fn apply(schedule: &mut Schedule, args: &Args) -> Result<Vec<Handle>> {
    let id = args.id(0);
    let buffer = named(schedule, id, args.text(1), true)?;
    if !schedule.all_allocated().contains(&buffer) {
        return refuse(id, "the buffer is a parameter, which is made elsewhere");
    }
    let rank = schedule.shape(buffer).len() as i64;
    let (axis, factor) = (args.int(2), args.int(3));
    let place = if axis < 0 { axis + rank } else { axis };
    if !(0..rank).contains(&place) {
        return refuse(id, format!("the axis {axis} is not within -{rank} and {}", rank - 1));
    }
    if place != rank - 2 {
        let rows = rank - 2;
        return refuse(
            id,
            match rank {
                1 => {
                    String::from("a buffer of one axis has no rows, which could lie further apart")
                }
                _ => format!(
                    "rows lie along axis {rows}, and how far others are apart follows from that"
                ),
            },
        );
    }
    if factor <= 0 {
        return refuse(id, format!("the factor {factor} is not positive"));
    }
    let offset = args.int(4).rem_euclid(factor);
    let Ok(mut all) = alignments(schedule, id) else {
        return refuse(id, "its attribute `storage_align` is no list of lists of four numbers");
    };
    let written = schedule.buffers(id, true);
    let number = written.iter().position(|&other| other == buffer).unwrap_or(0) as i64;
    all.retain(|other| (other.buffer, other.axis) != (number, place));
    all.push(Alignment { buffer: number, axis: place, factor, offset });
    write_alignments(schedule, id, &all);
    Ok(Vec::new())
}
