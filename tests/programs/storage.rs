//! Types that are stored and not computed with: all codes of each, and numbers between and beyond them.

use tenon_compiler::border::program_of_call;
use tenon_compiler::eval::{Evaluator, Tensor, Value};
use tenon_compiler::ir::{AttrValue, Build, Bytes, Context, Cx, DType, Module, Transaction, Type};
use tenon_compiler::testing::{Random, cx};

/// All types that are stored alone.
fn stored() -> impl Iterator<Item = DType> {
    DType::all().filter(|dtype| dtype.is_storage())
}

/// The bytes that the program of a call of an operator writes, and those that the operator's evaluation gives.
fn both(
    cx: &Cx,
    op: &str,
    x: &Tensor,
    shape: Option<&[i64]>,
    attrs: &[(&str, AttrValue)],
) -> [Vec<u8>; 2] {
    let attrs = cx.attrs(attrs);
    let op = cx.operators().get(op).expect("the operator exists");
    let dims: Option<Vec<_>> = shape.map(|shape| shape.iter().map(|&dim| cx.dim(dim)).collect());
    let mut types: Vec<Type> = vec![x.ty(cx)];
    types.extend(dims.iter().map(|dims| cx.shape_type(Some(dims))));
    let out = op.infer(cx, &types, attrs).expect("it has a type");
    let (dtype, extents) = cx.terms().static_tensor(out).expect("it is static");
    let extents = extents.iter().map(|&extent| extent as usize).collect();
    let mut args = vec![x.clone()];
    args.extend(shape.map(|shape| Tensor::from_vec(vec![shape.len()], shape.to_vec())));
    let evaluated = op.evaluation().expect("it has an evaluation");
    let evaluated =
        evaluated.evaluate(cx, &args, attrs, &[(dtype, extents)]).expect("it has a value");

    let program = program_of_call(cx, &op, &types, attrs, out, tenon_compiler::ir::Attrs::NONE);
    let mut module = Module::new(cx.clone());
    module.insert(cx.symbol("program"), program.expect("it has a program"));
    let mut tx = Transaction::new(cx.clone());
    let var = tx.var("x", Some(x.ty(cx)));
    let callee = tx.global("program");
    let of = cx.attrs(&[("out", out.into())]);
    let tir = tx.op("call_tir");
    let call = tx.call(tir, &[callee, var], of, Some(out));
    let root = tx.function(&[var], call, Some(out), tenon_compiler::ir::Attrs::NONE);
    tx.set_root(root);
    module.insert(cx.symbol("main"), tx.finish().expect("it is a function"));
    let result = Evaluator::new(&module).call("main", vec![Value::Tensor(x.clone())]);
    let result = result.expect("it runs").to_tensor().expect("it gives a tensor");
    [result.bytes().to_vec(), evaluated[0].bytes().to_vec()]
}

/// Bytes with every code of a type in each place of a byte, and one element less than they hold.
#[test]
fn every_code_is_decoded() {
    let cx = cx();
    for dtype in stored() {
        let bytes: Vec<u8> = (0..=255).collect();
        let x = Tensor::new(DType::U8, vec![256], Bytes::new(bytes)).unwrap();
        let count = 256 * 8 / i64::from(dtype.bits());
        for shape in [&[count][..], &[count / 4, 2, 2]] {
            let attrs = [("dtype", dtype.to_string().into())];
            let [program, evaluated] = both(&cx, "storage.decode", &x, Some(shape), &attrs);
            let numbers = |bytes: &[u8]| -> Vec<String> {
                let text = |four: &[u8]| match f32::from_le_bytes(four.try_into().unwrap()) {
                    x if x.is_nan() => "nan".to_owned(),
                    x => format!("{x:?}"),
                };
                bytes.chunks(4).map(text).collect()
            };
            match dtype.is_float() {
                true => assert_eq!(numbers(&program), numbers(&evaluated), "{dtype}"),
                false => assert_eq!(program, evaluated, "{dtype}"),
            }
        }
    }
}

#[test]
fn numbers_are_encoded_in_all_ways() {
    let cx = cx();
    let mut random = Random::new(3);
    let mut numbers = vec![0.0f32, -0.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
    numbers.extend([f32::MAX, f32::MIN, f32::MIN_POSITIVE, 1e-45, -1e-45, 464.0, 465.0, 248.0]);
    numbers.extend([61440.0, 61439.0, 0.25, 0.75, 5.0, 2.5, -2.5, 7.5, -8.5, 3.5, -0.5]);
    for _ in 0..997 {
        let scale = 2f32.powi(random.below(60) as i32 - 40);
        let sign = if random.below(2) == 0 { 1.0 } else { -1.0 };
        numbers.push(sign * scale * (1.0 + random.below(1 << 12) as f32 / (1 << 12) as f32));
    }
    let x = Tensor::from_vec(vec![numbers.len()], numbers);
    for dtype in stored() {
        for saturate in [true, false] {
            for rounding in ["nearest", "up", "down"] {
                let attrs = [
                    ("dtype", dtype.to_string().into()),
                    ("saturate", saturate.into()),
                    ("rounding", rounding.into()),
                ];
                let [program, evaluated] = both(&cx, "storage.encode", &x, None, &attrs);
                assert_eq!(program, evaluated, "{dtype} {saturate} {rounding}");
            }
        }
    }
}

#[test]
fn integers_are_taken_by_their_lowest_bits() {
    let cx = cx();
    let x = Tensor::from_vec(vec![3, 7], (-10..11).collect::<Vec<i32>>());
    for dtype in stored() {
        let attrs = [("dtype", dtype.to_string().into())];
        let [program, evaluated] = both(&cx, "storage.encode", &x, None, &attrs);
        assert_eq!(program, evaluated, "{dtype}");
    }
}
