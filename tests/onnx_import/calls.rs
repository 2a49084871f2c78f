//! What only a call says: shapes with a rest in them, places that a loop counts, batches.

use tenon_compiler::eval::Tensor;

use super::control::{body, inner};
use super::open_sequences::{compile, elements, floats, number};
use super::*;
use crate::compiled;

fn sizes(numbers: &[i64]) -> Tensor {
    Tensor::from_vec(vec![numbers.len()], numbers.to_vec())
}

/// The extents of the data, the shape that is asked for, and the extents that come of it; none where the call is refused.
type Call<'a> = (&'a [usize], &'a [i64], Option<&'a [usize]>);

/// The shape of what is reshaped to each of these; `None` where the call is refused.
fn reshaped(given: &[Message], calls: &[Call]) {
    let (rank, count) = (calls[0].0.len(), calls[0].1.len());
    let dims: Vec<D> = ["a", "b", "c"][..rank].iter().map(|&name| S(name)).collect();
    let model = model(17)
        .input("x", FLOAT, &dims)
        .input("s", INT64, &[N(count as i64)])
        .node("Reshape", &["x", "s"], &["r"], given)
        .node("Neg", &["r"], &["y"], &[])
        .output("y");
    let compiled = compile(&model);
    for &(shape, asked, expected) in calls {
        let x = floats(shape, 1.0);
        let found = compiled::run(&compiled, &[x.clone(), sizes(asked)]);
        match (found, expected) {
            (Ok(found), Some(expected)) => {
                assert_eq!(found[0].shape(), expected, "{shape:?} to {asked:?}");
                let negated: Vec<f32> = elements(&x).iter().map(|x| -x).collect();
                assert_eq!(elements(&found[0]), negated);
            }
            (Err(error), None) => assert!(!error.is_empty()),
            (found, _) => panic!("{shape:?} to {asked:?}: {found:?}"),
        }
    }
}

#[test]
fn a_rest_among_sizes_is_what_the_others_leave() {
    reshaped(
        &[],
        &[
            (&[2, 3, 4], &[-1, 6, 1], Some(&[4, 6, 1])),
            (&[2, 3, 4], &[4, -1, 1], Some(&[4, 6, 1])),
            (&[2, 3, 4], &[12, 2, 1], Some(&[12, 2, 1])),
            (&[2, 3, 4], &[0, 0, -1], Some(&[2, 3, 4])),
            (&[2, 3, 4], &[-1, 0, 2], Some(&[4, 3, 2])),
            (&[1, 1, 1], &[1, -1, 1], Some(&[1, 1, 1])),
            (&[0, 3, 4], &[0, 3, 4], Some(&[0, 3, 4])),
            (&[0, 3, 4], &[-1, 3, 4], Some(&[0, 3, 4])),
            (&[2, 3, 4], &[-1, 7, 1], None),
            (&[2, 3, 4], &[-1, -1, 24], None),
            (&[1, 1, 1], &[-1, -1, 1], None),
            (&[0, 1, 1], &[-1, -1, 1], None),
            (&[2, 3, 4], &[-2, 12, 1], None),
            (&[2, 3, 4], &[5, 5, 1], None),
            (&[2, 3, 4], &[i64::MIN, 12, 1], None),
            (&[2, 3, 4], &[i64::MAX, 12, 1], None),
        ],
    );
    reshaped(
        &[],
        &[(&[2, 3], &[-1], Some(&[6])), (&[2, 3], &[6], Some(&[6])), (&[2, 3], &[5], None)],
    );
}

#[test]
fn a_zero_beside_a_rest_may_be_none() {
    reshaped(
        &[int("allowzero", 1)],
        &[
            (&[2, 6], &[3, -1], Some(&[3, 4])),
            (&[0, 6], &[5, 0], Some(&[5, 0])),
            (&[0, 6], &[-1, 3], Some(&[0, 3])),
            (&[2, 6], &[0, -1], None),
            (&[2, 6], &[0, 12], None),
        ],
    );
}

#[test]
fn many_sizes_stay_short() {
    let calls: &[Call] = &[
        (&[2, 3, 4], &[0, 3, 1, 2, -1, 1], Some(&[2, 3, 1, 2, 2, 1])),
        (&[2, 3, 4], &[1, 1, 1, 1, 1, -1], Some(&[1, 1, 1, 1, 1, 24])),
        (&[2, 3, 4], &[1, 1, 1, 1, 1, 7], None),
    ];
    reshaped(&[], calls);
}

/// The oldest `Scan` goes over what stands in a batch, and in it over rows.
#[test]
fn a_scan_goes_over_a_batch() {
    let inner = inner().node("Add", &["s", "a"], &["t"], &[]).node("Mul", &["a", "b"], &["u"], &[]);
    let graph = body(&["s", "a", "b"], inner, &["t", "u"]);
    let scan = |lengths: &str| {
        let attributes = [graph.clone(), int("num_scan_inputs", 2), ints("directions", &[0, 1])];
        model(8)
            .input("l", INT64, &[S("n")])
            .input("i", FLOAT, &[S("n"), N(2)])
            .input("x", FLOAT, &[S("n"), S("m"), N(2)])
            .node("Scan", &[lengths, "i", "x", "x"], &["y", "all"], &attributes)
            .output("y")
            .output("all")
    };
    let compiled = compile(&scan(""));
    let inputs = [sizes(&[0, 0]), floats(&[2, 2], 100.0), floats(&[2, 3, 2], 0.0)];
    let found = compiled::run(&compiled, &inputs).expect("it runs");
    assert_eq!(elements(&found[0]), [106.0, 110.0, 126.0, 130.0]);
    assert_eq!(found[1].shape(), [2, 3, 2]);
    assert_eq!(elements(&found[1])[..6], [0.0, 5.0, 4.0, 9.0, 0.0, 5.0]);
    let error = scan("l").error();
    assert!(error.contains("how long each sequence of the batch is, as an input"), "{error}");
}

/// Windows of two rows from the number of the trip on.
fn windows(declared: &[D]) -> Model {
    let inner = inner()
        .int("two", 2)
        .ints("axis", &[0])
        .node("Add", &["i", "two"], &["e"], &[])
        .node("Unsqueeze", &["i", "axis"], &["first"], &[])
        .node("Unsqueeze", &["e", "axis"], &["end"], &[])
        .node("Slice", &["x", "first", "end"], &["w"], &[])
        .node("Identity", &["d"], &["again"], &[]);
    let graph = ["i", "d"].iter().fold(inner, |inner, input| inner.input(input));
    let graph = graph.output("again").typed_output("w", FLOAT, declared).named("body");
    model(17)
        .input("x", FLOAT, &[S("n"), N(3)])
        .input("m", INT64, &[])
        .node("Loop", &["m", ""], &["y"], &[graph])
        .output("y")
}

#[test]
fn rows_whose_shapes_a_trip_finds_are_as_declared() {
    let compiled = compile(&windows(&[N(2), N(3)]));
    let call = |rows: usize, trips: i64| {
        compiled::run(&compiled, &[floats(&[rows, 3], 0.0), number(trips)])
    };
    let found = call(4, 3).expect("it runs");
    assert_eq!(found[0].shape(), [3, 2, 3]);
    assert_eq!(elements(&found[0])[6..12], [3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
    // The last window would be shorter.
    assert!(call(3, 3).is_err());
    let error = windows(&[S("w"), N(3)]).error();
    assert!(error.contains("whose shape each trip finds"), "{error}");
}

/// A dimension that only a call says stays; one in which it is 1 would have a result of another rank.
#[test]
fn an_open_dimension_is_not_squeezed() {
    let model = model(17)
        .input("x", FLOAT, &[S("n"), N(1), N(3)])
        .node("Squeeze", &["x"], &["y"], &[])
        .output("y");
    let compiled = compile(&model);
    for count in [0, 2, 5] {
        let found = compiled::run(&compiled, &[floats(&[count, 1, 3], 1.0)]).expect("it runs");
        assert_eq!(found[0].shape(), [count, 3]);
    }
    let error = compiled::run(&compiled, &[floats(&[1, 1, 3], 1.0)]).expect_err("it is refused");
    assert!(error.contains("is none that it is made for"), "{error}");
}

/// Where the model declares how many axes a result has, that decides of those that only a call could take out.
#[test]
fn a_declared_rank_decides_what_is_squeezed() {
    let squeezed = |dims: &[D]| {
        let model = model(17)
            .input("x", FLOAT, &[S("n"), N(1), N(3)])
            .node("Squeeze", &["x"], &["y"], &[])
            .typed_output("y", FLOAT, dims);
        compile(&model)
    };
    let run = |compiled, count| compiled::run(compiled, &[floats(&[count, 1, 3], 1.0)]);
    let kept = squeezed(&[S("n"), N(3)]);
    assert_eq!(run(&kept, 1).expect("it runs")[0].shape(), [1, 3]);
    assert_eq!(run(&kept, 2).expect("it runs")[0].shape(), [2, 3]);
    let dropped = squeezed(&[S("m")]);
    assert_eq!(run(&dropped, 1).expect("it runs")[0].shape(), [3]);
    let error = run(&dropped, 2).expect_err("it is refused");
    assert!(error.contains("do not fit together"), "{error}");
    assert!(
        error.contains("must have the elements of `f32[n, 1, 3]`, for y, where n is 2"),
        "{error}"
    );
}

/// Of what follows from it, too: PyTorch's exporter declares the results of a model that it has run with one item.
#[test]
fn the_rank_of_an_output_decides_what_is_squeezed_before() {
    let scored = |dims: &[D]| {
        let model = model(17)
            .input("x", FLOAT, &[S("n"), N(1), N(3)])
            .node("Squeeze", &["x"], &["s"], &[])
            .node("Sigmoid", &["s"], &["y"], &[])
            .typed_output("y", FLOAT, dims);
        model.text()
    };
    assert!(scored(&[S("n")]).contains("-> f32[3]"), "{}", scored(&[S("n")]));
    assert!(scored(&[S("n"), N(3)]).contains("-> f32[n, 3]"));
    // Neither way has four axes: it stays as it is without a declaration.
    assert!(scored(&[N(1), N(1), N(1), N(3)]).contains("-> f32[n, 3]"));
}
