//! Pooling: tap by tap of the window, what it took from the data goes back there.

use tenon_plugin_api::prelude::*;

use crate::gradient::step::{Grads, Step, one};

/// How a window moves over data in the layout NCHW.
struct Pool {
    data: [i64; 2],
    out: [i64; 2],
    size: [i64; 2],
    strides: [i64; 2],
    dilation: [i64; 2],
    before: [i64; 2],
    after: [i64; 2],
}

impl Pool {
    fn of(s: &Step<'_>) -> Result<Self> {
        check_layout(s)?;
        let attrs = s.attrs();
        let pair = |name, default: i64| {
            let values = attrs.ints(name).unwrap_or_else(|| vec![default; 2]);
            [values[0], values[1]]
        };
        let padding = attrs.ints("padding").unwrap_or_else(|| vec![0; 4]);
        let (data, out) = (s.extents(s.arg(0))?, s.extents(s.value)?);
        Ok(Self {
            data: [data[2], data[3]],
            out: [out[2], out[3]],
            size: pair("pool_size", 1),
            strides: pair("strides", 1),
            dilation: pair("dilation", 1),
            before: [padding[0], padding[1]],
            after: [padding[2], padding[3]],
        })
    }

    /// What the windows reach along an axis, from the padding in front on.
    fn reach(&self, axis: usize) -> i64 {
        let last = (self.out[axis] - 1) * self.strides[axis];
        let reach = last + (self.size[axis] - 1) * self.dilation[axis] + 1;
        reach.max(self.before[axis] + self.data[axis])
    }

    /// The padding that lets every window stay inside.
    fn widths(&self) -> [[i64; 2]; 4] {
        let width =
            |axis| [self.before[axis], self.reach(axis) - self.before[axis] - self.data[axis]];
        [[0, 0], [0, 0], width(0), width(1)]
    }

    /// The first index of each tap of the window.
    fn taps(&self) -> Vec<[i64; 2]> {
        let [rows, columns] = self.size;
        let tap = |row, column| [row * self.dilation[0], column * self.dilation[1]];
        (0..rows).flat_map(|row| (0..columns).map(move |column| tap(row, column))).collect()
    }

    /// What a tap meets at each place of the window.
    fn taken(&self, s: &mut Step<'_>, padded: Expr, tap: [i64; 2]) -> Expr {
        let end = |axis: usize| tap[axis] + (self.out[axis] - 1) * self.strides[axis] + 1;
        let attrs: [(&str, AttrValue); 4] = [
            ("axes", vec![2, 3].into()),
            ("begin", tap.to_vec().into()),
            ("end", vec![end(0), end(1)].into()),
            ("strides", self.strides.to_vec().into()),
        ];
        s.rw.apply_with("strided_slice", &[padded], &attrs)
    }

    /// The sum over the taps of what each gives back, at the places that it met.
    fn given_back(&self, s: &mut Step<'_>, parts: Vec<([i64; 2], Expr)>) -> Result<Expr> {
        let mut sum: Option<Expr> = None;
        for (tap, part) in parts {
            let mut widths = [[0, 0]; 4];
            let mut spread = part;
            for axis in 0..2 {
                spread = s.spread(spread, axis + 2, self.strides[axis])?;
                let length = (self.out[axis] - 1) * self.strides[axis] + 1;
                widths[axis + 2] = [tap[axis], self.reach(axis) - tap[axis] - length];
            }
            let part = s.pad(spread, &widths);
            sum = Some(sum.map_or(part, |sum| s.add(sum, part)));
        }
        let mut grad = sum.ok_or_else(|| PassError::new("its window is empty"))?;
        for axis in 0..2 {
            if self.reach(axis) != self.data[axis] {
                let first = self.before[axis];
                grad = s.rw.slice(grad, axis as i64 + 2, first, first + self.data[axis]);
            }
        }
        Ok(grad)
    }
}

fn check_layout(s: &Step<'_>) -> Result<()> {
    match s.attrs().str("layout").is_some_and(|layout| layout != "NCHW") {
        true => Err(PassError::new("its layout is other than NCHW")),
        false => Ok(()),
    }
}

/// `g` to the taps that met the largest element, shared among equal ones.
pub(super) fn max_pool2d(s: &mut Step<'_>) -> Grads {
    let pool = Pool::of(s)?;
    let attrs = [("pad_width", pool.widths().concat().into()), ("value", f64::NEG_INFINITY.into())];
    let padded = match pool.widths().concat().iter().all(|&width| width == 0) {
        true => s.arg(0),
        false => s.rw.apply_with("nn.pad", &[s.call.args[0]], &attrs),
    };
    let mut masks = Vec::new();
    let mut count: Option<Expr> = None;
    for tap in pool.taps() {
        let taken = pool.taken(s, padded, tap);
        let mask = s.indicator("equal", taken, s.value);
        count = Some(count.map_or(mask, |count| s.add(count, mask)));
        masks.push((tap, mask));
    }
    let share = s.div(s.grad(), count.ok_or_else(|| PassError::new("its window is empty"))?);
    let parts = masks.into_iter().map(|(tap, mask)| (tap, s.mul(mask, share))).collect();
    one(pool.given_back(s, parts)?)
}

/// `g / count` to each tap, where the count is that of the elements, or of the places of the padded data.
pub(super) fn avg_pool2d(s: &mut Step<'_>) -> Grads {
    let pool = Pool::of(s)?;
    let counts_padding = s.attrs().bool("count_include_pad").unwrap_or(false);
    let along = |axis: usize| -> Vec<i64> {
        let (first, end) = match counts_padding {
            true => (-pool.before[axis], pool.data[axis] + pool.after[axis]),
            false => (0, pool.data[axis]),
        };
        let index = |at: i64, tap: i64| {
            at * pool.strides[axis] - pool.before[axis] + tap * pool.dilation[axis]
        };
        let is_counted = |at, tap: &i64| (first..end).contains(&index(at, *tap));
        let count = |at| (0..pool.size[axis]).filter(|tap| is_counted(at, tap)).count() as i64;
        (0..pool.out[axis]).map(count).collect()
    };
    let (rows, columns) = (along(0), along(1));
    let (dtype, _) = s.tensor(s.arg(0))?;
    let counts = rows.iter().flat_map(|row| columns.iter().map(move |column| row * column));
    let bytes: Option<Vec<Vec<u8>>> = counts.map(|count| dtype.encode(count as f64)).collect();
    let ty = s.rw.cx().static_tensor_type(dtype, &pool.out);
    let bytes = bytes.ok_or_else(|| PassError::new("its element type has no numbers"))?.concat();
    let counts = s.rw.constant(ty, &bytes);
    let share = s.div(s.grad(), counts);
    let parts = pool.taps().into_iter().map(|tap| (tap, share)).collect();
    one(pool.given_back(s, parts)?)
}

/// `g / count` everywhere.
pub(super) fn global_avg_pool2d(s: &mut Step<'_>) -> Grads {
    check_layout(s)?;
    let shape = s.extents(s.arg(0))?;
    let share = s.scale(s.grad(), 1.0 / (shape[2] * shape[3]) as f64);
    one(s.broadcast_like(share, s.arg(0))?)
}

/// `g` to the largest element, shared among equal ones.
pub(super) fn global_max_pool2d(s: &mut Step<'_>) -> Grads {
    check_layout(s)?;
    let mask = s.indicator("equal", s.arg(0), s.value);
    let count = s.reduce("sum", mask, &[2, 3], true);
    let share = s.div(s.grad(), count);
    one(s.mul(mask, share))
}
