//! Sequences whose lengths only a call can tell, and optional values: one library for several of them.

use tenon_compiler::eval::Tensor;
use tenon_compiler::ir::{Bytes, DType};
use tenon_compiler::runtime::model::Model as Compiled;

use super::control::{Inner, body, branches, inner};
use super::*;
use crate::compiled;

fn sequence(name: &str, dims: &[D]) -> Message {
    held(name, 4, dims)
}

/// A value whose type holds a tensor: a sequence where `kind` is 4, an optional value where it is 9.
fn held(name: &str, kind: u32, dims: &[D]) -> Message {
    let tensor = Message::new().message(1, value_type(FLOAT, dims));
    let held = Message::new().message(1, tensor);
    Message::new().bytes(1, name).message(2, Message::new().message(kind, held))
}

pub(super) fn compile(model: &Model) -> Compiled {
    let file = Mapping::in_memory(Path::new("m.onnx"), model.bytes());
    let module = import_mapping(&compiled::cx(), &file, &ImportOptions::default());
    let module = module.unwrap_or_else(|error| panic!("{error}")).module;
    compiled::compile(&module).unwrap_or_else(|error| panic!("{error}"))
}

pub(super) fn floats(shape: &[usize], first: f32) -> Tensor {
    let count = shape.iter().product::<usize>();
    Tensor::from_vec(shape.to_vec(), (0..count).map(|at| first + at as f32).collect::<Vec<f32>>())
}

pub(super) fn number(value: i64) -> Tensor {
    Tensor::from_vec(vec![], vec![value])
}

pub(super) fn elements(tensor: &Tensor) -> Vec<f32> {
    tensor.elements::<f32>().to_vec()
}

/// Trips that each put `v * i` behind the sequence, in the way that `inner` does.
fn loop_of(inner: Inner, first: &str) -> Model {
    loop_with(body(&["i", "d", "s"], inner.int("one", 1), &["d", "t"]), first)
}

fn loop_with(graph: Message, first: &str) -> Model {
    let model = model(17)
        .input("x", FLOAT, &[S("n"), N(3)])
        .input("m", INT64, &[])
        .int("zero", 0)
        .int("last", -1)
        .node("SequenceEmpty", &[], &["none"], &[])
        .node("SequenceConstruct", &["x"], &["some"], &[])
        .node("Loop", &["m", "", first], &["r"], &[graph]);
    model
        .node("ConcatFromSequence", &["r"], &["y"], &[int("axis", 0)])
        .node("SequenceLength", &["r"], &["l"], &[])
        .output("y")
        .output("l")
}

fn scaled() -> Inner {
    inner().node("Cast", &["i"], &["f"], &[int("to", 1)]).node("Mul", &["x", "f"], &["v"], &[])
}

#[test]
fn what_a_loop_appends_are_rows_of_it() {
    let appends = scaled().node("SequenceInsert", &["s", "v"], &["t"], &[]);
    let model = loop_of(appends, "none");
    // No trip copies what those before it have made.
    assert!(!model.text().contains("concatenate"), "{}", model.text());
    let compiled = compile(&model);
    for (rows, trips) in [(2, 3), (1, 1), (4, 20), (3, 0)] {
        let x = floats(&[rows, 3], 1.0);
        let found = compiled::run(&compiled, &[x.clone(), number(trips)]).expect("it runs");
        let expected: Vec<f32> = (0..trips)
            .flat_map(|trip| elements(&x).into_iter().map(move |it| it * trip as f32))
            .collect();
        assert_eq!(elements(&found[0]), expected, "of {rows} rows and {trips} trips");
        assert_eq!(found[1].elements::<i64>()[..], [trips]);
    }
}

#[test]
fn a_loop_reads_the_sequence_that_it_makes() {
    let reads = inner()
        .node("SequenceAt", &["s", "last"], &["p"], &[])
        .node("Add", &["p", "x"], &["v"], &[])
        .node("SequenceInsert", &["s", "v"], &["t"], &[]);
    let compiled = compile(&loop_of(reads, "some"));
    for (rows, trips) in [(2, 3), (1, 0), (4, 9)] {
        let x = floats(&[rows, 3], 1.0);
        let found = compiled::run(&compiled, &[x.clone(), number(trips)]).expect("it runs");
        let expected: Vec<f32> = (0..=trips)
            .flat_map(|trip| elements(&x).into_iter().map(move |it| it * (trip + 1) as f32))
            .collect();
        assert_eq!(elements(&found[0]), expected, "of {rows} rows and {trips} trips");
    }
}

#[test]
fn branches_may_give_sequences_of_different_lengths() {
    let [then, otherwise] = branches(
        inner().node("SequenceInsert", &["s", "v"], &["a"], &[]).output("a"),
        inner().node("Identity", &["s"], &["b"], &[]).output("b"),
    );
    let sometimes = scaled().node("Greater", &["i", "one"], &["q"], &[]).node(
        "If",
        &["q"],
        &["t"],
        &[then, otherwise],
    );
    let compiled = compile(&loop_of(sometimes.clone(), "some"));
    for trips in [0, 1, 2, 6] {
        let found = compiled::run(&compiled, &[floats(&[2, 3], 1.0), number(trips)]);
        assert_eq!(found.expect("it runs")[1].elements::<i64>()[..], [1 + (trips - 2).max(0)]);
    }
    let error = loop_of(sometimes, "none").error();
    assert!(error.contains("a sequence that is empty at first"), "{error}");
}

/// Only the input of the body says what the elements of the sequence are.
#[test]
fn a_loop_declares_what_an_empty_sequence_will_hold() {
    let [then, otherwise] = branches(
        inner().node("SequenceInsert", &["s", "v"], &["a"], &[]).output("a"),
        inner().node("Identity", &["s"], &["b"], &[]).output("b"),
    );
    let graph = scaled()
        .int("one", 1)
        .node("Greater", &["i", "one"], &["q"], &[])
        .node("If", &["q"], &["t"], &[then, otherwise])
        .input("i")
        .input("d")
        .with_input(sequence("s", &[S("n"), N(3)]))
        .output("d")
        .output("t")
        .named("body");
    let compiled = compile(&loop_with(graph, "none"));
    for trips in [0, 1, 2, 6] {
        let found = compiled::run(&compiled, &[floats(&[2, 3], 1.0), number(trips)]);
        assert_eq!(found.expect("it runs")[1].elements::<i64>()[..], [(trips - 2).max(0)]);
    }
}

#[test]
fn loops_within_loops_append_to_one_sequence() {
    let append = inner()
        .node("Cast", &["j"], &["g"], &[int("to", 1)])
        .node("Add", &["v", "g"], &["w"], &[])
        .node("SequenceInsert", &["u", "w"], &["u2"], &[]);
    let append = body(&["j", "e", "u"], append, &["e", "u2"]);
    let nested = scaled().node("Loop", &["m", "", "s"], &["t"], &[append]);
    let compiled = compile(&loop_of(nested, "none"));
    for (rows, trips) in [(2, 3), (1, 1), (3, 5)] {
        let x = floats(&[rows, 3], 1.0);
        let found = compiled::run(&compiled, &[x.clone(), number(trips)]).expect("it runs");
        let pairs = (0..trips).flat_map(|i| (0..trips).map(move |j| (i as f32, j as f32)));
        let expected: Vec<f32> =
            pairs.flat_map(|(i, j)| elements(&x).into_iter().map(move |it| it * i + j)).collect();
        assert_eq!(elements(&found[0]), expected, "of {rows} rows and {trips} trips");
    }
}

#[test]
fn a_call_says_places() {
    let model = model(17)
        .with(11, sequence("s", &[N(2)]))
        .input("x", FLOAT, &[N(2)])
        .input("at", INT64, &[])
        .node("SequenceAt", &["s", "at"], &["a"], &[])
        .node("SequenceInsert", &["s", "x", "at"], &["more"], &[])
        .node("SequenceErase", &["s", "at"], &["less"], &[])
        .node("ConcatFromSequence", &["more"], &["y"], &[int("axis", 0)])
        .output("a")
        .output("y")
        .with(12, Message::new().bytes(1, "less"));
    assert!(
        model.text().starts_with("fn @main(%s: f32[s_length, 2], %x: f32[2], %at: i64[]) -> ("),
        "{}",
        model.text()
    );
    let compiled = compile(&model);
    for (count, at) in [(3, 1), (3, -1), (5, 0), (1, 0), (4, -4)] {
        let (s, x) = (floats(&[count, 2], 1.0), floats(&[2], 100.0));
        let found = compiled::run(&compiled, &[s.clone(), x.clone(), number(at)]);
        let found = found.expect("it runs");
        let place = if at < 0 { at + count as i64 } else { at } as usize;
        let all: Vec<Vec<f32>> = elements(&s).chunks(2).map(<[f32]>::to_vec).collect();
        let (mut more, mut less) = (all.clone(), all.clone());
        more.insert(place, elements(&x));
        less.remove(place);
        let all = [all[place].clone(), more.concat(), less.concat()];
        for (found, expected) in found.iter().zip(all) {
            assert_eq!(elements(found), expected, "place {at} of {count}");
        }
    }
}

#[test]
fn a_sequence_without_a_shape_of_its_elements_is_refused() {
    let tensor = Message::new().message(1, Message::new().int(1, FLOAT));
    let ty = Message::new().message(4, Message::new().message(1, tensor));
    let model = model(17)
        .with(11, Message::new().bytes(1, "s").message(2, ty))
        .node("SequenceLength", &["s"], &["y"], &[])
        .output("y");
    let error = model.error();
    let reason = "the input `s` of kind sequence, of whose elements the model does not declare";
    assert!(error.contains(reason), "{error}");
}

#[test]
fn a_map_goes_over_the_elements_of_sequences() {
    let graph = inner()
        .node("Add", &["a", "b"], &["c"], &[])
        .input("a")
        .input("b")
        .output("c")
        .named("body");
    let model = model(17)
        .with(11, sequence("s", &[N(2)]))
        .with(11, sequence("t", &[N(2)]))
        .node("SequenceMap", &["s", "t"], &["y"], &[graph])
        .with(12, sequence("y", &[N(2)]));
    let compiled = compile(&model);
    for count in [1, 4] {
        let inputs = [floats(&[count, 2], 1.0), floats(&[count, 2], 10.0)];
        let found = compiled::run(&compiled, &inputs).expect("it runs");
        let expected: Vec<f32> = (0..2 * count).map(|at| 11.0 + 2.0 * at as f32).collect();
        assert_eq!(elements(&found[0]), expected);
    }
    let different = [floats(&[2, 2], 1.0), floats(&[3, 2], 10.0)];
    assert!(compiled::run(&compiled, &different).is_err());
}

#[test]
fn a_call_says_whether_an_optional_input_is_there() {
    let [then, otherwise] = branches(
        inner().node("OptionalGetElement", &["o"], &["a"], &[]).output("a"),
        inner().node("Neg", &["x"], &["b"], &[]).output("b"),
    );
    let model = model(18)
        .with(11, held("o", 9, &[N(3)]))
        .input("x", FLOAT, &[N(3)])
        .node("OptionalHasElement", &["o"], &["h"], &[])
        .node("If", &["h"], &["y"], &[then, otherwise])
        .output("y");
    assert!(
        model.text().starts_with("fn @main(%o: f32[3], %o_is_there: bool[], %x: f32[3])"),
        "{}",
        model.text()
    );
    let compiled = compile(&model);
    for (is_there, expected) in [(true, [5.0, 6.0, 7.0]), (false, [-1.0, -2.0, -3.0])] {
        let is_there = Tensor::new(DType::BOOL, vec![], Bytes::new(vec![u8::from(is_there)]));
        let inputs = [floats(&[3], 5.0), is_there.expect("one byte"), floats(&[3], 1.0)];
        assert_eq!(elements(&compiled::run(&compiled, &inputs).expect("it runs")[0]), expected);
    }
}

/// A sequence that may be there is its rows, and whether it is; as an output too.
#[test]
fn an_optional_sequence_is_its_rows_and_whether_it_is_there() {
    let rows = Message::new().message(
        4,
        Message::new().message(1, Message::new().message(1, value_type(FLOAT, &[N(2)]))),
    );
    let optional = Message::new().message(9, Message::new().message(1, rows));
    let model = model(18)
        .with(11, Message::new().bytes(1, "o").message(2, optional))
        .node("Identity", &["o"], &["p"], &[])
        .node("OptionalGetElement", &["p"], &["s"], &[])
        .node("SequenceLength", &["s"], &["l"], &[])
        .output("p")
        .output("l");
    let text = model.text();
    assert!(text.starts_with("fn @main(%o: f32[o_length, 2], %o_is_there: bool[])"), "{text}");
    let compiled = compile(&model);
    for (count, is_there) in [(3, true), (0, false)] {
        let truth = Tensor::new(DType::BOOL, vec![], Bytes::new(vec![u8::from(is_there)]));
        let inputs = [floats(&[count, 2], 5.0), truth.expect("one byte")];
        let found = compiled::run(&compiled, &inputs).expect("it runs");
        assert_eq!(found[0].shape(), [count, 2]);
        assert_eq!(found[1].bytes()[..], [u8::from(is_there)]);
        assert_eq!(found[2].elements::<i64>().to_vec(), [count as i64]);
    }
}
