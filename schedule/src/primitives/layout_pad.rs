//! What is in the holes of a new layout.
//!
//! ```ir
//! for %i in 0..14 {                                  for %ax0 in 0..4 { for %ax1 in 0..4 {
//!   block "B" (%vi: spatial = %i) {            =>        block "B" (%v0: spatial = %ax0, %v1: spatial = %ax1) {
//!     %B[%vi] = %A[%vi] } }                                if %v0 * 4 + %v1 < 14 { %B[%v0, %v1] = %A[%v0 * 4 + %v1] }
//!                                                          else { %B[%v0, %v1] = 0.0 } } } }
//!              (i) -> (i / 4, i % 4), pad = "0"
//! ```
//!
//! The block that makes the buffer goes over the new layout, and writes a number where there is no element. It has to compute each
//! element by itself: sums are made in whole tiles by `pad_einsum`.

use tenon_plugin_api::ir::{BinaryOp, BuildPrim, DType, Expr};

use crate::access::Access;
use crate::index::{AtomId, Space, Sum};
use crate::refusal::{Result, refuse};
use crate::schedule::Schedule;
use crate::tree::{Id, Node};

use super::block_layout::{Made, own_nest, put};
use super::inline::{PointStore, point_store};

/// The block that makes a buffer, and what it writes where there is no element.
pub(super) struct Padding {
    id: Id,
    loops: Vec<Id>,
    point: PointStore,
    number: Expr,
}

impl Padding {
    /// Looks whether the block `id` can write a number into the holes of a buffer.
    pub(super) fn of(schedule: &mut Schedule, id: Id, buffer: Expr, number: &str) -> Result<Self> {
        let dtype = schedule.dtype(buffer);
        let Some(number) = literal(schedule, dtype, number) else {
            return refuse(id, format!("`{number}` is no number of type {dtype}"));
        };
        let mut space = schedule.space();
        let stores = schedule.bound_accesses(&mut space, schedule.tree.root);
        let is_other = |access: &&Access| {
            access.is_store && access.buffer == buffer && !schedule.tree.is_inside(access.stmt, id)
        };
        if let Some(other) = stores.iter().find(is_other) {
            return refuse(other.stmt, "it writes the buffer as well, so no block makes all of it");
        }
        if schedule.tree.as_block(id).is_some_and(|block| block.init.is_some()) {
            return refuse(
                id,
                "it is a reduction, and what pads a buffer computes each element by itself; `pad_einsum` makes sums in whole tiles",
            );
        }
        let among = schedule.tree.blocks_of(schedule.tree.scope(id));
        if let Some(why) = schedule.why_incomplete(id, &among) {
            return refuse(id, format!("the block is not complete: {why}"));
        }
        let loops = own_nest(schedule, id)?;
        let point = point_store(schedule, id)?;
        let whole = schedule.whole(&mut space, buffer);
        let is_all = point.axes.iter().zip(&whole).all(|(axis, whole)| {
            let range = axis.and_then(|axis| space.range(space.find(axis)?).cloned());
            range.map_or(whole.extent.value() == Some(1), |range| range.extent == whole.extent)
        });
        match is_all {
            true => Ok(Self { id, loops, point, number }),
            false => refuse(id, "it does not write all of the buffer"),
        }
    }

    /// Has the block go over the new layout: `outputs` are the indices there in terms of the old ones, `old`, whose extents are those of
    /// the buffer it was; `shape` is that of the new one, `buffer`.
    pub(super) fn fill(
        self,
        schedule: &mut Schedule,
        space: &mut Space,
        buffer: Expr,
        (old, outputs, shape): (&[Expr], &[Sum], &[Sum]),
    ) -> Result<()> {
        let Self { id, loops, point, number } = self;
        let made: Vec<Made> = shape
            .iter()
            .enumerate()
            .map(|(at, extent)| Made::new(schedule, space, at, extent.clone(), false))
            .collect();
        let at: Vec<Expr> = made.iter().map(|made| made.var).collect();
        let given: Vec<Sum> = at.iter().map(|&var| space.node(var)).collect();
        let atoms: Vec<AtomId> = old.iter().filter_map(|&var| space.find(var)).collect();
        let Some(values) = space.invert(outputs, &given, &atoms) else {
            return refuse(id, "which element lies where in the new layout is not found");
        };
        let mut inside: Option<Expr> = None;
        for (value, &atom) in values.iter().zip(&atoms) {
            let Some(extent) = space.range(atom).map(|range| range.extent.clone()) else {
                continue;
            };
            if space.is_less(value, &extent) {
                continue;
            }
            let condition = schedule.less(space, value, &extent);
            inside = Some(match inside {
                None => condition,
                Some(others) => schedule.rw.binary(BinaryOp::And, others, condition),
            });
        }
        let mut pairs = Vec::new();
        for (axis, value) in point.axes.iter().zip(&values) {
            if let Some(axis) = axis {
                pairs.push((*axis, space.build(&mut schedule.rw, value)));
            }
        }
        let store = |value: Expr| Node::Store { buffer, value, indices: at.clone() };
        let element = schedule.tree.add(store(point.value));
        let body = match inside {
            None => element,
            Some(cond) => {
                let otherwise = Some(schedule.tree.add(store(number)));
                schedule.tree.make(Node::If { cond, then: element, otherwise })
            }
        };
        put(schedule, id, &loops, &made);
        schedule.tree.block_mut(id).body = body;
        schedule.tree.adopt(id);
        schedule.substitute(id, pairs);
        Ok(())
    }
}

impl Schedule {
    /// The type of a buffer's elements.
    fn dtype(&self, buffer: Expr) -> DType {
        let body = self.body();
        let tensor = body.ty(buffer).and_then(|ty| body.terms().tensor(ty));
        tensor.map_or(DType::F32, |(dtype, _)| dtype)
    }
}

/// A number as it is written, of a type; `None` where it is none of that type.
fn literal(schedule: &mut Schedule, dtype: DType, text: &str) -> Option<Expr> {
    if dtype.is_float() {
        let value: f64 = text.parse().ok()?;
        let most = match dtype {
            DType::F64 => f64::MAX,
            DType::F16 => 65504.0,
            _ => f64::from(f32::MAX),
        };
        let is_told = !value.is_finite() || value.abs() <= most;
        return is_told.then(|| schedule.rw.float_of(dtype, value));
    }
    let value: i64 = text.parse().ok()?;
    let (least, most) = dtype.int_bounds();
    (least..=most).contains(&value).then(|| schedule.rw.int_of(dtype, value))
}
