//! Recurrent networks of ONNX: one product for all steps, then the steps.
//!
//! ```ir
//! LSTM(x, W, R, B)        =>        %x = nn.dense(%x, W) + Wb + Rb
//!                                   %y = nn.lstm_steps(%x, transpose(R), 0, 0)
//! ```

use tenon_plugin_api::rule::prelude::*;

use super::activation::Activation;
use crate::onnx::steps::{check_equal, extent_of, not_among, reshape_to, sliced};

/// A node of a recurrent network.
pub(super) struct Model {
    /// How many times as long as the state a row of its weight is.
    gates: i64,
    ways: i64,
    hidden: i64,
    batch: Dim,
    is_batch_first: bool,
    /// The two halves of the bias, `[directions, gates * hidden]`.
    bias: Option<[Value; 2]>,
    /// Arguments behind the states.
    more: Vec<Value>,
    attrs: Vec<(&'static str, AttrValue)>,
}

impl Model {
    /// What a node says that has up to `inputs` inputs, and so many gates and functions in each direction.
    pub(super) fn of(
        node: &mut Node<'_>,
        inputs: usize,
        gates: i64,
        functions: usize,
    ) -> Result<Self, Problem> {
        node.check_arity(3, inputs)?;
        let direction = node.text("direction", "forward")?;
        let ways = match direction.as_str() {
            "forward" | "reverse" => 1,
            "bidirectional" => 2,
            other => {
                return not_among("direction", other, &["forward", "reverse", "bidirectional"]);
            }
        };
        let is_batch_first = node.flag("layout", false)?;
        let (x, weight) = (node.dims(node.input(0)?)?, node.dims(node.input(2)?)?);
        let (&[first, second, _], &[own, row, hidden]) = (x.as_slice(), weight.as_slice()) else {
            return invalid("its input and its weights have not three dimensions");
        };
        let batch = if is_batch_first { first } else { second };
        let hidden = extent_of(node, hidden, "size of the state")?;
        if node.int("hidden_size")?.is_some_and(|given| given != hidden) {
            return invalid(format!("its hidden_size is not that of its weight, {hidden}"));
        }
        let [count, length] = [ways, gates * hidden].map(|extent| node.cx().dim(extent));
        check_equal(node, [own, count], "the directions and those of its weight")?;
        check_equal(node, [row, length], "the rows of its weight and its gates")?;

        let mut attrs: Vec<(&'static str, AttrValue)> = vec![("direction", direction.into())];
        let names = node.texts("activations")?;
        let mut alphas = node.floats("activation_alpha")?.unwrap_or_default().into_iter();
        let mut betas = node.floats("activation_beta")?.unwrap_or_default().into_iter();
        if !names.is_empty() {
            // The schema's own default of an RNN is for two directions.
            let is_default = functions == 1 && names == ["Tanh", "Tanh"];
            if names.len() != functions * ways as usize && !is_default {
                let count = names.len();
                return invalid(format!("its attribute `activations` has {count} functions"));
            }
            let mut texts = Vec::new();
            for name in names.iter().take(functions * ways as usize) {
                match Activation::from_onnx(name, &mut alphas, &mut betas) {
                    Some(text) => texts.push(text),
                    None => return unsupported(format!("the activation {name:?}")),
                }
            }
            attrs.push(("activations", texts.join(" ").into()));
        }
        if let Some(clip) = node.float("clip")?.filter(|&clip| clip > 0.0) {
            attrs.push(("clip", f64::from(clip).into()));
        }
        let bias = match node.optional(3) {
            None => None,
            Some(bias) => {
                let length = gates * hidden;
                let of_data = sliced(node, bias, 1, [0, length])?;
                Some([of_data, sliced(node, bias, 1, [length, 2 * length])?])
            }
        };
        Ok(Self { gates, ways, hidden, batch, is_batch_first, bias, more: Vec::new(), attrs })
    }

    /// Gives the operator another argument.
    pub(super) fn more(&mut self, value: Value) {
        self.more.push(value);
    }

    /// Gives it an attribute.
    pub(super) fn set(&mut self, name: &'static str, value: bool) {
        self.attrs.push((name, value.into()));
    }

    /// Makes an argument of the last part of the bias of the state, which then is no part of what the data give.
    pub(super) fn split_last_bias(&mut self, node: &mut Node<'_>) -> Result<(), Problem> {
        let kept = (self.gates - 1) * self.hidden;
        let last = match &mut self.bias {
            None => {
                let shape = [self.ways, self.hidden].map(|extent| node.cx().dim(extent));
                zeros(node, &shape)?
            }
            Some([_, bias]) => {
                let last = sliced(node, *bias, 1, [kept, i64::MAX])?;
                let first = sliced(node, *bias, 1, [0, kept])?;
                let width = vec![0, 0, 0, self.hidden];
                *bias = node.call("nn.pad", &[first], &[("pad_width", width.into())])?;
                last
            }
        };
        self.more.push(last);
        Ok(())
    }

    /// The call of operator `op`, with so many states, and the outputs of the node.
    pub(super) fn import(
        mut self,
        node: &mut Node<'_>,
        op: &'static str,
        states: usize,
    ) -> Outputs {
        let x = self.product_of_data(node)?;
        let weight = node.input(2)?;
        let weight = node.call("transpose", &[weight], &[("axes", vec![0, 2, 1].into())])?;
        let mut args = vec![x, weight];
        for state in 0..states {
            args.push(match node.optional(5 + state) {
                None => {
                    let [ways, hidden] = [self.ways, self.hidden].map(|it| node.cx().dim(it));
                    zeros(node, &[ways, self.batch, hidden])?
                }
                Some(state) if self.is_batch_first => self.batch_second(node, state)?,
                Some(state) => state,
            });
        }
        args.append(&mut self.more);
        if let Some(lengths) = node.optional(4) {
            args.push(lengths);
            self.set("lengths", true);
        }
        let results = node.call(op, &args, &self.attrs)?;
        let mut results = node.items(results)?;
        if self.is_batch_first {
            let axes = [("axes", vec![2, 0, 1, 3].into())];
            results[0] = node.call("transpose", &[results[0]], &axes)?;
            for state in &mut results[1..] {
                *state = self.batch_second(node, *state)?;
            }
        }
        Ok(results)
    }

    /// What the steps take from the data, `[steps, batch, directions, gates * hidden]`.
    fn product_of_data(&self, node: &mut Node<'_>) -> Result<Value, Problem> {
        let (mut x, weight) = (node.input(0)?, node.input(1)?);
        if self.is_batch_first {
            x = self.batch_second(node, x)?;
        }
        let dims = node.dims(weight)?;
        let &[ways, row, size] = dims.as_slice() else {
            return invalid("its weight has not three dimensions");
        };
        let rows = node.cx().dim_mul(ways, row);
        let weight = reshape_to(node, weight, &[rows, size])?;
        let mut product = node.apply("nn.dense", &[x, weight])?;
        if let Some([of_data, of_state]) = self.bias {
            let bias = node.apply("add", &[of_data, of_state])?;
            let bias = reshape_to(node, bias, &[rows])?;
            product = node.apply("add", &[product, bias])?;
        }
        let outer = node.dims(product)?;
        reshape_to(node, product, &[outer[0], outer[1], ways, row])
    }

    /// A tensor with its first two axes exchanged.
    fn batch_second(&self, node: &mut Node<'_>, value: Value) -> Result<Value, Problem> {
        node.call("transpose", &[value], &[("axes", vec![1, 0, 2].into())])
    }
}

/// Zeros of the element type of the data.
fn zeros(node: &mut Node<'_>, shape: &[Dim]) -> Result<Value, Problem> {
    let dtype = node.dtype(node.input(0)?)?.to_string();
    let shape = node.shape(shape)?;
    node.call("full", &[shape], &[("value", 0.0.into()), ("dtype", dtype.into())])
}
