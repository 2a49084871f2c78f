//! Rows of buffers that lie further apart than they are long, as `storage_align` says it of the block that writes them.

use tenon_plugin_api::ir::{AttrValue, Build, Context, Term, TermView};

use crate::index::Sum;
use crate::schedule::Schedule;
use crate::tree::Id;

const STORAGE_ALIGN: &str = "storage_align";

/// What stands for one buffer: its number among those that the block writes, the axis of rows, and what the number of elements from one
/// to the next is modulo `factor`.
pub(crate) struct Alignment {
    pub(crate) buffer: i64,
    pub(crate) axis: i64,
    pub(crate) factor: i64,
    pub(crate) offset: i64,
}

/// What a block says; an error where that cannot be read.
pub(crate) fn alignments(schedule: &Schedule, id: Id) -> Result<Vec<Alignment>, ()> {
    let terms = schedule.body().terms();
    let attrs = schedule.tree.as_block(id).map(|block| terms.attrs(block.attrs));
    let Some(said) = attrs.and_then(|attrs| attrs.get(STORAGE_ALIGN)) else {
        return Ok(Vec::new());
    };
    let TermView::List(items) = said else { return Err(()) };
    let number = |term: &Term| match terms.view(*term) {
        TermView::Int(value) => Ok(value),
        _ => Err(()),
    };
    let read = |&item: &Term| {
        let TermView::List(numbers) = terms.view(item) else { return Err(()) };
        match numbers.iter().map(number).collect::<Result<Vec<i64>, ()>>()?.as_slice() {
            &[buffer, axis, factor, offset] if factor > 0 => {
                Ok(Alignment { buffer, axis, factor, offset })
            }
            _ => Err(()),
        }
    };
    items.iter().map(read).collect()
}

/// Says this of a block, or nothing.
pub(crate) fn write_alignments(schedule: &mut Schedule, id: Id, all: &[Alignment]) {
    let Some(attrs) = schedule.tree.as_block(id).map(|block| block.attrs) else { return };
    let attrs = schedule.rw.with_cx(|cx| {
        let list =
            |each: &Alignment| cx.int_list(&[each.buffer, each.axis, each.factor, each.offset]);
        match all.is_empty() {
            true => cx.without_attr(attrs, STORAGE_ALIGN),
            false => {
                let items: Vec<Term> = all.iter().map(list).collect();
                cx.with_attr(attrs, STORAGE_ALIGN, AttrValue::Term(cx.list(&items)))
            }
        }
    });
    schedule.tree.block_mut(id).attrs = attrs;
}

/// Makes the rows of buffers as long as blocks say that they lie apart; whether there are such. Nobody reads what is added.
pub(crate) fn lengthen_rows(schedule: &mut Schedule) -> bool {
    let mut has_changed = false;
    for id in schedule.tree.all() {
        let Ok(all) = alignments(schedule, id) else { continue };
        for each in &all {
            has_changed = true;
            let buffer = schedule.buffers(id, true).get(each.buffer as usize).copied();
            let own = schedule.all_allocated();
            let Some(buffer) = buffer.filter(|buffer| own.contains(buffer)) else { continue };
            let mut shape = schedule.shape(buffer);
            let mut space = schedule.space();
            let Some(row) = shape.len().checked_sub(1).filter(|&row| row as i64 == each.axis + 1)
            else {
                continue;
            };
            let length = space.read_dim(schedule.body().terms(), shape[row]);
            let missing = Sum::int(each.offset).sub(&length);
            let added = space.modulo(&missing, &Sum::int(each.factor));
            let cx = schedule.rw.cx();
            shape[row] = space.dim(&cx, &length.add(&added));
            let new = schedule.buffer_like(buffer, &shape);
            schedule.make_instead(buffer, new);
        }
        if !all.is_empty() {
            write_alignments(schedule, id, &[]);
        }
    }
    has_changed
}
