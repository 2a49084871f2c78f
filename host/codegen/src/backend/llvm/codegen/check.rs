//! The check of a tensor that a user hands in.

use crate::plan::LARGEST_EXTENT;

/// Where the fields of a `DLTensor` lie: an address, 64 bits of device, 32 bits each of rank and dtype, the addresses of
/// extents and strides, and 64 bits of offset.
#[derive(Clone, Copy)]
pub(super) struct TensorLayout {
    pointer: u32,
}

impl TensorLayout {
    /// For addresses of so many bytes.
    pub(super) fn new(pointer: u32) -> TensorLayout {
        TensorLayout { pointer }
    }

    /// Where it says on which device it is.
    pub(super) fn device(self) -> u32 {
        self.pointer
    }

    /// Where it says how many axes it has.
    pub(super) fn rank(self) -> u32 {
        self.pointer + 8
    }

    /// Where it says what its elements are.
    pub(super) fn dtype(self) -> u32 {
        self.pointer + 12
    }

    /// Where it says what its strides are.
    pub(super) fn strides(self) -> u32 {
        2 * self.pointer + 16
    }

    /// Where it says how far behind the address the first element is.
    pub(super) fn offset(self) -> u32 {
        (3 * self.pointer + 16).next_multiple_of(8)
    }

    /// Where it says what its extents are.
    pub(super) fn shape(self) -> u32 {
        self.pointer + 16
    }

    /// From one tensor to the next.
    pub(super) fn size(self) -> u32 {
        self.offset() + 8
    }

    /// The check for this layout, as LLVM's text.
    pub(super) fn check(self) -> String {
        [
            ("{device}", self.device()),
            ("{rank}", self.rank()),
            ("{dtype}", self.dtype()),
            ("{shape}", self.shape()),
            ("{strides}", self.strides()),
            ("{offset}", self.offset()),
        ]
        .into_iter()
        .fold(CHECK.replace("{largest}", &LARGEST_EXTENT.to_string()), |text, (field, at)| {
            text.replace(field, &at.to_string())
        })
    }
}

/// `i32 tenon.check(const DLTensor *, const spec *)`: 0, or the code of a
/// [`Failure`](tenon_runtime::status::Failure).
///
/// A spec is the number of dimensions and the dtype in 32 bits each, the bytes of an element and
/// the extents in 64 bits each; -1 for one that may be anything up to the largest. Strides may be null, and those of extents
/// of 1 say nothing. Along the axis `roomy` there is room for as much as `room` says; -1 is none, and -2 of a tensor that
/// has no memory yet, whose extents say nothing.
///
/// `i64 tenon.room(const DLTensor *, i32 rank, i64 axis)`: how much room there is along an axis of a tensor that nobody has checked,
/// by the stride of what is before it.
const CHECK: &str = "
define internal i32 @tenon.check(ptr %tensor, ptr %spec, i64 %roomy, i64 %room) {
entry:
  %device.at = getelementptr inbounds i8, ptr %tensor, i64 {device}
  %device = load i32, ptr %device.at
  %is.cpu = icmp eq i32 %device, 1
  br i1 %is.cpu, label %rank, label %exit

rank:
  %rank.at = getelementptr inbounds i8, ptr %tensor, i64 {rank}
  %rank.given = load i32, ptr %rank.at
  %rank.wanted = load i32, ptr %spec
  %is.rank = icmp eq i32 %rank.given, %rank.wanted
  br i1 %is.rank, label %dtype, label %exit

dtype:
  %dtype.at = getelementptr inbounds i8, ptr %tensor, i64 {dtype}
  %dtype.given = load i32, ptr %dtype.at
  %dtype.spec.at = getelementptr inbounds i8, ptr %spec, i64 4
  %dtype.wanted = load i32, ptr %dtype.spec.at
  %is.dtype = icmp eq i32 %dtype.given, %dtype.wanted
  br i1 %is.dtype, label %taken, label %exit

taken:
  %is.taken = icmp eq i64 %roomy, -2
  br i1 %is.taken, label %exit, label %axes

axes:
  %shape.at = getelementptr inbounds i8, ptr %tensor, i64 {shape}
  %shape = load ptr, ptr %shape.at
  %strides.at = getelementptr inbounds i8, ptr %tensor, i64 {strides}
  %strides = load ptr, ptr %strides.at
  %is.compact = icmp eq ptr %strides, null
  %extents = getelementptr inbounds i8, ptr %spec, i64 16
  %count = zext i32 %rank.wanted to i64
  br label %head

head:
  %left = phi i64 [ %count, %axes ], [ %i, %next ]
  %step = phi i64 [ 1, %axes ], [ %step.next, %next ]
  %dense = phi i64 [ 1, %axes ], [ %dense.next, %next ]
  %empty = phi i1 [ false, %axes ], [ %empty.next, %next ]
  %is.last = icmp eq i64 %left, 0
  br i1 %is.last, label %data, label %axis

axis:
  %i = sub i64 %left, 1
  %extent.at = getelementptr inbounds i64, ptr %shape, i64 %i
  %extent = load i64, ptr %extent.at
  %wanted.at = getelementptr inbounds i64, ptr %extents, i64 %i
  %wanted = load i64, ptr %wanted.at
  %is.wanted = icmp eq i64 %extent, %wanted
  %is.any = icmp eq i64 %wanted, -1
  %is.possible = icmp ule i64 %extent, {largest}
  %is.extent = select i1 %is.any, i1 %is.possible, i1 %is.wanted
  br i1 %is.extent, label %maybe.stride, label %exit

maybe.stride:
  %is.short = icmp ule i64 %extent, 1
  %is.empty.behind = icmp eq i64 %step, 0
  %is.nothing = or i1 %is.empty.behind, %empty
  %says.nothing = or i1 %is.short, %is.nothing
  br i1 %says.nothing, label %next, label %spaced

spaced:
  br i1 %is.compact, label %compact, label %stride

compact:
  %is.dense = icmp eq i64 %dense, %step
  br i1 %is.dense, label %next, label %exit

stride:
  %stride.at = getelementptr inbounds i64, ptr %strides, i64 %i
  %stride.given = load i64, ptr %stride.at
  %is.stride = icmp eq i64 %stride.given, %step
  br i1 %is.stride, label %next, label %exit

next:
  %has.room = icmp eq i64 %i, %roomy
  %length = select i1 %has.room, i64 %room, i64 %extent
  %step.next = mul i64 %step, %length
  %dense.next = mul i64 %dense, %extent
  %is.none = icmp eq i64 %extent, 0
  %empty.next = or i1 %empty, %is.none
  br label %head

data:
  br i1 %empty, label %exit, label %present

present:
  %base = load ptr, ptr %tensor
  %is.null = icmp eq ptr %base, null
  br i1 %is.null, label %exit, label %aligned

aligned:
  %offset.at = getelementptr inbounds i8, ptr %tensor, i64 {offset}
  %offset = load i64, ptr %offset.at
  %bytes.at = getelementptr inbounds i8, ptr %spec, i64 8
  %bytes = load i64, ptr %bytes.at
  %base.address = ptrtoint ptr %base to i64
  %address = add i64 %base.address, %offset
  %mask = sub i64 %bytes, 1
  %rest = and i64 %address, %mask
  %is.aligned = icmp eq i64 %rest, 0
  %alignment = select i1 %is.aligned, i32 0, i32 7
  br label %exit

exit:
  %code = phi i32 [ 2, %entry ], [ 3, %rank ], [ 4, %dtype ], [ 5, %axis ], [ 6, %stride ], [ 6, %compact ],
                  [ 0, %taken ], [ 0, %data ], [ 1, %present ], [ %alignment, %aligned ]
  ret i32 %code
}

define internal i64 @tenon.room(ptr %tensor, i32 %rank, i64 %axis) {
entry:
  %rank.at = getelementptr inbounds i8, ptr %tensor, i64 {rank}
  %rank.given = load i32, ptr %rank.at
  %is.rank = icmp eq i32 %rank.given, %rank
  br i1 %is.rank, label %given, label %none

given:
  %count = zext i32 %rank to i64
  %shape.at = getelementptr inbounds i8, ptr %tensor, i64 {shape}
  %shape = load ptr, ptr %shape.at
  %strides.at = getelementptr inbounds i8, ptr %tensor, i64 {strides}
  %strides = load ptr, ptr %strides.at
  %extent.at = getelementptr inbounds i64, ptr %shape, i64 %axis
  %extent = load i64, ptr %extent.at
  %is.compact = icmp eq ptr %strides, null
  br i1 %is.compact, label %all, label %inner

inner:
  %left = phi i64 [ %count, %given ], [ %i, %inner.next ]
  %unit = phi i64 [ 1, %given ], [ %unit.next, %inner.next ]
  %i = sub i64 %left, 1
  %is.behind = icmp sgt i64 %i, %axis
  br i1 %is.behind, label %inner.next, label %outer

inner.next:
  %inner.at = getelementptr inbounds i64, ptr %shape, i64 %i
  %inner.extent = load i64, ptr %inner.at
  %unit.next = mul i64 %unit, %inner.extent
  br label %inner

outer:
  %before = phi i64 [ %axis, %inner ], [ %j, %short ]
  %is.first = icmp eq i64 %before, 0
  br i1 %is.first, label %all, label %look

look:
  %j = sub i64 %before, 1
  %outer.at = getelementptr inbounds i64, ptr %shape, i64 %j
  %outer.extent = load i64, ptr %outer.at
  %says = icmp ugt i64 %outer.extent, 1
  br i1 %says, label %say, label %short

short:
  br label %outer

say:
  %stride.at = getelementptr inbounds i64, ptr %strides, i64 %j
  %stride = load i64, ptr %stride.at
  %is.unit = icmp sgt i64 %unit, 0
  %divisor = select i1 %is.unit, i64 %unit, i64 1
  %room = sdiv i64 %stride, %divisor
  %is.more = icmp sgt i64 %room, %extent
  %is.less = icmp ule i64 %room, {largest}
  %is.room.0 = and i1 %is.more, %is.less
  %is.room = and i1 %is.room.0, %is.unit
  %given.room = select i1 %is.room, i64 %room, i64 %extent
  ret i64 %given.room

all:
  ret i64 %extent

none:
  ret i64 0
}

define internal i32 @tenon.apart(ptr %spans, i64 %inputs, i64 %count, ptr %mates) {
entry:
  br label %outputs

outputs:
  %output = phi i64 [ %inputs, %entry ], [ %output.next, %done ]
  %is.end = icmp eq i64 %output, %count
  br i1 %is.end, label %apart, label %others

others:
  %begin.at = getelementptr inbounds [2 x i64], ptr %spans, i64 %output
  %begin = load i64, ptr %begin.at
  %bytes.at = getelementptr inbounds i8, ptr %begin.at, i64 8
  %bytes = load i64, ptr %bytes.at
  %end = add i64 %begin, %bytes
  %number = sub i64 %output, %inputs
  %mate.at = getelementptr inbounds i64, ptr %mates, i64 %number
  %mate = load i64, ptr %mate.at
  br label %compare

compare:
  %other = phi i64 [ 0, %others ], [ %other.next, %next ]
  %is.last = icmp eq i64 %other, %output
  br i1 %is.last, label %done, label %other.one

other.one:
  %other.begin.at = getelementptr inbounds [2 x i64], ptr %spans, i64 %other
  %other.begin = load i64, ptr %other.begin.at
  %other.bytes.at = getelementptr inbounds i8, ptr %other.begin.at, i64 8
  %other.bytes = load i64, ptr %other.bytes.at
  %other.end = add i64 %other.begin, %other.bytes
  %begins.before = icmp ult i64 %begin, %other.end
  %other.before = icmp ult i64 %other.begin, %end
  %overlaps = and i1 %begins.before, %other.before
  %is.empty = icmp eq i64 %bytes, 0
  %other.empty = icmp eq i64 %other.bytes, 0
  %either.empty = or i1 %is.empty, %other.empty
  %is.mate = icmp eq i64 %other, %mate
  %is.same = icmp eq i64 %begin, %other.begin
  %is.whole = and i1 %is.mate, %is.same
  %is.allowed = or i1 %either.empty, %is.whole
  %other.next = add i64 %other, 1
  %is.not = xor i1 %is.allowed, true
  %is.bad = and i1 %overlaps, %is.not
  br i1 %is.bad, label %bad, label %next

next:
  br label %compare

done:
  %output.next = add i64 %output, 1
  br label %outputs

bad:
  %argument = add i64 %output, 1
  %argument.short = trunc i64 %argument to i32
  ret i32 %argument.short

apart:
  ret i32 0
}
";

#[cfg(test)]
mod tests {
    use super::TensorLayout;

    #[test]
    fn tensors_lie_as_c_lays_them_out() {
        let [long, short] = [8, 4].map(TensorLayout::new);
        assert_eq!((long.offset(), long.size()), (40, 48));
        assert_eq!((short.offset(), short.size()), (32, 40));
        assert!(short.check().contains("ptr %tensor, i64 12"), "the rank");
    }
}
