//! `DynamicQuantizeLSTM`: an LSTM whose weights are stored as integers on scales.
//!
//! ```text
//! W: int8[directions, input, 4 hidden]     y = LSTM(x, ((W - z) s)', ((R - z) s)', B)    s, z for each direction, or column
//! ```
//!
//! ONNX Runtime puts data and states on scales as well, of their own at each step, to multiply integers. Here they stay as they
//! are, and so results are those of the weights alone.

use tenon_plugin_api::rule::prelude::*;

use crate::steps::{absent, cast_to, extent_of, needed, reshape_to, sliced};

/// `DynamicQuantizeLSTM`.
#[rule(import.onnx, domain = "com.microsoft", key = "DynamicQuantizeLSTM")]
fn quantized_lstm(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let hidden = needed(node, "hidden_size")?;
    let (recurrent, weights) = (of_scale(node, 2, 10)?, of_scale(node, 1, 8)?);
    let [given, own] = [x, weights].map(|value| node.dims(value));
    let (given, own) = (given?, own?);
    let (&[steps, batch, _], &[ways, size, row]) = (given.as_slice(), own.as_slice()) else {
        return invalid("its input and its weights have not three dimensions");
    };
    if extent_of(node, row, "size of the state")? != 4 * hidden {
        return invalid(format!("its hidden_size is {hidden}, which is not that of its weights"));
    }

    let rows = node.cx().dim_mul(ways, row);
    let weights = node.call("transpose", &[weights], &[("axes", vec![0, 2, 1].into())])?;
    let weights = reshape_to(node, weights, &[rows, size])?;
    let mut product = node.apply("nn.dense", &[x, weights])?;
    if let Some(bias) = node.optional(3) {
        let of_data = sliced(node, bias, 1, [0, 4 * hidden])?;
        let of_state = sliced(node, bias, 1, [4 * hidden, 8 * hidden])?;
        let bias = node.apply("add", &[of_data, of_state])?;
        let bias = reshape_to(node, bias, &[rows])?;
        product = node.apply("add", &[product, bias])?;
    }
    let product = reshape_to(node, product, &[steps, batch, ways, row])?;

    let mut args = vec![product, recurrent];
    for index in [5, 6] {
        args.push(match node.optional(index) {
            Some(state) => state,
            None => {
                let hidden = node.cx().dim(hidden);
                let shape = node.shape(&[ways, batch, hidden])?;
                node.call("full", &[shape], &[("value", 0.0.into()), ("dtype", "f32".into())])?
            }
        });
    }
    let attrs = steps_of(node, &mut args)?;
    let results = node.call("nn.lstm_steps", &args, &attrs)?;
    node.items(results)
}

/// What the steps are told, with the arguments behind the states.
fn steps_of(
    node: &mut Node<'_>,
    args: &mut Vec<Value>,
) -> Result<Vec<(&'static str, AttrValue)>, Problem> {
    absent(node, 7, "gates that see the memory")?;
    for name in ["activation_alpha", "activation_beta"] {
        if node.floats(name)?.is_some_and(|given| !given.is_empty()) {
            return unsupported("activations with numbers of their own");
        }
    }
    let names: Vec<String> =
        node.texts("activations")?.iter().map(|name| name.to_lowercase()).collect();
    let known = ["sigmoid", "tanh", "relu", "softsign", "softplus"];
    if let Some(other) = names.iter().find(|name| !known.contains(&name.as_str())) {
        return unsupported(format!("the activation {other:?}"));
    }
    let is_coupled = node.flag("input_forget", false)?;
    let mut attrs = vec![
        ("direction", node.text("direction", "forward")?.into()),
        ("activations", names.join(" ").into()),
        ("input_forget", is_coupled.into()),
    ];
    if let Some(clip) = node.float("clip")?.filter(|&clip| clip > 0.0) {
        attrs.push(("clip", f64::from(clip).into()));
    }
    if let Some(lengths) = node.optional(4) {
        args.push(lengths);
        attrs.push(("lengths", true.into()));
    }
    Ok(attrs)
}

/// The weights of input `index` as numbers; input `scale` has their scales, and the one behind it their zero points.
fn of_scale(node: &mut Node<'_>, index: usize, scale: usize) -> Result<Value, Problem> {
    let weights = node.input(index)?;
    let spread = |node: &mut Node<'_>, value: Value| {
        let mut dims = node.dims(value)?;
        let one = node.cx().dim(1);
        match dims.len() {
            1 => dims.extend([one, one]),
            2 => dims.insert(1, one),
            count => return invalid(format!("its scale has {count} dimensions")),
        }
        let value = reshape_to(node, value, &dims)?;
        cast_to(node, value, DType::F32)
    };
    let mut numbers = cast_to(node, weights, DType::F32)?;
    if let Some(zero) = node.optional(scale + 1) {
        let zero = spread(node, zero)?;
        numbers = node.apply("subtract", &[numbers, zero])?;
    }
    let scale = node.input(scale)?;
    let scale = spread(node, scale)?;
    node.apply("multiply", &[numbers, scale])
}
