//! Gradients against finite differences.
//!
//! Each case is an expression of parameters. The loss is the sum of the sines of its elements, so that each
//! element has a derivative of its own. What `relax.Gradient` makes is evaluated by the reference evaluator, and
//! compared with central differences of the loss, in f64.

use std::path::Path;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use tenon_host::diagnostics::Source;
use tenon_host::driver::run_plan;
use tenon_host::eval::{Evaluator, Tensor, Value};
use tenon_host::infer::infer_module;
use tenon_host::ir::{Context, Cx, Module};
use tenon_host::passes::{Instrument, PassContext, VerifyEach, plan};
use tenon_host::registry::Registry;
use tenon_host::text::{NoWeights, parse_module};

/// Name, parameters and value of each case; `pos…` are positive parameters. A value may follow bindings.
const CASES: &[(&str, &str, &str)] = &[
    ("abs", "%x: f64[2, 3]", "abs(%x)"),
    ("cast", "%x: f64[3]", "cast(%x) { dtype = \"f64\" }"),
    ("clip", "%x: f64[20]", "clip(%x) { max = 0.5, min = -0.25 }"),
    ("clip_one_side", "%x: f64[20]", "clip(%x) { max = 0.5 }"),
    ("cos", "%x: f64[2, 3]", "cos(%x)"),
    ("erf", "%x: f64[2, 3]", "erf(%x)"),
    ("exp", "%x: f64[2, 3]", "exp(%x)"),
    ("log", "%pos: f64[2, 3]", "log(%pos)"),
    ("negative", "%x: f64[2, 3]", "negative(%x)"),
    ("dropout", "%x: f64[2, 3]", "nn.dropout(%x)"),
    ("gelu", "%x: f64[2, 3]", "nn.gelu(%x)"),
    ("leaky_relu", "%x: f64[2, 3]", "nn.leaky_relu(%x) { alpha = 0.25 }"),
    ("relu", "%x: f64[2, 3]", "nn.relu(%x)"),
    ("silu", "%x: f64[2, 3]", "nn.silu(%x)"),
    ("rsqrt", "%pos: f64[2, 3]", "rsqrt(%pos)"),
    ("sigmoid", "%x: f64[2, 3]", "sigmoid(%x)"),
    ("sin", "%x: f64[2, 3]", "sin(%x)"),
    ("sqrt", "%pos: f64[2, 3]", "sqrt(%pos)"),
    ("tanh", "%x: f64[2, 3]", "tanh(%x)"),
    ("add", "%x: f64[2, 1, 3], %y: f64[4, 1]", "add(%x, %y)"),
    ("subtract", "%x: f64[3], %y: f64[2, 3]", "subtract(%x, %y)"),
    ("multiply", "%x: f64[2, 3], %y: f64[]", "multiply(%x, %y)"),
    ("multiply_by_itself", "%x: f64[2, 3]", "multiply(%x, %x)"),
    ("divide", "%x: f64[2, 3], %pos: f64[2, 1]", "divide(%x, %pos)"),
    ("maximum", "%x: f64[2, 3], %y: f64[3]", "maximum(%x, %y)"),
    ("minimum", "%x: f64[2, 3], %y: f64[3]", "minimum(%x, %y)"),
    ("power", "%pos: f64[2, 3], %y: f64[3]", "power(%pos, %y)"),
    ("where", "%x: f64[2, 3], %y: f64[3]", "where(const(bool[2, 1], [true, false]), %x, %y)"),
    ("steps", "%x: f64[5]", "add(multiply(floor(%x), ceil(%x)), multiply(round(%x), %x))"),
    ("matmul", "%x: f64[2, 3], %y: f64[3, 4]", "matmul(%x, %y)"),
    ("matmul_ta", "%x: f64[3, 2], %y: f64[3, 4]", "matmul(%x, %y) { transpose_a = true }"),
    ("matmul_tb", "%x: f64[2, 3], %y: f64[4, 3]", "matmul(%x, %y) { transpose_b = true }"),
    (
        "matmul_ta_tb",
        "%x: f64[3, 2], %y: f64[4, 3]",
        "matmul(%x, %y) { transpose_a = true, transpose_b = true }",
    ),
    ("matmul_batches", "%x: f64[2, 1, 2, 3], %y: f64[3, 3, 2]", "matmul(%x, %y)"),
    ("matmul_one_matrix", "%x: f64[2, 2, 3], %y: f64[3, 2]", "matmul(%x, %y)"),
    ("dense", "%x: f64[2, 3], %w: f64[4, 3]", "nn.dense(%x, %w)"),
    ("dense_leading", "%x: f64[2, 2, 3], %w: f64[4, 3]", "nn.dense(%x, %w)"),
    ("dense_vector", "%x: f64[3], %w: f64[4, 3]", "nn.dense(%x, %w)"),
    ("conv2d", "%x: f64[2, 2, 4, 5], %w: f64[3, 2, 2, 3]", "nn.conv2d(%x, %w)"),
    (
        "conv2d_padded",
        "%x: f64[1, 2, 4, 5], %w: f64[3, 2, 3, 3]",
        "nn.conv2d(%x, %w) { padding = [1, 0, 2, 1] }",
    ),
    (
        "conv2d_strided",
        "%x: f64[1, 2, 6, 7], %w: f64[3, 2, 3, 2]",
        "nn.conv2d(%x, %w) { padding = [1, 1, 1, 1], strides = [2, 3] }",
    ),
    (
        "conv2d_dilated",
        "%x: f64[1, 2, 7, 6], %w: f64[2, 2, 2, 3]",
        "nn.conv2d(%x, %w) { dilation = [3, 2], padding = [0, 1, 1, 0], strides = [2, 1] }",
    ),
    (
        "conv2d_grouped",
        "%x: f64[2, 4, 4, 4], %w: f64[6, 2, 3, 3]",
        "nn.conv2d(%x, %w) { groups = 2, padding = [1, 1, 1, 1] }",
    ),
    (
        "conv2d_depthwise",
        "%x: f64[2, 3, 5, 5], %w: f64[3, 1, 3, 3]",
        "nn.conv2d(%x, %w) { groups = 3, strides = [2, 2] }",
    ),
    ("broadcast_to", "%x: f64[3, 1]", "broadcast_to(%x, shape(2, 3, 4))"),
    ("concatenate", "%x: f64[2, 3], %y: f64[2, 1]", "concatenate((%x, %y, %x)) { axis = 1 }"),
    ("expand_dims", "%x: f64[2, 3]", "expand_dims(%x) { axis = [0, 2] }"),
    ("index_add", "%x: f64[3, 2], %y: f64[2, 2]", "index_add(%x, const(i64[2], [2, 0]), %y)"),
    (
        "layout_transform",
        "%x: f64[1, 4, 2, 2]",
        "layout_transform(%x) { dst_layout = \"NCHW2c\", src_layout = \"NCHW\" }",
    ),
    ("pad", "%x: f64[2, 3]", "nn.pad(%x) { pad_width = [1, 0, 0, 2], value = 0.5 }"),
    ("reshape", "%x: f64[2, 3]", "reshape(%x, shape(3, 2))"),
    (
        "split",
        "%x: f64[2, 6]",
        "%t = split(%x) { axis = 1, indices = [1, 3] }\n  %out = multiply(%t.0, %t.2)",
    ),
    ("squeeze", "%x: f64[2, 1, 3]", "squeeze(%x)"),
    (
        "strided_slice",
        "%x: f64[5, 6, 7]",
        "strided_slice(%x) { axes = [2, 0], begin = [1, -4], end = [7, 4], strides = [2, 1] }",
    ),
    (
        "strided_slice_backwards",
        "%x: f64[7, 4]",
        "strided_slice(%x) { begin = [5, -1], end = [0, -9], strides = [-2, -1] }",
    ),
    ("take", "%x: f64[4, 3]", "take(%x, const(i64[3], [3, 0, 3])) { axis = 0 }"),
    ("take_last", "%x: f64[2, 4]", "take(%x, const(i64[2, 2], [1, 0, -1, 1])) { axis = 1 }"),
    ("transpose", "%x: f64[2, 3, 4]", "transpose(%x) { axes = [1, -1, 0] }"),
    ("transpose_reversed", "%x: f64[2, 3, 4]", "transpose(%x)"),
    ("max", "%x: f64[2, 3, 4]", "max(%x) { axis = [0, 2] }"),
    ("min", "%x: f64[2, 3]", "min(%x) { axis = [1], keepdims = true }"),
    ("mean", "%x: f64[2, 3, 4]", "mean(%x) { axis = [-1, 0] }"),
    ("prod", "%x: f64[2, 4]", "prod(%x) { axis = [1] }"),
    (
        "prod_with_zeros",
        "%x: f64[3, 3]",
        "prod(multiply(%x, const(f64[3, 3], [1, 0, 2, 0, 0, 3, 1, 2, 3]))) { axis = [1] }",
    ),
    ("sum", "%x: f64[2, 3, 4]", "sum(%x) { axis = [1] }"),
    ("sum_of_all", "%x: f64[2, 3]", "sum(%x)"),
    (
        "batch_norm",
        "%x: f64[2, 3, 2, 2], %g: f64[3], %b: f64[3], %m: f64[3], %pos: f64[3]",
        "nn.batch_norm(%x, %g, %b, %m, %pos) { epsilon = 0.125 }",
    ),
    (
        "batch_norm_last",
        "%x: f64[4, 3], %g: f64[3], %b: f64[3], %m: f64[3], %pos: f64[3]",
        "nn.batch_norm(%x, %g, %b, %m, %pos)",
    ),
    ("bias_add", "%x: f64[2, 3, 2], %b: f64[3]", "nn.bias_add(%x, %b)"),
    (
        "group_norm",
        "%x: f64[2, 6, 3], %g: f64[6], %b: f64[6]",
        "nn.group_norm(%x, %g, %b) { epsilon = 0.125, num_groups = 2 }",
    ),
    (
        "group_norm_last",
        "%x: f64[2, 3, 4], %g: f64[4], %b: f64[4]",
        "nn.group_norm(%x, %g, %b) { channel_axis = -1, num_groups = 2 }",
    ),
    (
        "instance_norm",
        "%x: f64[2, 3, 2, 3], %g: f64[3], %b: f64[3]",
        "nn.instance_norm(%x, %g, %b) { epsilon = 0.125 }",
    ),
    ("l2_normalize", "%x: f64[2, 3, 2]", "nn.l2_normalize(%x) { axis = [1, 2] }"),
    ("l2_normalize_short", "%x: f64[2, 3]", "nn.l2_normalize(%x) { epsilon = 100.0 }"),
    ("layer_norm", "%x: f64[3, 4], %g: f64[4], %b: f64[4]", "nn.layer_norm(%x, %g, %b)"),
    (
        "layer_norm_middle",
        "%x: f64[2, 3, 4], %g: f64[2, 3], %b: f64[2, 3]",
        "nn.layer_norm(%x, %g, %b) { axes = [0, 1], epsilon = 0.125 }",
    ),
    ("softmax", "%x: f64[2, 3, 2]", "nn.softmax(%x) { axis = 1 }"),
    ("log_softmax", "%x: f64[2, 4]", "nn.log_softmax(%x)"),
    ("lrn", "%x: f64[1, 6, 2, 1]", "nn.lrn(%x) { alpha = 0.5, beta = 0.75, bias = 2.0, size = 4 }"),
    ("max_pool2d", "%x: f64[1, 2, 4, 6]", "nn.max_pool2d(%x) { pool_size = [2, 3] }"),
    (
        "max_pool2d_moved",
        "%x: f64[1, 2, 7, 6]",
        "nn.max_pool2d(%x) { ceil_mode = true, dilation = [2, 1], padding = [1, 1, 0, 1], \
         pool_size = [2, 3], strides = [2, 2] }",
    ),
    (
        "avg_pool2d",
        "%x: f64[1, 2, 5, 6]",
        "nn.avg_pool2d(%x) { padding = [1, 1, 1, 1], pool_size = [3, 2], strides = [2, 2] }",
    ),
    (
        "avg_pool2d_counting",
        "%x: f64[1, 2, 6, 6]",
        "nn.avg_pool2d(%x) { ceil_mode = true, count_include_pad = true, padding = [1, 1, 1, 1], \
         pool_size = [3, 3], strides = [2, 2] }",
    ),
    ("global_avg_pool2d", "%x: f64[2, 2, 3, 3]", "nn.global_avg_pool2d(%x)"),
    ("global_max_pool2d", "%x: f64[2, 2, 3, 3]", "nn.global_max_pool2d(%x)"),
    (
        "network",
        "%x: f64[2, 1, 6, 6], %w: f64[2, 1, 3, 3], %b: f64[2], %v: f64[3, 8]",
        "%c = nn.conv2d(%x, %w)\n  %d = nn.bias_add(%c, %b)\n  %e = nn.relu(%d)\n  \
         %p = nn.max_pool2d(%e) { pool_size = [2, 2], strides = [2, 2] }\n  \
         %f = reshape(%p, shape(2, 8))\n  %out = nn.log_softmax(nn.dense(%f, %v))",
    ),
    (
        "tuples",
        "%t: (f64[2], f64[2]), %x: f64[2]",
        "%a = %t.0\n  %u = (%a, %x)\n  %v = %u\n  %out = multiply(%v.0, %v.1)",
    ),
];

fn main() -> ExitCode {
    let trials =
        CASES.iter().map(|&(name, params, value)| Trial::test(name, move || check(params, value)));
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

fn check(params: &str, value: &str) -> Result<(), Failed> {
    let lines = if value.starts_with('%') { value.to_owned() } else { format!("%out = {value}") };
    let text = format!(
        "fn @main({params}) -> f64[] {{\n  {lines}\n  %z = sin(%out)\n  %loss = sum(%z)\n  ret %loss\n}}\n"
    );
    let module = differentiated(&text)?;
    let mut random = Random(1);
    let inputs: Vec<Value> = params
        .split('%')
        .skip(1)
        .flat_map(|param| inputs_of(param.trim_end_matches([',', ' ']), &mut random))
        .collect();
    let mut evaluator = Evaluator::new(&module);
    let Value::Tuple(result) = evaluator.call("main_adjoint", inputs.clone())? else {
        return Err("the adjoint function returns no tuple".into());
    };
    let Value::Tuple(grads) = &result.fields()[1] else {
        return Err("there are no gradients".into());
    };
    let mut loss = |inputs: Vec<Value>| -> Result<f64, Failed> {
        Ok(numbers(&evaluator.call("main", inputs)?)[0])
    };
    for (place, grad) in grads.fields().iter().enumerate() {
        for (index, &found) in numbers(grad).iter().enumerate() {
            const STEP: f64 = 1e-5;
            let near = |step: f64| {
                let mut inputs = inputs.clone();
                inputs[place] = moved(&inputs[place], index, step);
                inputs
            };
            let expected = (loss(near(STEP))? - loss(near(-STEP))?) / (2.0 * STEP);
            if (found - expected).abs() > 1e-6 * (1.0 + expected.abs()) {
                let text = format!("parameter {place}, element {index}: {found} is not {expected}");
                return Err(text.into());
            }
        }
    }
    Ok(())
}

/// The module with the adjoint of its function.
fn differentiated(text: &str) -> Result<Module, Failed> {
    let cx = Cx::new();
    let source = Source::new("case", text);
    let module =
        parse_module(&cx, &source, &mut NoWeights).map_err(|errors| errors.render(false))?;
    let module =
        infer_module(&module).map_err(|errors| errors[0].1.to_diagnostic(&source).render(false))?;
    let registry = Path::new(env!("CARGO_MANIFEST_DIR")).join("registry.toml");
    let registry = Registry::open(&registry)?;
    let plan = plan(&registry, "relax.Gradient")?;
    let instruments: Vec<Box<dyn Instrument>> = vec![Box::new(VerifyEach::default())];
    let target = module.cx().attrs(&[("kind", "cpu".into())]);
    let mut context = PassContext { target, instruments, ..PassContext::default() };
    run_plan(&registry, &plan, &module, &mut context)
        .map_err(|error| error.to_diagnostic().render(false).into())
}

/// Numbers that look random, in `-1 .. 1`.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

/// The value of a parameter `name: type`.
fn inputs_of(param: &str, random: &mut Random) -> Option<Value> {
    let (name, ty) = param.split_once(": ")?;
    let mut tensor = |text: &str| {
        let dims = text.trim_end_matches(']').split_once('[').map_or("", |(_, dims)| dims);
        let shape: Vec<usize> = dims.split(", ").filter_map(|dim| dim.parse().ok()).collect();
        let mut element = || match name.starts_with("pos") {
            true => random.next() / 2.0 + 1.0,
            false => random.next(),
        };
        let elements: Vec<f64> = (0..shape.iter().product()).map(|_| element()).collect();
        Value::Tensor(Tensor::from_vec(shape, elements))
    };
    Some(match ty.strip_prefix('(') {
        Some(fields) => {
            let fields = fields.trim_end_matches(')').split("], ").map(&mut tensor).collect();
            Value::Tuple(tenon_host::eval::Tuple::new(fields))
        }
        None => tensor(ty),
    })
}

/// The elements of a value, those of tuples one after the other.
fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Tuple(tuple) => tuple.fields().iter().flat_map(numbers).collect(),
        value => value.to_tensor().map_or(Vec::new(), |tensor| tensor.elements::<f64>().to_vec()),
    }
}

/// A value with one element moved.
fn moved(value: &Value, index: usize, step: f64) -> Value {
    if let Value::Tuple(tuple) = value {
        let mut index = index;
        let mut fields = tuple.fields().to_vec();
        for field in &mut fields {
            let count = numbers(field).len();
            if index < count {
                *field = moved(field, index, step);
                break;
            }
            index -= count;
        }
        return Value::Tuple(tenon_host::eval::Tuple::new(fields));
    }
    let mut elements = numbers(value);
    elements[index] += step;
    let shape = value.to_tensor().map_or(Vec::new(), |tensor| tensor.shape().to_vec());
    Value::Tensor(Tensor::from_vec(shape, elements))
}
