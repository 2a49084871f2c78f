//! Steps of training: new values of parameters from their gradients, and what is remembered of these.

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::{cast_to, not_among, scaled, shifted};

/// `Adam` (Kingma and Ba 2015).
#[rule(import.onnx, domain = "ai.onnx.preview.training", key = "Adam", since = 1)]
fn adam(node: &mut Node<'_>) -> Outputs {
    let [alpha, beta] = [node.float_or("alpha", 0.9)?, node.float_or("beta", 0.999)?];
    let epsilon = node.float_or("epsilon", 0.0)?;
    let after = node.float_or("norm_coefficient_post", 0.0)?;
    let (rate, count) = (node.input(0)?, node.input(1)?);
    // The rate as it would be without what averages miss at the start.
    let steps = cast_to(node, count, DType::F64)?;
    let mut missing = |average: f64| {
        let average = node.scalar(DType::F64, average)?;
        let power = node.apply("power", &[average, steps])?;
        let negative = scaled(node, power, -1.0)?;
        shifted(node, negative, 1.0)
    };
    let [of_alpha, of_beta] = [missing(alpha)?, missing(beta)?];
    let root = node.apply("sqrt", &[of_beta])?;
    let factor = node.apply("divide", &[root, of_alpha])?;
    let wide = cast_to(node, rate, DType::F64)?;
    let adjusted = node.apply("multiply", &[wide, factor])?;
    let zero = node.scalar_like(count, 0.0)?;
    let has_begun = node.apply("greater", &[count, zero])?;
    let adjusted = node.apply("where", &[has_begun, adjusted, wide])?;

    each(node, 4, |node, [x, gradient, mean, square]| {
        let gradient = regularized(node, x, gradient)?;
        let mean = average(node, alpha, mean, gradient)?;
        let own = node.apply("multiply", &[gradient, gradient])?;
        let square = average(node, beta, square, own)?;
        let root = node.apply("sqrt", &[square])?;
        let root = shifted(node, root, epsilon)?;
        let dtype = node.dtype(x)?;
        let rate = cast_to(node, adjusted, dtype)?;
        let step = node.apply("multiply", &[rate, mean])?;
        let step = node.apply("divide", &[step, root])?;
        let x = node.apply("subtract", &[x, step])?;
        Ok(vec![scaled(node, x, 1.0 - after)?, mean, square])
    })
}

/// `Adagrad` (Duchi, Hazan and Singer 2011).
#[rule(import.onnx, domain = "ai.onnx.preview.training", key = "Adagrad", since = 1)]
fn adagrad(node: &mut Node<'_>) -> Outputs {
    let epsilon = node.float_or("epsilon", 0.0)?;
    let decay = node.float_or("decay_factor", 0.0)?;
    let (rate, count) = (node.input(0)?, node.input(1)?);
    let dtype = node.dtype(rate)?;
    let count = cast_to(node, count, dtype)?;
    let decay = scaled(node, count, decay)?;
    let decay = shifted(node, decay, 1.0)?;
    let rate = node.apply("divide", &[rate, decay])?;
    each(node, 3, |node, [x, gradient, square, _]| {
        let gradient = regularized(node, x, gradient)?;
        let own = node.apply("multiply", &[gradient, gradient])?;
        let square = node.apply("add", &[square, own])?;
        let root = node.apply("sqrt", &[square])?;
        let root = shifted(node, root, epsilon)?;
        let dtype = node.dtype(x)?;
        let rate = cast_to(node, rate, dtype)?;
        let step = node.apply("multiply", &[rate, gradient])?;
        let step = node.apply("divide", &[step, root])?;
        Ok(vec![node.apply("subtract", &[x, step])?, square])
    })
}

/// `Momentum`, standard and Nesterov's (1983).
#[rule(import.onnx, domain = "ai.onnx.preview.training", key = "Momentum", since = 1)]
fn momentum(node: &mut Node<'_>) -> Outputs {
    let Some(alpha) = node.float("alpha")?.map(f64::from) else {
        return invalid("its attribute `alpha` is missing");
    };
    let beta = node.float_or("beta", 1.0)?;
    let is_nesterov = match node.text("mode", "standard")?.as_str() {
        "standard" => false,
        "nesterov" => true,
        other => return not_among("mode", other, &["standard", "nesterov"]),
    };
    let (rate, count) = (node.input(0)?, node.input(1)?);
    let zero = node.scalar_like(count, 0.0)?;
    let has_begun = node.apply("greater", &[count, zero])?;
    let [beta, one] = [node.scalar_like(rate, beta)?, node.scalar_like(rate, 1.0)?];
    let beta = node.apply("where", &[has_begun, beta, one])?;
    each(node, 3, |node, [x, gradient, held, _]| {
        let dtype = node.dtype(x)?;
        let gradient = regularized(node, x, gradient)?;
        let beta = cast_to(node, beta, dtype)?;
        let own = node.apply("multiply", &[beta, gradient])?;
        let held = scaled(node, held, alpha)?;
        let held = node.apply("add", &[held, own])?;
        let direction = match is_nesterov {
            true => {
                let further = scaled(node, held, alpha)?;
                node.apply("add", &[gradient, further])?
            }
            false => held,
        };
        let rate = cast_to(node, rate, dtype)?;
        let step = node.apply("multiply", &[rate, direction])?;
        Ok(vec![node.apply("subtract", &[x, step])?, held])
    })
}

/// The gradient with that of the penalty on large parameters.
fn regularized(node: &mut Node<'_>, x: Value, gradient: Value) -> Result<Value, Problem> {
    let penalty = node.float_or("norm_coefficient", 0.0)?;
    let of_penalty = scaled(node, x, penalty)?;
    node.apply("add", &[of_penalty, gradient])
}

/// `old * by + new * (1 - by)`.
fn average(node: &mut Node<'_>, by: f64, old: Value, new: Value) -> Result<Value, Problem> {
    let old = scaled(node, old, by)?;
    let new = scaled(node, new, 1.0 - by)?;
    node.apply("add", &[old, new])
}

/// The outputs for each parameter, of which the inputs say all values, then all gradients, and so on; so do the outputs.
fn each(
    node: &mut Node<'_>,
    kinds: usize,
    of: impl Fn(&mut Node<'_>, [Value; 4]) -> Outputs,
) -> Outputs {
    let inputs = node.all_inputs()?;
    let Some(inputs) = inputs.get(2..).filter(|inputs| inputs.len() % kinds == 0) else {
        return invalid(format!("its inputs are not two and {kinds} for each parameter"));
    };
    let count = inputs.len() / kinds;
    let mut outputs: Vec<Vec<Value>> = vec![Vec::new(); kinds - 1];
    for number in 0..count {
        let input = |kind: usize| inputs[number + kind.min(kinds - 1) * count];
        let made = of(node, std::array::from_fn(input))?;
        outputs.iter_mut().zip(made).for_each(|(outputs, made)| outputs.push(made));
    }
    Ok(outputs.concat())
}
