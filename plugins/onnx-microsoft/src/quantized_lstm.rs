//! `DynamicQuantizeLSTM`: an LSTM of integers, whose data and states are quantized as it runs.
//!
//! ```text
//! W: int8[directions, input, 4 hidden]     x' = (quantized(x) - z_x) ((W - z_w))' s_x s_w + Wb + Rb      one product for all steps
//! R: int8[directions, hidden, 4 hidden]    y = nn.quantized_lstm_steps(x', packed(R), h, c, s_r, sum(R), z_r)
//! ```

use tenon_plugin_api::rule::prelude::*;

use crate::products::{Quantized, quantized};
use crate::steps::{absent, cast_to, extent_of, needed, places, reshape_to, sliced};

/// Columns of a vector of sums of the packed weight, and rows that lie together.
const LANES: i64 = 16;
const DEPTH: i64 = 4;
/// Vectors of a tile, at least where there are as many, and at most.
const TILE: [i64; 2] = [8, 16];

/// `DynamicQuantizeLSTM`.
#[rule(import.onnx, domain = "com.microsoft", key = "DynamicQuantizeLSTM")]
fn quantized_lstm(node: &mut Node<'_>) -> Outputs {
    let (x, hidden) = (node.input(0)?, needed(node, "hidden_size")?);
    let of_state = Weight::of(node, 2, 10, hidden)?;
    let of_data = Weight::of(node, 1, 8, hidden)?;
    let given = node.dims(x)?;
    let &[steps, batch, _] = given.as_slice() else {
        return invalid("its input has not three dimensions");
    };
    let seen = seen(node, x, [steps, batch])?;
    let mut product = of_data.times(node, seen)?;
    if let Some(bias) = node.optional(3) {
        let of_data = sliced(node, bias, 1, [0, 4 * hidden])?;
        let of_state = sliced(node, bias, 1, [4 * hidden, 8 * hidden])?;
        let bias = node.apply("add", &[of_data, of_state])?;
        let bias = in_one_row(node, bias)?;
        product = node.apply("add", &[product, bias])?;
    }
    let [ways, _, row] = of_state.dims;
    let product = reshape_to(node, product, &[steps, batch, ways, row])?;

    let packed = of_state.packed(node, hidden)?;
    let mut args = vec![product, packed];
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
    let sums = [("axis", vec![1].into()), ("keepdims", false.into())];
    let bytes = cast_to(node, of_state.bytes, DType::I32)?;
    let sums = node.call("sum", &[bytes], &sums)?;
    args.extend([of_state.scale, sums, of_state.zero]);
    let attrs = steps_of(node, &mut args)?;
    let results = node.call("nn.quantized_lstm_steps", &args, &attrs)?;
    node.items(results)
}

/// The data with zeros behind the end of each sequence: what stands there is no reason for another scale.
fn seen(node: &mut Node<'_>, x: Value, [steps, batch]: [Dim; 2]) -> Result<Value, Problem> {
    let Some(lengths) = node.optional(4) else { return Ok(x) };
    let one = node.cx().dim(1);
    let step = places(node, steps)?;
    let step = reshape_to(node, step, &[steps, one, one])?;
    let lengths = cast_to(node, lengths, DType::I64)?;
    let lengths = reshape_to(node, lengths, &[batch, one])?;
    let is_seen = node.apply("less", &[step, lengths])?;
    let zero = node.scalar_like(x, 0.0)?;
    node.apply("where", &[is_seen, x, zero])
}

/// A weight of bytes: `(bytes - zero) * scale`.
struct Weight {
    /// `i8[directions, size, 4 hidden]`
    bytes: Value,
    /// `[directions, 4 hidden]`, f32 and i32
    scale: Value,
    zero: Value,
    dims: [Dim; 3],
}

impl Weight {
    /// That of input `index`; input `scale` has its scales, and the one behind it its zero points.
    fn of(node: &mut Node<'_>, index: usize, scale: usize, hidden: i64) -> Result<Self, Problem> {
        let mut bytes = node.input(index)?;
        let &[ways, size, row] = node.dims(bytes)?.as_slice() else {
            return invalid("its weights have not three dimensions");
        };
        if extent_of(node, row, "size of the state")? != 4 * hidden {
            return invalid(format!(
                "its hidden_size is {hidden}, which is not that of its weights"
            ));
        }
        let has_sign = node.dtype(bytes)? != DType::U8;
        let given = node.input(scale)?;
        let scale_of_all = spread(node, given, [ways, row])?;
        let mut zero = match node.optional(scale + 1) {
            Some(zero) => {
                let zero = cast_to(node, zero, DType::I32)?;
                spread(node, zero, [ways, row])?
            }
            None => {
                let shape = node.shape(&[ways, row])?;
                node.call("full", &[shape], &[("value", 0.0.into()), ("dtype", "i32".into())])?
            }
        };
        // Bytes without a sign are moved by 128, and so are their zero points.
        if !has_sign {
            let wide = cast_to(node, bytes, DType::I32)?;
            let half = node.scalar_like(wide, 128.0)?;
            let moved = node.apply("subtract", &[wide, half])?;
            bytes = cast_to(node, moved, DType::I8)?;
            zero = node.apply("subtract", &[zero, half])?;
        }
        Ok(Self { bytes, scale: scale_of_all, zero, dims: [ways, size, row] })
    }

    /// Quantized data times the weights of all directions, `[steps * batch, directions * 4 hidden]`.
    fn times(&self, node: &mut Node<'_>, x: Value) -> Result<Value, Problem> {
        let Quantized { value, scale, zero } = quantized(node, x)?;
        // Steps and sequences are rows of one matrix: of either there may be few.
        let [outer @ .., depth] = &node.dims(x)?[..] else {
            return invalid("its input is a number");
        };
        let rows = node.cx().dim_product(outer);
        let x = reshape_to(node, value, &[rows, *depth])?;
        let x = cast_to(node, x, DType::I32)?;
        let zero = cast_to(node, zero, DType::I32)?;
        let x = node.apply("subtract", &[x, zero])?;
        let [ways, size, row] = self.dims;
        let columns = node.cx().dim_mul(ways, row);
        let bytes = node.call("transpose", &[self.bytes], &[("axes", vec![1, 0, 2].into())])?;
        let bytes = reshape_to(node, bytes, &[size, columns])?;
        let weight = cast_to(node, bytes, DType::I32)?;
        let zero = in_one_row(node, self.zero)?;
        let weight = node.apply("subtract", &[weight, zero])?;
        let product = node.apply("matmul", &[x, weight])?;
        let product = cast_to(node, product, DType::F32)?;
        let of_columns = in_one_row(node, self.scale)?;
        let scale = node.apply("multiply", &[scale, of_columns])?;
        node.apply("multiply", &[product, scale])
    }

    /// The bytes as the steps read them: `[directions, tiles, hidden / 4, columns of a tile, 4]`, filled up with zeros.
    fn packed(&self, node: &mut Node<'_>, hidden: i64) -> Result<Value, Problem> {
        let parts = |extent: i64, part: i64| (extent + part - 1) / part;
        let (quads, vectors) = (parts(hidden, DEPTH), parts(4 * hidden, LANES));
        let fewest = TILE[0].min(vectors);
        // Of tiles that take as few vectors the widest.
        let tile = (fewest..=TILE[1].min(vectors)).rev();
        let tile = tile.min_by_key(|&tile| parts(vectors, tile) * tile).unwrap_or(fewest);
        let (tiles, width) = (parts(vectors, tile), tile * LANES);
        let more = [quads * DEPTH - hidden, tiles * width - 4 * hidden];
        let padding = [("pad_width", vec![0, 0, 0, more[0], 0, more[1]].into())];
        let bytes = node.call("nn.pad", &[self.bytes], &padding)?;
        let [quads, depth, tiles, width] =
            [quads, DEPTH, tiles, width].map(|extent| node.cx().dim(extent));
        let parts = [self.dims[0], quads, depth, tiles, width];
        let bytes = reshape_to(node, bytes, &parts)?;
        node.call("transpose", &[bytes], &[("axes", vec![0, 3, 1, 4, 2].into())])
    }
}

/// A number for each column of each direction, in one row.
fn in_one_row(node: &mut Node<'_>, value: Value) -> Result<Value, Problem> {
    let [ways, row] = node.dims(value)?[..] else {
        return invalid("its bias has not two dimensions");
    };
    let columns = node.cx().dim_mul(ways, row);
    reshape_to(node, value, &[columns])
}

/// What there is one of for each direction, or for each of its columns, for each column.
fn spread(node: &mut Node<'_>, mut value: Value, shape: [Dim; 2]) -> Result<Value, Problem> {
    let dims = node.dims(value)?;
    if let &[ways] = dims.as_slice() {
        let one = node.cx().dim(1);
        value = reshape_to(node, value, &[ways, one])?;
    } else if dims.len() != 2 {
        return invalid(format!("its scale has {} dimensions", dims.len()));
    }
    let shape = node.shape(&shape)?;
    node.apply("broadcast_to", &[value, shape])
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
