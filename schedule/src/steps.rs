//! The primitives as methods.

use crate::primitives::find;
use crate::refusal::Result;
use crate::schedule::{Block, Loop, Schedule};
use crate::trace::{Args, Handle, Value};

/// What a split does with the steps that its factors leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tail {
    /// The last steps run under a condition.
    Guard,
    /// The last steps run as lanes of vectors of which some are left out.
    Mask,
    /// A second loop takes the rest.
    Cut,
    /// The last step starts earlier.
    Shift,
    /// The last steps run as the others do, in padded copies of the buffers.
    Pad,
    /// There is none, or the split is refused.
    Perfect,
}

/// An axis of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "they are named as CUDA names them")]
pub enum Axis {
    BlockX,
    BlockY,
    BlockZ,
    ThreadX,
    ThreadY,
    ThreadZ,
}

/// What becomes of places of a new layout at which no element lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Holes<'a> {
    /// A map that leaves some is refused.
    Refuse,
    /// Nobody reads them, and nobody writes them.
    Leave,
    /// They hold a number, as it is written.
    Fill(&'a str),
}

/// A memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Memory {
    /// The memory of the device.
    Global,
    /// What the threads of a block share.
    Shared,
    /// Registers, or the nearest cache.
    Local,
}

impl Schedule {
    fn step(&mut self, name: &str, args: Vec<Value>) -> Result<Vec<Handle>> {
        let primitive = find(name).expect("the table has each primitive that has a method");
        self.apply(primitive, Args(args), None)
    }

    fn one_block(&mut self, name: &str, args: Vec<Value>) -> Result<Block> {
        let results = self.step(name, args)?;
        Ok(blocks(results)[0])
    }

    /// The block of a name.
    pub fn block(&mut self, name: &str) -> Result<Block> {
        self.one_block("block", vec![text(name)])
    }

    /// All blocks that are not in one another.
    pub fn all_blocks(&mut self) -> Vec<Block> {
        self.step("blocks", Vec::new()).map_or(Vec::new(), blocks)
    }

    /// The block that costs most.
    pub fn anchor(&mut self) -> Result<Block> {
        self.one_block("anchor", Vec::new())
    }

    /// The loops around a block, outermost first.
    pub fn loops(&mut self, block: Block) -> Result<Vec<Loop>> {
        Ok(loops(self.step("loops", vec![of(block)])?))
    }

    /// The loop to whose variable an iterator of a block is bound.
    pub fn loop_of(&mut self, block: Block, iterator: &str) -> Result<Loop> {
        Ok(loops(self.step("loop", vec![of(block), text(iterator)])?)[0])
    }

    /// The blocks that write what a block reads.
    pub fn producers(&mut self, block: Block) -> Result<Vec<Block>> {
        Ok(blocks(self.step("producers", vec![of(block)])?))
    }

    /// The blocks that read what a block writes.
    pub fn consumers(&mut self, block: Block) -> Result<Vec<Block>> {
        Ok(blocks(self.step("consumers", vec![of(block)])?))
    }

    /// The blocks inside a loop or a block.
    pub fn children(&mut self, outer: impl Into<Handle>) -> Result<Vec<Block>> {
        Ok(blocks(self.step("children", vec![of(outer)])?))
    }

    /// One loop of loops each of which holds the next and nothing else.
    pub fn fuse(&mut self, fused: &[Loop]) -> Result<Loop> {
        Ok(loops(self.step("fuse", vec![list(fused)])?)[0])
    }

    /// Nested loops with these numbers of steps, outermost first; `None` is what is needed. A cut gives the loop of the rest
    /// as the last.
    pub fn split(&mut self, each: Loop, factors: &[Option<i64>], tail: Tail) -> Result<Vec<Loop>> {
        let tail = match tail {
            Tail::Guard => "guard",
            Tail::Mask => "mask",
            Tail::Cut => "cut",
            Tail::Shift => "shift",
            Tail::Pad => "pad",
            Tail::Perfect => "perfect",
        };
        Ok(loops(self.step("split", vec![of(each), numbers(factors), word(tail)])?))
    }

    /// Loops of one nest in this order, outermost first.
    pub fn reorder(&mut self, order: &[Loop]) -> Result<()> {
        self.step("reorder", vec![list(order)]).map(drop)
    }

    /// Loops one after the other over these numbers of steps; what is left is a last one.
    pub fn partition(&mut self, each: Loop, lengths: &[Option<i64>]) -> Result<Vec<Loop>> {
        Ok(loops(self.step("partition", vec![of(each), numbers(lengths)])?))
    }

    /// One loop of loops of one extent that stand directly one after the other.
    pub fn merge(&mut self, merged: &[Loop]) -> Result<Loop> {
        Ok(loops(self.step("merge", vec![list(merged)])?)[0])
    }

    /// A loop of one step around a loop or a block.
    pub fn add_unit_loop(&mut self, around: impl Into<Handle>) -> Result<Loop> {
        Ok(loops(self.step("add_unit_loop", vec![of(around)])?)[0])
    }

    /// The iterators of a block in another order, by their numbers.
    pub fn reorder_iterators(&mut self, block: Block, order: &[i64]) -> Result<()> {
        let order: Vec<Option<i64>> = order.iter().map(|&at| Some(at)).collect();
        self.step("reorder_iterators", vec![of(block), numbers(&order)]).map(drop)
    }

    /// Runs the steps of a loop on several threads.
    pub fn parallel(&mut self, each: Loop) -> Result<()> {
        self.step("parallel", vec![of(each)]).map(drop)
    }

    /// Makes the steps of a loop the lanes of vectors.
    pub fn vectorize(&mut self, each: Loop) -> Result<()> {
        self.step("vectorize", vec![of(each)]).map(drop)
    }

    /// Says that an instruction computes what a loop and those inside it do; the rules of the facet `intrinsic` have names.
    pub fn tensorize(&mut self, each: Loop, intrinsic: &str) -> Result<()> {
        self.step("tensorize", vec![of(each), text(intrinsic)]).map(drop)
    }

    /// Repeats the body of a loop for each of its steps.
    pub fn unroll(&mut self, each: Loop) -> Result<()> {
        self.step("unroll", vec![of(each)]).map(drop)
    }

    /// Makes an axis of a device run the steps of a loop.
    pub fn bind(&mut self, each: Loop, axis: Axis) -> Result<()> {
        let axis = match axis {
            Axis::BlockX => "blockIdx_x",
            Axis::BlockY => "blockIdx_y",
            Axis::BlockZ => "blockIdx_z",
            Axis::ThreadX => "threadIdx_x",
            Axis::ThreadY => "threadIdx_y",
            Axis::ThreadZ => "threadIdx_z",
        };
        self.step("bind", vec![of(each), word(axis)]).map(drop)
    }

    /// Computes what a block writes where it is read.
    pub fn inline(&mut self, block: Block) -> Result<()> {
        self.step("inline", vec![of(block)]).map(drop)
    }

    /// Computes what a block makes of another's result where that is written.
    pub fn reverse_inline(&mut self, block: Block) -> Result<()> {
        self.step("reverse_inline", vec![of(block)]).map(drop)
    }

    /// Computes a block inside a loop of those that read it.
    pub fn compute_at(&mut self, block: Block, each: Loop) -> Result<()> {
        self.step("compute_at", vec![of(block), of(each), word("last")]).map(drop)
    }

    /// Runs a block inside a loop of those that write for it.
    pub fn reverse_compute_at(&mut self, block: Block, each: Loop) -> Result<()> {
        self.step("reverse_compute_at", vec![of(block), of(each), word("last")]).map(drop)
    }

    /// Runs all that is made of a block's result, up to the next reduction, inside a loop around the block; these blocks.
    pub fn epilogue_at(&mut self, block: Block, each: Loop) -> Result<Vec<Block>> {
        Ok(blocks(self.step("epilogue_at", vec![of(block), of(each)])?))
    }

    /// Copies what is read of a buffer, and reads the copy, in `consumers` or in all blocks when there are none. The block
    /// that copies.
    pub fn cache_read(
        &mut self,
        block: Block,
        buffer: &str,
        memory: Memory,
        consumers: &[Block],
    ) -> Result<Block> {
        let consumers = Value::List(consumers.iter().map(|&block| of(block)).collect());
        self.one_block("cache_read", vec![of(block), text(buffer), scope(memory), consumers])
    }

    /// Writes to a buffer of the block's own; the block that copies that to where it wrote.
    pub fn cache_write(&mut self, block: Block, buffer: &str, memory: Memory) -> Result<Block> {
        self.one_block("cache_write", vec![of(block), text(buffer), scope(memory)])
    }

    /// Copies what a block reads of a buffer to where a map of its iterators, such as `(i, j) -> (j, i / 2, i % 2)`, says, and reads the
    /// copy; the block that copies.
    pub fn reindex_cache_read(
        &mut self,
        block: Block,
        buffer: &str,
        memory: Memory,
        map: &str,
    ) -> Result<Block> {
        let args = vec![of(block), text(buffer), scope(memory), text(map)];
        self.one_block("reindex_cache_read", args)
    }

    /// Writes to where a map of a block's iterators says; the block that copies that to where it wrote.
    pub fn reindex_cache_write(
        &mut self,
        block: Block,
        buffer: &str,
        memory: Memory,
        map: &str,
    ) -> Result<Block> {
        let args = vec![of(block), text(buffer), scope(memory), text(map)];
        self.one_block("reindex_cache_write", args)
    }

    /// Copies what a block reads, or writes, of a buffer, so that its iterators are the indices; the block that copies.
    pub fn reindex(&mut self, block: Block, buffer: &str) -> Result<Block> {
        self.one_block("reindex", vec![of(block), text(buffer)])
    }

    /// Keeps of a buffer what a step of the loop around a block and its readers reads.
    pub fn rolling_buffer(&mut self, block: Block, buffer: &str) -> Result<()> {
        self.step("rolling_buffer", vec![of(block), text(buffer)]).map(drop)
    }

    /// Leaves out the steps of a sum whose term is zero by a choice.
    pub fn skip_zeros(&mut self, block: Block) -> Result<()> {
        self.step("skip_zeros", vec![of(block)]).map(drop)
    }

    /// The initial statement of a reduction as a block before a loop around it.
    pub fn decompose_reduction(&mut self, block: Block, before: Loop) -> Result<Block> {
        self.one_block("decompose_reduction", vec![of(block), of(before)])
    }

    /// What padding is filled with as a block before a loop around it, and what is inside without a condition; the block that
    /// fills.
    pub fn decompose_padding(&mut self, block: Block, before: Loop) -> Result<Block> {
        self.one_block("decompose_padding", vec![of(block), of(before)])
    }

    /// A reduction over parts, one for each step of a loop, which are axis `axis` of a buffer, and one over these: both blocks.
    pub fn rfactor(&mut self, each: Loop, axis: i64) -> Result<[Block; 2]> {
        let made = blocks(self.step("rfactor", vec![of(each), Value::Int(axis)])?);
        Ok([made[0], made[1]])
    }

    /// One block of a loop with the block inside it, whose instances are tiles.
    pub fn blockize(&mut self, each: Loop) -> Result<Block> {
        self.one_block("blockize", vec![of(each)])
    }

    /// One block around several, which stand one behind the other.
    pub fn blockize_all(&mut self, inside: &[Block]) -> Result<Block> {
        let inside = Value::List(inside.iter().map(|&block| of(block)).collect());
        self.one_block("blockize", vec![inside])
    }

    /// A buffer that a block writes in another layout, told by a map such as `(i, j) -> (i / 16, j, i % 16)`.
    pub fn transform_layout(
        &mut self,
        block: Block,
        buffer: &str,
        map: &str,
        holes: Holes<'_>,
    ) -> Result<()> {
        let (holes, pad) = match holes {
            Holes::Refuse => ("refuse", ""),
            Holes::Leave => ("leave", ""),
            Holes::Fill(number) => ("refuse", number),
        };
        let args = vec![of(block), text(buffer), text(map), word(holes), text(pad)];
        self.step("transform_layout", args).map(drop)
    }

    /// Other iterators of a block, told by a map of those it has, such as `(i, j) -> (i * 16 + j)`, and other loops around it; the
    /// loops.
    pub fn transform_block_layout(&mut self, block: Block, map: &str) -> Result<Vec<Loop>> {
        Ok(loops(self.step("transform_block_layout", vec![of(block), text(map)])?))
    }

    /// One iterator of a block of number `first` and the next, and one loop of theirs; the loops.
    pub fn join_iterators(&mut self, block: Block, first: usize) -> Result<Vec<Loop>> {
        Ok(loops(self.step("join_iterators", vec![of(block), Value::Int(first as i64)])?))
    }

    /// One axis of a buffer that a block writes of number `first` and the next.
    pub fn join_axes(&mut self, block: Block, buffer: &str, first: usize) -> Result<()> {
        let args = vec![of(block), text(buffer), Value::Int(first as i64)];
        self.step("join_axes", args).map(drop)
    }

    /// Rounds the extents of a reduction's iterators up to multiples, in padded copies of its buffers; the blocks that copy.
    pub fn pad_einsum(&mut self, block: Block, multiples: &[i64]) -> Result<Vec<Block>> {
        let multiples: Vec<Option<i64>> = multiples.iter().map(|&each| Some(each)).collect();
        Ok(blocks(self.step("pad_einsum", vec![of(block), numbers(&multiples)])?))
    }

    /// Runs the statements of a loop, each in its stage and its place among those of a step, so many steps behind one another. In the
    /// order in which they stand when `order` is empty.
    pub fn pipeline(&mut self, each: Loop, stages: &[i64], order: &[i64]) -> Result<()> {
        let [stages, order] = [stages, order]
            .map(|list| numbers(&list.iter().map(|&number| Some(number)).collect::<Vec<_>>()));
        self.step("pipeline", vec![of(each), stages, order]).map(drop)
    }

    /// Says in which memory a buffer that a block writes is made.
    pub fn set_scope(&mut self, block: Block, buffer: &str, memory: Memory) -> Result<()> {
        self.step("set_scope", vec![of(block), text(buffer), scope(memory)]).map(drop)
    }

    /// Makes rows of a buffer that a block writes start a number of elements apart that is `offset` modulo `factor`.
    pub fn storage_align(
        &mut self,
        block: Block,
        buffer: &str,
        axis: i64,
        factor: i64,
        offset: i64,
    ) -> Result<()> {
        let [axis, factor, offset] = [axis, factor, offset].map(Value::Int);
        self.step("storage_align", vec![of(block), text(buffer), axis, factor, offset]).map(drop)
    }

    /// Says something of a loop, under a key such as [`SETTLED`](crate::SETTLED).
    pub fn annotate(&mut self, each: Loop, key: &str, value: bool) -> Result<()> {
        let value = word(if value { "true" } else { "false" });
        self.step("annotate", vec![of(each), text(key), value]).map(drop)
    }

    /// Takes back what was said of a loop.
    pub fn unannotate(&mut self, each: Loop, key: &str) -> Result<()> {
        self.step("unannotate", vec![of(each), text(key)]).map(drop)
    }
}

fn of(handle: impl Into<Handle>) -> Value {
    Value::Handle(handle.into())
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn word(word: &str) -> Value {
    Value::Word(word.to_owned())
}

fn scope(memory: Memory) -> Value {
    word(match memory {
        Memory::Global => "global",
        Memory::Shared => "shared",
        Memory::Local => "local",
    })
}

fn list(loops: &[Loop]) -> Value {
    Value::List(loops.iter().map(|&each| of(each)).collect())
}

fn numbers(numbers: &[Option<i64>]) -> Value {
    Value::List(numbers.iter().map(|number| number.map_or(Value::Open, Value::Int)).collect())
}

fn loops(handles: Vec<Handle>) -> Vec<Loop> {
    let each = handles.into_iter().filter_map(|handle| match handle {
        Handle::Loop(each) => Some(each),
        _ => None,
    });
    each.collect()
}

fn blocks(handles: Vec<Handle>) -> Vec<Block> {
    let each = handles.into_iter().filter_map(|handle| match handle {
        Handle::Block(block) => Some(block),
        _ => None,
    });
    each.collect()
}
