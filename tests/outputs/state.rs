//! Decoders whose caches are updated in place, or become longer in place, and the tokens that ONNX Runtime generates with them: the
//! graph that PyTorch exports (`tests/models/make_decoder.py`), and one with caches that grow (`make_growing_decoder.py`).

use std::path::Path;

use serde::Deserialize;
use tenon_compiler::executable::LinkForm;
use tenon_compiler::io::Outputs;
use tenon_compiler::runtime::dlpack::{DataType, TensorBuffer};
use tenon_compiler::runtime::functions::Library;
use tenon_compiler::runtime::model::Model;
use tenon_compiler::runtime::signature::Extent;
use tenon_compiler::session::{Dims, Installation, Options, Session};
use tenon_compiler::target::Target;

use crate::house::profile;

#[derive(Deserialize)]
struct Golden {
    prompt: Vec<i64>,
    tokens: Vec<i64>,
}

fn numbers(values: &[i64], shape: &[i64]) -> TensorBuffer {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    TensorBuffer::from_bytes(&bytes, shape, DataType::I64).unwrap()
}

fn largest(logits: &TensorBuffer) -> i64 {
    let logits = logits.bytes().as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes));
    let largest = logits.enumerate().max_by(|(_, a), (_, b)| a.total_cmp(b));
    largest.unwrap().0 as i64
}

/// The caches, which hold what must never be read.
fn caches(model: &Model) -> Vec<TensorBuffer> {
    let cache = |pair: &[usize; 2]| {
        let spec = &model.inputs()[pair[0]];
        let shape: Vec<i64> = spec.static_shape().expect("a cache has a bound");
        let mut cache = TensorBuffer::zeros(&shape, DataType::F32).unwrap();
        cache.bytes_mut().as_chunks_mut().0.fill(1e30f32.to_le_bytes());
        cache
    };
    model.signature().in_place.iter().map(cache).collect()
}

/// A decoder of `tests/models` as a library, and what ONNX Runtime generates with it.
fn compiled(name: &str, folder: &Path) -> (Model, Golden) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let golden = std::fs::read(root.join(format!("tests/models/goldens/{name}.json"))).unwrap();
    let golden: Golden = serde_json::from_slice(&golden).unwrap();
    assert_eq!(golden.tokens.len(), 200);
    let registry = root.join("registry.toml");
    let session = Session::open(&Installation::at(profile().join("tenon")), &[registry]).unwrap();
    let model = root.join(format!("tests/models/{name}.onnx"));
    let model = session.read(&model, &Dims::new()).unwrap();
    let target = Target::native().unwrap();
    let made = session.compile(&model, &target, &Options::default()).unwrap();
    let path = folder.join(format!("{name}.so"));
    made.export(&path, LinkForm::Library, None, Outputs::default()).unwrap();
    (Library::open(&path).unwrap().main().unwrap(), golden)
}

#[test]
fn a_decoder_generates_what_onnx_runtime_does_and_copies_no_cache() {
    let folder = tempfile::tempdir().unwrap();
    let (decoder, Golden { prompt, tokens }) = compiled("decoder", folder.path());

    // Keys and values of both layers; what is open is how many tokens a call has.
    assert_eq!(decoder.signature().in_place, [[2, 1], [3, 2], [4, 3], [5, 4]]);
    assert_eq!(decoder.inputs()[1].shape, [Extent::Symbolic("n".to_owned())]);
    let mut state = caches(&decoder);
    let places: Vec<*const u8> = state.iter().map(|cache| cache.bytes().as_ptr()).collect();
    let (mut given, mut generated) = (prompt, Vec::<i64>::new());
    let mut context = decoder.context().unwrap();
    let mut done = 0;
    while generated.len() < tokens.len() {
        let count = given.len() as i64;
        let inputs =
            [numbers(&given, &[1, count]), numbers(&Vec::from_iter(done..done + count), &[count])];
        let inputs = inputs.each_ref().map(TensorBuffer::as_ref);
        let outputs = context.run_in_place(&inputs, &mut state, None).unwrap();
        given = vec![largest(&outputs[0])];
        generated.extend(&given);
        done += count;
    }
    assert_eq!(generated, tokens);
    assert!(state.iter().map(|cache| cache.bytes().as_ptr()).eq(places));
    // What a token needs besides the caches has no room for one of them.
    let mut context = decoder.context().unwrap();
    let inputs = [numbers(&[1], &[1, 1]), numbers(&[0], &[1])];
    context.run_in_place(&inputs.each_ref().map(TensorBuffer::as_ref), &mut state, None).unwrap();
    let smallest = state.iter().map(|cache| cache.bytes().len()).min().unwrap();
    assert!(context.workspace_size() < smallest, "{}", context.workspace_size());
    // Rows that no call has written are as they were.
    let rows = state[1].bytes().as_chunks().0;
    assert_eq!(rows.last(), Some(&1e30f32.to_le_bytes()));
}

#[test]
fn caches_that_concat_makes_longer_are_not_copied() {
    let folder = tempfile::tempdir().unwrap();
    let (decoder, Golden { prompt, tokens }) = compiled("growing_decoder", folder.path());
    let signature = decoder.signature();
    assert_eq!(signature.in_place, [[2, 1], [3, 2], [4, 3], [5, 4]]);
    assert_eq!(signature.grows, [[2, 1, 2], [3, 2, 2], [4, 3, 2], [5, 4, 2]]);
    let most = (prompt.len() + tokens.len()) as i64;
    let cache = || {
        let mut cache = TensorBuffer::with_room(&[1, 2, 0, 16], 2, most, DataType::F32).unwrap();
        cache.bytes_mut().as_chunks_mut().0.fill(1e30f32.to_le_bytes());
        cache
    };
    let mut state: Vec<TensorBuffer> = (0..4).map(|_| cache()).collect();
    let places: Vec<*const u8> = state.iter().map(|cache| cache.bytes().as_ptr()).collect();
    let (mut given, mut generated) = (prompt, Vec::<i64>::new());
    let mut context = decoder.context().unwrap();
    let mut done = 0;
    // The same with buffers of their own, which are copied.
    let mut copied: Vec<TensorBuffer> =
        (0..4).map(|_| TensorBuffer::zeros(&[1, 2, 0, 16], DataType::F32).unwrap()).collect();
    let mut apart = decoder.context().unwrap();
    while generated.len() < tokens.len() {
        let count = given.len() as i64;
        let places = Vec::from_iter(done..done + count);
        let inputs = [numbers(&given, &[1, count]), numbers(&places, &[1, count])];
        let inputs = inputs.each_ref().map(TensorBuffer::as_ref);
        if done < 20 {
            let all: Vec<_> =
                inputs.iter().copied().chain(copied.iter().map(TensorBuffer::as_ref)).collect();
            apart.run(&all, None).unwrap();
            copied = apart.take_outputs().unwrap();
        }
        let outputs = context.run_in_place(&inputs, &mut state, None).unwrap();
        given = vec![largest(&outputs[0])];
        if done < 20 {
            assert_eq!(largest(&copied.remove(0)), given[0]);
            let same =
                |(one, other): (&TensorBuffer, &TensorBuffer)| one.to_vec() == other.to_vec();
            assert!(state.iter().zip(&copied).all(same));
        }
        generated.extend(&given);
        done += count;
    }
    assert_eq!(generated, tokens);
    assert!(state.iter().map(|cache| cache.bytes().as_ptr()).eq(places));
    assert_eq!(state[0].shape(), [1, 2, most - 1, 16]);
    // What a token needs besides the caches has no room for one of them.
    let mut context = decoder.context().unwrap();
    let inputs = [numbers(&[1], &[1, 1]), numbers(&[most - 1], &[1, 1])];
    let inputs = inputs.each_ref().map(TensorBuffer::as_ref);
    context.run_in_place(&inputs, &mut state, None).unwrap();
    let smallest = state.iter().map(|cache| cache.bytes().len()).min().unwrap();
    assert!(context.workspace_size() < smallest, "{}", context.workspace_size());
    // Nothing is left of the room, and the caches stay what they were.
    let error = context.run_in_place(&inputs, &mut state, None).unwrap_err().to_string();
    assert!(error.contains("room for 205 along axis 2"), "{error}");
    assert_eq!(state[3].shape(), [1, 2, most, 16]);
}

/// Two heads of keys, each read by two heads of queries and by the branches of a choice.
const REPEATED: &str =
    "fn @main(%q: f32[1, 4, 1, 8], %k: f32[1, 2, 1, 8], %past: f32[1, 2, p, 8], %c: bool[]) {
  %keys = concatenate((%past, %k)) { axis = 2 }
  %u = expand_dims(%keys) { axis = [2] }
  %e = broadcast_to(%u, shape(1, 2, 2, p + 1, 8))
  %r = reshape(%e, shape(1, 4, p + 1, 8))
  %t = transpose(%r) { axes = [0, 1, 3, 2] }
  %s = matmul(%q, %t)
  %w = nn.softmax(%s)
  %y = matmul(%w, %r)
  %z = if %c {
    %a = sum(%keys) { axis = [2] }
    ret %a
  } else {
    %b = mean(%keys) { axis = [2] }
    ret %b
  }
  ret (%y, %z, %keys)
}";

/// With an open number of tokens, and with one that is known.
#[test]
fn caches_of_repeated_heads_become_longer_where_they_are() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let registry = root.join("registry.toml");
    let session = Session::open(&Installation::at(profile().join("tenon")), &[registry]).unwrap();
    let known = REPEATED.replace("p + 1", "17").replace(", p,", ", 16,");
    for (text, lengths) in [(REPEATED, &[0, 5, 6, 7][..]), (&known, &[16])] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("repeated.ir");
        std::fs::write(&path, text).unwrap();
        let model = session.read(&path, &Dims::new()).unwrap();
        let target = Target::native().unwrap();
        let made = session.compile(&model, &target, &Options::default()).unwrap();
        let path = folder.path().join("repeated.so");
        made.export(&path, LinkForm::Library, None, Outputs::default()).unwrap();
        let model = Library::open(&path).unwrap().main().unwrap();
        assert_eq!(model.signature().grows, [[2, 2, 2]]);
        for &length in lengths {
            for flag in [0, 1] {
                becomes_longer(&model, length, flag);
            }
        }
    }
}

/// Runs it with buffers of their own, and in a buffer with room, in which nothing moves.
fn becomes_longer(model: &Model, length: i64, flag: u8) {
    let floats = |shape: &[i64], seed: usize| {
        let count = shape.iter().product::<i64>() as usize;
        let number = |at: usize| (((at * 37 + seed) % 23) as f32 - 11.0) / 8.0;
        let bytes: Vec<u8> = (0..count).flat_map(|at| number(at).to_le_bytes()).collect();
        bytes
    };
    let tensor = |shape: &[i64], seed| {
        TensorBuffer::from_bytes(&floats(shape, seed), shape, DataType::F32).unwrap()
    };
    let (q, k) = (tensor(&[1, 4, 1, 8], 1), tensor(&[1, 2, 1, 8], 2));
    let past_shape = [1, 2, length, 8];
    let past = tensor(&past_shape, 3);
    let c = TensorBuffer::from_bytes(&[flag], &[], DataType::new(DataType::BOOL, 8)).unwrap();
    let all = [q.as_ref(), k.as_ref(), past.as_ref(), c.as_ref()];
    let expected = model.run(&all, None).unwrap();
    let bytes = floats(&past_shape, 3);
    let room = TensorBuffer::from_bytes_with_room(&bytes, &past_shape, 2, 32, DataType::F32);
    let mut state = [room.unwrap()];
    let place = state[0].bytes().as_ptr();
    let mut context = model.context().unwrap();
    let given = [q.as_ref(), k.as_ref(), c.as_ref()];
    let found = context.run_in_place(&given, &mut state, None).unwrap();
    assert_eq!((found[0].bytes(), found[1].bytes()), (expected[0].bytes(), expected[1].bytes()));
    assert_eq!((state[0].bytes().as_ptr(), state[0].shape()), (place, &[1, 2, length + 1, 8][..]));
    assert_eq!(state[0].to_vec().unwrap(), expected[2].bytes());
}
