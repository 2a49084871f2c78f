//! Memory that is taken in a call, for sizes that nothing bounds.

use super::*;

/// Nothing bounds what the numbers in `%count` are, so memory for what comes of them is taken when they are known.
const OPEN: &str = "fn @main(%x: f32[n], %count: i64[2]) {
  %two: i64[2] = multiply(%count, const(i64[], 2))
  %s: shape[j, k] = bind_dims(%two) { ty = shape[j, k] }
  %e = expand_dims(%x) { axis = [0, 1] }
  %b = broadcast_to(%e, shape(j, k, n))
  %a = arange(shape(k)) { dtype = \"f32\" }
  %c = expand_dims(%a) { axis = [1] }
  %y = multiply(%b, %c)
  %z = negative(%y)
  %m = sum(%z) { axis = [0] }
  %p = reshape(%y, shape(j*k*n))
  %q = concatenate((%p, %x))
  ret (%m, %q, %x)
}";

fn two(first: i64, second: i64) -> Tensor {
    sizes(&[first, second])
}

#[test]
fn memory_is_taken_for_sizes_that_nothing_bounds() {
    let calls = [(3, 2, 2), (1, 7, 5), (4, 0, 3), (0, 2, 2), (5, 20, 30)];
    let calls = calls.map(|(n, j, k)| [floats(&[n]), two(j, k)]);
    check(OPEN, &calls.each_ref().map(|call| &call[..]));
    refuses(OPEN, &[floats(&[3]), two(-1, 2)], "no size");
    refuses(OPEN, &[floats(&[3]), two(1 << 40, 1 << 40)], "more memory than there can be");
    refuses(OPEN, &[floats(&[3]), two(1 << 20, 1 << 20)], "there is no memory");
}

/// A run that may not have as much memory says so, and the next one is like any other.
#[test]
fn memory_that_is_taken_is_bounded_and_reused() {
    let model = compiled::compile(&module(OPEN)).expect("it is compiled");
    let mut context = model.context().expect("there is memory");
    context.set_memory_limit(Some(100_000));
    let inputs = |j, k| {
        let tensors = [floats(&[8]), two(j, k)];
        tensors.map(|tensor| compiled::buffer(&tensor).expect("it fits"))
    };
    let mut run = |j, k| {
        let inputs = inputs(j, k);
        let inputs: Vec<_> = inputs.iter().map(|input| input.as_ref()).collect();
        let result = context.run(&inputs, None).map(|outputs| outputs[1].shape().to_vec());
        (result.map_err(|error| error.to_string()), context.most_memory())
    };
    let is_small = |(found, most): (Result<Vec<i64>, String>, u64)| {
        assert_eq!(found, Ok(vec![4 * 6 * 8 + 8]));
        assert!((1000..20_000).contains(&most), "{most}");
    };
    is_small(run(2, 3));
    let (refused, _) = run(100, 100);
    let error = refused.expect_err("it is too much");
    assert!(error.contains("its limit is 100000"), "{error}");
    is_small(run(2, 3));
}

/// What a branch takes is given back behind it, and what is chosen may be as large as nobody knew.
#[test]
fn branches_and_functions_take_memory() {
    let text = "fn @main(%x: f32[n], %count: i64[1], %c: bool[]) {
  %s: shape[k] = bind_dims(%count) { ty = shape[k] }
  %e = expand_dims(%x) { axis = [0] }
  %b = broadcast_to(%e, shape(k, n))
  %y = if %c {
    %t = negative(%b)
    %u = sum(%t) { axis = [1], keepdims = true }
    %v = add(%t, %u)
    ret %v
  } else {
    %w = @sorted(%b)
    ret %w
  }
  %g = if %c {
    %more: i64[1] = multiply(%count, %count)
    %s2: shape[j] = bind_dims(%more) { ty = shape[j] }
    %r = arange(shape(j)) { dtype = \"f32\" }
    %m = sum(%r)
    ret %m
  } else {
    %m = sum(%x)
    ret %m
  }
  ret (%y, %g)
}

private fn @sorted(%x: f32[a, b]) -> f32[a, b] {
  %t = topk(%x, shape(b))
  ret %t.0
}";
    let flag = |value: bool| Tensor::from_vec_as(DType::BOOL, vec![], vec![u8::from(value)]);
    let call = |n, k, c| [floats(&[n]), sizes(&[k]), flag(c)];
    let calls = [call(4, 3, true), call(4, 3, false), call(1, 0, true), call(9, 40, false)];
    check(text, &calls.each_ref().map(|call| &call[..]));
}

/// What the branches give has extents of its own in each, which are found behind the choice.
#[test]
fn branches_give_tensors_of_different_shapes() {
    let text = "fn @main(%x: f32[n, 3], %c: bool[], %d: bool[]) {
  %t = if %c {
    %t = nonzero(%x)
    %s: shape[k] = bind_dims(%t.1) { ty = shape[k], most = shape[3*n] }
    %p = dynamic_slice(%t.0, const(i64[2], [0, 0]), shape(2, k))
    %q = cast(%p) { dtype = \"f32\" }
    %e = shape_to_tensor(shape(2, k))
    ret (%q, %e)
  } else {
    %u = if %d {
      %e = shape_to_tensor(shape(n, 3))
      ret (%x, %e)
    } else {
      ret (const(f32[1, 2], [7, 8]), const(i64[2], [1, 2]))
    }
    %s: shape[a, b] = bind_dims(%u.1) { ty = shape[a, b] }
    %v = reshape(%u.0, shape(a, b))
    %w = negative(%v)
    %e = shape_to_tensor(shape(a, b))
    ret (%w, %e)
  }
  %s: shape[i, j] = bind_dims(%t.1) { ty = shape[i, j] }
  %y = reshape(%t.0, shape(i, j))
  %z = add(%y, const(f32[], 1))
  ret (%y, %z)
}";
    let flag = |value: bool| Tensor::from_vec_as(DType::BOOL, vec![], vec![u8::from(value)]);
    for (n, c, d) in [(4, true, true), (4, false, true), (4, false, false), (0, true, false)] {
        check(text, &[&[floats(&[n, 3]), flag(c), flag(d)]]);
    }
}

/// A tensor that becomes longer from trip to trip, and rows of which nobody knows how many there are.
const LONGER: &str = "fn @main(%x: f32[n], %count: i64[], %stop: i64[]) {
  %e = shape_to_tensor(shape(n))
  %body = fn (%i: i64[], %v: f32[*], %dims: i64[1], %trips: i64[]) -> (bool[], f32[*], i64[1], i64[], f32[n]) {
    %s: shape[k] = bind_dims(%dims) { ty = shape[k] }
    %w = reshape(%v, shape(k))
    %l = concatenate((%w, %x))
    %sum = sum(%w)
    %row = add(%x, %sum)
    %m = shape_to_tensor(shape(k + n))
    %next = add(%i, const(i64[], 1))
    %go = not_equal(%next, %stop)
    ret (%go, %l, %m, %next, %row)
  }
  %r = loop(%body, %count, const(bool[], true), (%x, %e, const(i64[], 0))) { out = (f32[*], i64[1], i64[], f32[*]) }
  %s2: shape[k2] = bind_dims(%r.1) { ty = shape[k2] }
  %y = reshape(%r.0, shape(k2))
  %t1 = reshape(%r.2, shape(1))
  %s3: shape[t] = bind_dims(%t1) { ty = shape[t] }
  %rows = reshape(%r.3, shape(t, n))
  ret (%y, %rows)
}";

#[test]
fn what_loops_carry_and_give_may_become_longer() {
    let number = |value: i64| Tensor::from_vec(vec![], vec![value]);
    let call = |n, count, stop| [floats(&[n]), number(count), number(stop)];
    let calls = [call(3, 4, -1), call(3, 0, -1), call(2, 100, 21), call(0, 5, -1), call(1, -3, 2)];
    check(LONGER, &calls.each_ref().map(|call| &call[..]));
}

/// A call that may not have as much says so, whichever memory it wanted, and leaves nothing behind.
#[test]
fn loops_end_at_the_limit() {
    let model = compiled::compile(&module(LONGER)).expect("it is compiled");
    let mut context = model.context().expect("there is memory");
    let number = |value: i64| Tensor::from_vec(vec![], vec![value]);
    for (limit, fits) in [(None, true), (Some(20_000), false), (Some(1_000_000), true)] {
        context.set_memory_limit(limit);
        let inputs = [floats(&[10]), number(200), number(-1)];
        let inputs = inputs.map(|tensor| compiled::buffer(&tensor).expect("it fits"));
        let inputs = inputs.each_ref().map(|input| input.as_ref());
        let found = context.run(&inputs, None).map(|outputs| outputs[1].shape().to_vec());
        match fits {
            true => assert_eq!(found.expect("it fits"), [200, 10]),
            false => assert!(found.expect_err("it is too much").to_string().contains("limit")),
        }
    }
}
