//! The functions that gates are put through.

use tenon_plugin_api::op::number;
use tenon_plugin_api::program::Scalar;

/// A function of one number, and its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Activation {
    kind: Kind,
    alpha: f64,
    beta: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Affine,
    Elu,
    HardSigmoid,
    LeakyRelu,
    Relu,
    ScaledTanh,
    Sigmoid,
    Softplus,
    Softsign,
    Tanh,
    ThresholdedRelu,
}

/// Each function: its name, its name in ONNX, how many parameters it has, and what they are where nothing is said.
const KINDS: [(Kind, &str, &str, usize, [f64; 2]); 11] = [
    (Kind::Affine, "affine", "affine", 2, [1.0, 0.0]),
    (Kind::Elu, "elu", "elu", 1, [1.0, 0.0]),
    (Kind::HardSigmoid, "hard_sigmoid", "hardsigmoid", 2, [0.2, 0.5]),
    (Kind::LeakyRelu, "leaky_relu", "leakyrelu", 1, [0.01, 0.0]),
    (Kind::Relu, "relu", "relu", 0, [0.0, 0.0]),
    (Kind::ScaledTanh, "scaled_tanh", "scaledtanh", 2, [1.0, 1.0]),
    (Kind::Sigmoid, "sigmoid", "sigmoid", 0, [0.0, 0.0]),
    (Kind::Softplus, "softplus", "softplus", 0, [0.0, 0.0]),
    (Kind::Softsign, "softsign", "softsign", 0, [0.0, 0.0]),
    (Kind::Tanh, "tanh", "tanh", 0, [0.0, 0.0]),
    (Kind::ThresholdedRelu, "thresholded_relu", "thresholdedrelu", 1, [1.0, 0.0]),
];

impl Activation {
    /// What a text says, such as `hard_sigmoid(0.2,0.5) tanh`.
    pub(super) fn list(text: &str) -> std::result::Result<Vec<Self>, String> {
        text.split_whitespace().map(Self::of).collect()
    }

    fn of(text: &str) -> std::result::Result<Self, String> {
        let (name, params) = match text.split_once('(') {
            None => (text, ""),
            Some((name, rest)) => match rest.strip_suffix(')') {
                Some(params) => (name, params),
                None => return Err(format!("a parenthesis of {text:?} is not closed")),
            },
        };
        let Some(&(kind, _, _, count, mut given)) = KINDS.iter().find(|known| known.1 == name)
        else {
            let names: Vec<&str> = KINDS.iter().map(|known| known.1).collect();
            return Err(format!("there is no {name:?} among {}", names.join(", ")));
        };
        for (index, param) in params.split(',').filter(|param| !param.is_empty()).enumerate() {
            let (true, Ok(value)) = (index < count, param.parse()) else {
                return Err(format!("{name} has {count} parameters, which are numbers"));
            };
            given[index] = value;
        }
        Ok(Self { kind, alpha: given[0], beta: given[1] })
    }

    /// The text of the function that ONNX calls `name`, in letters of any case; it takes its parameters from those that are left.
    pub(super) fn from_onnx(
        name: &str,
        alphas: &mut impl Iterator<Item = f32>,
        betas: &mut impl Iterator<Item = f32>,
    ) -> Option<String> {
        let lower = name.to_lowercase();
        let &(_, name, _, count, default) = KINDS.iter().find(|known| known.2 == lower)?;
        let mut params = Vec::new();
        if count > 0 {
            params.push(alphas.next().map_or(default[0], f64::from));
        }
        if count > 1 {
            params.push(betas.next().map_or(default[1], f64::from));
        }
        let params: Vec<String> = params.iter().map(|param| format!("{param:?}")).collect();
        Some(match params.as_slice() {
            [] => name.to_owned(),
            _ => format!("{name}({})", params.join(",")),
        })
    }

    /// Its value.
    pub(super) fn value(self, x: f64) -> f64 {
        let Self { kind, alpha, beta } = self;
        match kind {
            Kind::Affine => alpha * x + beta,
            Kind::Elu if x < 0.0 => alpha * x.exp_m1(),
            Kind::Elu => x,
            Kind::HardSigmoid => (alpha * x + beta).clamp(0.0, 1.0),
            Kind::LeakyRelu if x < 0.0 => alpha * x,
            Kind::LeakyRelu => x,
            Kind::Relu if x < 0.0 => 0.0,
            Kind::Relu => x,
            Kind::ScaledTanh => alpha * (beta * x).tanh(),
            Kind::Sigmoid => number::sigmoid(x),
            Kind::Softplus => x.max(0.0) + (-x.abs()).exp().ln_1p(),
            Kind::Softsign => x / (1.0 + x.abs()),
            Kind::Tanh => x.tanh(),
            Kind::ThresholdedRelu if x > alpha => x,
            Kind::ThresholdedRelu => 0.0,
        }
    }

    /// Its value in a program.
    pub(super) fn of_scalar(self, x: Scalar<'_>) -> Scalar<'_> {
        let Self { kind, alpha, beta } = self;
        match kind {
            Kind::Affine => x * alpha + beta,
            Kind::Elu => x.lt(0.0).select((x.min(0.0).call("exp") - 1.0) * alpha, x),
            Kind::HardSigmoid => (x * alpha + beta).max(0.0).min(1.0),
            Kind::LeakyRelu => x.lt(0.0).select(x * alpha, x),
            Kind::Relu => x.max(0.0),
            Kind::ScaledTanh => (x * beta).call("tanh") * alpha,
            Kind::Sigmoid => x.call("sigmoid"),
            Kind::Softplus => x.max(0.0) + ((x.call("abs") * -1.0).call("exp") + 1.0).call("log"),
            Kind::Softsign => x / (x.call("abs") + 1.0),
            Kind::Tanh => x.call("tanh"),
            Kind::ThresholdedRelu => x.gt(alpha).select(x, x.program().literal(x.dtype(), 0.0)),
        }
    }
}
