//! A nest of loops that an instruction computes at once.
//!
//! ```ir
//! for %k_0 … { for %j in 0..16 {                        for %k_0 … { for %j in 0..16 { intrinsic = "x86.avx512vnni.dot_16x4" } {
//!   for %k_1 in 0..4 { block "C" … } } }          =>      for %k_1 in 0..4 { block "C" … } } }
//! ```
//!
//! The nest stays, and says what is computed; the loop's attribute says by what. An intrinsic is a rule of the facet `intrinsic`. That
//! its description and the nest are the same is asked here, after each primitive that follows, and by whoever makes code of it.

use std::sync::Arc;

use tenon_plugin_api::ir::{AttrValue, Build, Context, LoopKind};
use tenon_plugin_api::rule::{INTRINSIC, TensorIntrinsic, TileElement};

use crate::refusal::{Refusal, Result, refuse};
use crate::schedule::{Loop, Schedule};
use crate::trace::{Args, Handle, Kind, Param, Primitive};
use crate::tree::{Id, Node};

pub(super) static TENSORIZE: Primitive = Primitive {
    name: "tensorize",
    version: 1,
    summary: "Says that an instruction computes what a loop and those inside it do.",
    params: &[Param::new("loop", Kind::Loop), Param::new("intrinsic", Kind::Text)],
    apply: tensorize,
};

fn tensorize(schedule: &mut Schedule, args: &Args) -> Result<Vec<Handle>> {
    let (id, name) = (args.id(0), args.text(1).to_owned());
    let intrinsic = schedule.intrinsic(&name)?;
    if intrinsic.rounds_differently && schedule.keeps_order {
        return refuse(
            id,
            format!("`{name}` rounds otherwise than the loops do, and floats are strict"),
        );
    }
    check_tile(schedule, id, &intrinsic)?;
    let Some(attrs) = schedule.tree.as_for(id).map(|each| each.attrs) else {
        return Ok(Vec::new());
    };
    let attrs = schedule.rw.with_cx(|cx| cx.with_attr(attrs, INTRINSIC, AttrValue::Str(name)));
    schedule.tree.for_mut(id).attrs = attrs;
    schedule.has_tiles = true;
    Ok(Vec::new())
}

impl Schedule {
    /// The intrinsic of a name.
    fn intrinsic(&mut self, name: &str) -> Result<Arc<TensorIntrinsic>> {
        if let Some(known) = self.intrinsics.get(name) {
            return Ok(Arc::clone(known));
        }
        let found = TensorIntrinsic::find(&mut self.rw, name);
        let found = found.map_err(|error| Refusal::new(error.to_string()))?;
        let Some(found) = found else {
            let text = format!(
                "there is no intrinsic `{name}`; `tenon rules list --facet intrinsic` shows those that plugins have"
            );
            return Err(Refusal::new(text));
        };
        let found = Arc::new(found);
        self.intrinsics.insert(name.to_owned(), Arc::clone(&found));
        Ok(found)
    }

    /// The intrinsic that a loop says computes it.
    fn intrinsic_of(&self, id: Id) -> Option<String> {
        let attrs = self.tree.as_for(id)?.attrs;
        self.body().terms().attrs(attrs).str(INTRINSIC).map(str::to_owned)
    }

    /// Refuses what makes something else of a nest that an instruction computes.
    pub(crate) fn check_tiles(&mut self) -> Result<()> {
        if !self.has_tiles {
            return Ok(());
        }
        for id in self.tree.walk(self.tree.root) {
            let Some(name) = self.intrinsic_of(id) else { continue };
            let intrinsic = self.intrinsic(&name)?;
            check_tile(self, id, &intrinsic).map_err(|refusal| {
                let why = refusal.reason();
                Refusal::new(format!("`{name}` would not compute this loop any more: {why}")).at(id)
            })?;
        }
        Ok(())
    }
}

/// Whether an intrinsic computes what a loop and those inside it do.
fn check_tile(schedule: &Schedule, id: Id, intrinsic: &TensorIntrinsic) -> Result<()> {
    let is_vector =
        |id: &Id| schedule.tree.as_for(*id).is_some_and(|each| each.kind == LoopKind::Vectorized);
    if let Some(around) = schedule.tree.ancestors(id).find(is_vector) {
        return refuse(around, "an instruction for tiles is no lane of a vector");
    }
    let no = |why: String| Refusal::new(format!("it is no `{}`: {why}", intrinsic.name)).at(id);
    let (loops, block) = nest(schedule, id, intrinsic)?;
    let elements = assigned(schedule, block, intrinsic).map_err(no)?;
    let mut space = schedule.space();
    for (operand, element) in elements.into_iter().enumerate() {
        let access = schedule.access_of(&mut space, block, element);
        let step = |&each: &Id| schedule.factor(&mut space, &access, Loop(each))?.value();
        let moves: Vec<Option<i64>> = loops.iter().map(step).collect();
        intrinsic.row_stride(operand, &moves).map_err(no)?;
    }
    Ok(())
}

/// The loops of a nest that have several steps, and the block inside them.
fn nest(schedule: &Schedule, id: Id, intrinsic: &TensorIntrinsic) -> Result<(Vec<Id>, Id)> {
    let wanted = || format!("`{}` wants the loops {}", intrinsic.name, intrinsic.nest());
    let (mut loops, mut at) = (Vec::new(), id);
    while let Some(each) = schedule.tree.as_for(at) {
        if each.kind != LoopKind::Serial {
            return refuse(
                at,
                format!("the loop is {}, and an instruction does it at once", each.kind.text()),
            );
        }
        let extent = schedule.extent(Loop(at));
        if extent != Some(1) || loops.is_empty() {
            match extent {
                Some(extent) if intrinsic.fits(loops.len(), extent) => loops.push(at),
                _ => return refuse(at, wanted()),
            }
        }
        at = each.body;
    }
    match schedule.tree.get(at) {
        Node::Block(_) if loops.len() == intrinsic.axes.len() => Ok((loops, at)),
        _ => refuse(at, wanted()),
    }
}

/// The elements that a block reads and writes for each operand, in terms of its iterators.
fn assigned(
    schedule: &Schedule,
    block: Id,
    intrinsic: &TensorIntrinsic,
) -> std::result::Result<Vec<TileElement>, String> {
    let Some(node) = schedule.tree.as_block(block) else { return Err("it is no block".to_owned()) };
    if node.init.is_some() {
        return Err(
            "it has an initial statement; `decompose_reduction` makes that a block of its own"
                .to_owned(),
        );
    }
    if node.predicate.is_some() {
        return Err("the block has a predicate, so tiles are not whole".to_owned());
    }
    let mut body = node.body;
    while let Node::Seq(stmts) = schedule.tree.get(body)
        && let &[only] = stmts.as_slice()
    {
        body = only;
    }
    let Node::Store { buffer, value, indices } = schedule.tree.get(body) else {
        return Err("it holds more than one assignment".to_owned());
    };
    let written = TileElement { buffer: *buffer, indices: indices.clone() };
    intrinsic.elements_of(schedule.body(), written, *value, &|expr| expr)
}
