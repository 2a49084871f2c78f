//! The best elements by their order, which is found digit by digit.
//!
//! ```text
//! key(x) := bits that are in the order of the elements, above the place of x
//! for d in the digits of a key, the last one first {
//!   moved := keys, those with a lesser digit before, and as they were where it is the same
//!   keys  := moved
//! }
//! ```
//!
//! Where many are wanted this takes less time than a heap does: so many steps for each element, whatever there is. (Knuth, The Art of
//! Computer Programming, volume 3, 5.2.5: sorting by distribution from the least significant digit.)

use tenon_plugin_api::ir::{BinaryOp, Build, BuildPrim};
use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::program::{Buffer, Extent, Program, Scalar, Stmt};

/// Values of a digit.
const DIGIT: i64 = 256;
/// Digits of a key.
const DIGITS: i64 = 4;
/// Where a key stands above a place, as a factor.
const KEY: i64 = 1 << 32;
/// Where there are more than one in so many elements wanted, their order is found by digits, as measured for rows of 1,000 to 100,000.
const ONE_IN: i64 = 32;
/// Fewer elements are held in a heap.
const FEWEST: i64 = 24;

/// Whether the order of all elements is to be found, of which `count` are wanted.
pub(super) fn is_better(program: &Program, dtype: DType, [extent, count]: [Dim; 2]) -> bool {
    let has_keys = dtype == DType::F32 || (dtype.is_int() && dtype.bits() <= 32);
    let are_many = match [extent, count].map(|dim| program.dim_value(dim)) {
        [Some(extent), Some(count)] => {
            (FEWEST..KEY).contains(&extent) && count >= FEWEST && count * ONE_IN > extent
        }
        _ => extent == count,
    };
    has_keys && are_many
}

/// The rows of a tensor along an axis, whose places are given without it.
pub(super) struct Along<'p, 'a> {
    pub(super) x: &'a Buffer<'p>,
    pub(super) axis: usize,
    pub(super) largest: bool,
}

impl<'p> Along<'p, '_> {
    /// Finds the order of each row, and writes `values` and `places` of the best elements.
    pub(super) fn program(&self, program: &'p Program, [values, places]: [&Buffer<'p>; 2]) {
        let axis = self.axis;
        let (extent, count) = (self.x.shape()[axis], values.shape()[axis]);
        let outer = [&values.shape()[..axis], &values.shape()[axis + 1..]].concat();
        let row = |extent: Dim| [&outer[..], &[extent]].concat();
        let sizes = row(extent);
        let [keys, moved] =
            ["keys", "moved"].map(|name| program.temporary(name, DType::U64, &sizes));
        let digits = program.cx().dim(DIGIT * DIGITS);
        // How many elements have a digit, and then where the next of them goes.
        let next = program.temporary("next", DType::I64, &row(digits));
        program.each(&outer, |i| {
            let at = |place| [i, &[place]].concat();
            let steps = extent.index(program);
            let mut all = program.block();
            all.push(program.in_turn(program.index(DIGIT * DIGITS), |digit| {
                next.set(&at(digit), program.index(0))
            }));
            all.push(program.in_turn(steps, |place| {
                let mut body = program.block();
                let element = body.bind("element", self.x.wide(&self.across(i, place)));
                let key = body.bind("key", self.key(element));
                body.push(keys.set(&at(place), key * KEY + place.cast(DType::U64)));
                for digit in 0..DIGITS {
                    let counter = at(digit_of(key, digit) + digit * DIGIT);
                    body.push(next.set(&counter, next.at(&counter) + 1));
                }
                body.finish()
            }));
            all.push(starts(program, &next, i));
            for digit in 0..DIGITS {
                let (from, to) = if digit % 2 == 0 { (&keys, &moved) } else { (&moved, &keys) };
                all.push(program.in_turn(steps, |place| {
                    let mut body = program.block();
                    let key = body.bind("key", from.at(&at(place)));
                    let counter = body.bind("digit", digit_of(key / KEY, digit) + digit * DIGIT);
                    let counter = at(counter);
                    let goes_to = body.bind("goes_to", next.at(&counter));
                    body.push(next.set(&counter, goes_to + 1));
                    body.push(to.set(&at(goes_to), key));
                    body.finish()
                }));
            }
            all.push(program.in_turn(count.index(program), |rank| {
                let mut body = program.block();
                let place = (keys.at(&at(rank)) % KEY).cast(DType::I64);
                let place = body.bind("place", place);
                let to = self.across(i, rank);
                body.push(values.set(&to, self.x.wide(&self.across(i, place))));
                body.push(places.set(&to, place));
                body.finish()
            }));
            all.finish()
        });
    }

    fn across(&self, row: &[Scalar<'p>], place: Scalar<'p>) -> Vec<Scalar<'p>> {
        [&row[..self.axis], &[place], &row[self.axis..]].concat()
    }

    /// A number below [`KEY`] that is less the sooner an element comes; the same for equal ones.
    fn key(&self, element: Scalar<'p>) -> Scalar<'p> {
        let program = element.program();
        let all = program.int(DType::U64, KEY - 1);
        let key = match element.dtype().is_float() {
            true => {
                // Both zeros are one.
                let zero = program.literal(element.dtype(), 0.0);
                let element = element.binary(BinaryOp::Eq, zero).select(zero, element);
                let bits = program.scalar(|writer| {
                    let ty = writer.with_cx(|cx| cx.scalar_type(DType::U32));
                    writer.intrinsic_of("reinterpret", &[element.expr()], Some(ty))
                });
                let bits = bits.cast(DType::U64);
                let is_positive = bits.lt(KEY / 2);
                let ordered = is_positive.select(bits + KEY / 2, all - bits);
                element.binary(BinaryOp::Ne, element).select(all, ordered)
            }
            false if element.dtype().is_signed() => {
                (element.cast(DType::I64) + KEY / 2).cast(DType::U64)
            }
            false => element.cast(DType::U64),
        };
        if self.largest { all - key } else { key }
    }
}

/// A digit of a key.
fn digit_of(key: Scalar<'_>, digit: i64) -> Scalar<'_> {
    (key / DIGIT.pow(digit as u32) % DIGIT).cast(DType::I64)
}

/// Makes of the numbers of elements that have each digit where the first of them goes.
fn starts<'p>(program: &'p Program, next: &Buffer<'p>, row: &[Scalar<'p>]) -> Stmt {
    let at = |place| [row, &[place]].concat();
    let mut body = program.block();
    let sums = body.local("sums", DType::I64, &[1]);
    let zero = program.index(0);
    body.push(program.in_turn(program.index(DIGITS), |digit| {
        let start = sums.set(&[zero], zero);
        let each = program.in_turn(program.index(DIGIT), |value| {
            let mut body = program.block();
            let counter = at(digit * DIGIT + value);
            let start = body.bind("start", sums.at(&[zero]));
            body.push(sums.set(&[zero], start + next.at(&counter)));
            body.push(next.set(&counter, start));
            body.finish()
        });
        program.seq(&[start, each])
    }));
    body.finish()
}
