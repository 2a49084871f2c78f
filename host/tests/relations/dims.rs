//! The normal form of quotients and remainders by a number, and of minima and maxima.

use tenon_ir::{Context, Cx, Dim, Substitution};

fn text(cx: &Cx, dim: Dim) -> String {
    cx.terms().dim_text(dim)
}

#[test]
fn sizes_that_are_computed_in_several_ways_are_one_term() {
    let cx = Cx::new();
    let n = cx.dim_symbol("n");
    let plus = |a: Dim, by: i64| cx.dim_add(a, cx.dim(by));
    let over = |a: Dim, by: i64| cx.dim_floor_div(a, cx.dim(by));
    let past = |a: Dim, by: i64| cx.dim_floor_mod(a, cx.dim(by));
    let times = |a: Dim, by: i64| cx.dim_mul(a, cx.dim(by));
    let lacking = |a: Dim, by: i64| past(cx.dim_sub(cx.dim(by), past(a, by)), by);
    let cases = [
        (over(plus(n, -10), 5), "floordiv(n, 5) + -2"),
        (plus(over(plus(n, -4), 4), 1), "floordiv(n, 4)"),
        (over(plus(times(n, 2), 1), 4), "floordiv(n, 2)"),
        (over(times(n, 6), 3), "2*n"),
        (over(plus(over(n, 4), 1), 2), "floordiv(n + 4, 8)"),
        (past(plus(times(n, 8), 9), 4), "1"),
        (past(past(n, 12), 4), "floormod(n, 4)"),
        (lacking(n, 7), "floormod(-1*n, 7)"),
        (cx.dim_add(n, lacking(n, 7)), "7*floordiv(n + 6, 7)"),
        (over(cx.dim_add(n, lacking(n, 7)), 7), "floordiv(n + 6, 7)"),
        (over(cx.dim_add(n, past(n, 2)), 2), "floordiv(n + 1, 2)"),
        (cx.dim_sub(n, past(n, 7)), "7*floordiv(n, 7)"),
        (cx.dim_add(times(n, 3), past(n, 7)), "floormod(n, 7) + 3*n"),
    ];
    for (dim, expected) in cases {
        assert_eq!(text(&cx, dim), expected);
    }
}

#[test]
fn what_cancels_in_a_choice_is_taken_into_it() {
    let cx = Cx::new();
    let [n, m] = ["n", "m"].map(|name| cx.dim_symbol(name));
    let number = |value| cx.dim(value);
    let plus = |a: Dim, by: i64| cx.dim_add(a, cx.dim(by));
    let missing = cx.dim_max(cx.dim_sub(number(256), n), number(0));
    let cases = [
        (cx.dim_add(n, missing), "max(n, 256)"),
        (cx.dim_max(number(256), n), "max(n, 256)"),
        (cx.dim_min(n, m), "min(m, n)"),
        (cx.dim_sub(n, cx.dim_max(plus(n, -5), number(0))), "min(n, 5)"),
        (cx.dim_sub(n, cx.dim_min(n, number(5))), "max(n + -5, 0)"),
        (cx.dim_add(m, cx.dim_max(n, number(5))), "m + max(n, 5)"),
        (cx.dim_add(cx.dim_min(n, m), missing), "max(-1*n + 256, 0) + min(m, n)"),
    ];
    for (dim, expected) in cases {
        assert_eq!(text(&cx, dim), expected);
    }
}

/// Patch merging and windows of a network, stage by stage: the size of each does not grow with those before.
#[test]
fn rounding_up_again_and_again_stays_small() {
    let cx = Cx::new();
    let mut size = cx.dim_floor_div(cx.dim_symbol("h"), cx.dim(4));
    for _ in 0..8 {
        let odd = cx.dim_floor_mod(size, cx.dim(2));
        size = cx.dim_floor_div(cx.dim_add(size, odd), cx.dim(2));
    }
    assert_eq!(text(&cx, size), "floordiv(h + 1020, 1024)");
}

/// Numbers that are drawn one after the other (Steele and others, "Fast splittable pseudorandom number generators", 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, count: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % count
    }
}

/// Whatever symbols stand for, a dimension is what it was made of.
#[test]
fn the_normal_form_changes_no_value() {
    let cx = Cx::new();
    let symbols = ["n", "m"].map(|name| cx.dim_symbol(name));
    let values: [[i64; 2]; 5] = [[0, 0], [1, 5], [7, 2], [12, 13], [101, 64]];
    for seed in 0..4000 {
        let mut random = Random(seed);
        let mut known: Vec<(Dim, [i64; 5])> =
            (0..2).map(|at| (symbols[at], values.map(|value| value[at]))).collect();
        for _ in 0..10 {
            let count = known.len() as u64;
            let (a, of_a) = known[random.below(count) as usize];
            let (b, of_b) = known[random.below(count) as usize];
            let by = 2 + random.below(7) as i64;
            let factor = random.below(7) as i64 - 3;
            let next = match random.below(8) {
                0 => (cx.dim_floor_div(a, cx.dim(by)), of_a.map(|a| a.div_euclid(by))),
                1 => (cx.dim_floor_mod(a, cx.dim(by)), of_a.map(|a| a.rem_euclid(by))),
                2 => (cx.dim_mul(a, cx.dim(factor)), of_a.map(|a| a * factor)),
                3 => (cx.dim_add(a, cx.dim(factor)), of_a.map(|a| a + factor)),
                4 => (cx.dim_sub(a, b), std::array::from_fn(|at| of_a[at] - of_b[at])),
                5 => (cx.dim_min(a, b), std::array::from_fn(|at| of_a[at].min(of_b[at]))),
                6 => (cx.dim_max(a, b), std::array::from_fn(|at| of_a[at].max(of_b[at]))),
                _ => (cx.dim_add(a, b), std::array::from_fn(|at| of_a[at] + of_b[at])),
            };
            known.push(next);
        }
        for (dim, expected) in known {
            for (value, expected) in values.iter().zip(expected) {
                let mut to = Substitution::new();
                for (name, &value) in ["n", "m"].into_iter().zip(value) {
                    to.bind(cx.symbol(name), cx.dim(value));
                }
                let found = Dim(to.apply(&cx, dim).0);
                let found = cx.terms().dim_value(found);
                assert_eq!(found, Some(expected), "{} of {value:?}, seed {seed}", text(&cx, dim));
            }
        }
    }
}
