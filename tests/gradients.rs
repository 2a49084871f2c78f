//! Gradients against finite differences.
//!
//! Each case is an expression of parameters. The loss is the sum of the sines of its elements, so that each
//! element has a derivative of its own. One more takes random functions of nested tuples. What `relax.Gradient` makes is evaluated by the reference evaluator, and
//! compared with central differences of the loss, in f64.

use std::path::Path;
use std::process::ExitCode;
use tenon_operators as _;

use libtest_mimic::{Arguments, Failed, Trial};
use tenon_compiler::diagnostics::Source;
use tenon_compiler::eval::{Evaluator, Tensor, Tuple, Value};
use tenon_compiler::infer::infer_module;
use tenon_compiler::ir::{Context, Module};
use tenon_compiler::passes;
use tenon_compiler::passes::{Instrument, PassContext, VerifyEach, plan};
use tenon_compiler::registry::Registry;
use tenon_compiler::testing;
use tenon_compiler::text::{NoWeights, parse_module};
use tenon_plugin_api::ir::{BodyView, Expr, Terms, Type, TypeView, View};

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
    ("tan", "%x: f64[2, 3]", "tan(tanh(%x))"),
    ("asin", "%x: f64[2, 3]", "asin(multiply(tanh(%x), const(f64[], [0.875])))"),
    ("acos", "%x: f64[2, 3]", "acos(multiply(tanh(%x), const(f64[], [0.875])))"),
    ("atan", "%x: f64[2, 3]", "atan(%x)"),
    ("sinh", "%x: f64[2, 3]", "sinh(%x)"),
    ("cosh", "%x: f64[2, 3]", "cosh(%x)"),
    ("asinh", "%x: f64[2, 3]", "asinh(%x)"),
    ("acosh", "%pos: f64[2, 3]", "acosh(add(%pos, const(f64[], [1.25])))"),
    ("atanh", "%x: f64[2, 3]", "atanh(multiply(tanh(%x), const(f64[], [0.875])))"),
    ("cumsum", "%x: f64[2, 4]", "cumsum(%x) { axis = 1 }"),
    ("cumsum_both", "%x: f64[4, 2]", "cumsum(%x) { exclusive = true, reverse = true }"),
    ("topk", "%x: f64[3, 5]", "%t = topk(%x, shape(3))\n  %out = multiply(%t.0, %t.0)"),
    ("add", "%x: f64[2, 1, 3], %y: f64[4, 1]", "add(%x, %y)"),
    ("subtract", "%x: f64[3], %y: f64[2, 3]", "subtract(%x, %y)"),
    ("multiply", "%x: f64[2, 3], %y: f64[]", "multiply(%x, %y)"),
    ("multiply_by_itself", "%x: f64[2, 3]", "multiply(%x, %x)"),
    ("divide", "%x: f64[2, 3], %pos: f64[2, 1]", "divide(%x, %pos)"),
    ("mod", "%x: f64[2, 3], %pos: f64[2, 1]", "mod(%x, %pos)"),
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
    (
        "gather_elements",
        "%x: f64[2, 3]",
        "gather_elements(%x, const(i64[2, 4], [2, 0, -1, 2, 1, 1, 0, 0])) { axis = 1 }",
    ),
    ("gather_nd", "%x: f64[3, 2, 2]", "gather_nd(%x, const(i64[3, 2], [2, 0, 2, 0, -1, 1]))"),
    (
        "gather_nd_batch",
        "%x: f64[2, 3]",
        "gather_nd(%x, const(i64[2, 2, 1], [2, 0, 1, 1])) { batch_dims = 1 }",
    ),
    (
        "scatter_elements",
        "%x: f64[3, 2], %y: f64[2, 2]",
        "scatter_elements(%x, const(i64[2, 2], [2, 0, 0, -1]), %y)",
    ),
    (
        "scatter_elements_add",
        "%x: f64[2, 3], %y: f64[2, 4]",
        "scatter_elements(%x, const(i64[2, 4], [2, 0, -1, 2, 1, 1, 0, 0]), %y) { axis = 1, reduction = \"add\" }",
    ),
    (
        "scatter_nd",
        "%x: f64[3, 2, 2], %y: f64[2, 2]",
        "scatter_nd(%x, const(i64[2, 2], [2, 0, -2, 1]), %y)",
    ),
    (
        "scatter_nd_add_batch",
        "%x: f64[2, 3], %y: f64[2, 2]",
        "scatter_nd(%x, const(i64[2, 2, 1], [2, 0, 1, 1]), %y) { batch_dims = 1, reduction = \"add\" }",
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
    (
        "lrn_wide",
        "%x: f64[1, 3, 2, 1]",
        "nn.lrn(%x) { alpha = 2000000000.0, bias = 2.0, size = 1000000000 }",
    ),
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
    let cases = CASES.iter().map(|&(name, params, value)| {
        Trial::test(name, move || {
            let is_list = value.starts_with('%');
            let lines = if is_list { value.to_owned() } else { format!("%out = {value}") };
            let text = format!(
                "fn @main({params}) -> f64[] {{\n  {lines}\n  %z = sin(%out)\n  %loss = sum(%z)\n  ret %loss\n}}\n"
            );
            check(&text)
        })
    });
    let tuples = Trial::test("random_nested_tuples", || {
        for seed in 0..200 {
            let text = nested_tuples(seed);
            check(&text).map_err(|error| {
                format!("seed {seed}: {}\n{text}", error.message().unwrap_or("it fails"))
            })?;
        }
        Ok(())
    });
    libtest_mimic::run(&Arguments::from_args(), cases.chain([tuples]).collect()).exit_code()
}

/// A function of tensors and tuples that puts them into tuples, takes them out again, and computes a little.
fn nested_tuples(seed: u64) -> String {
    let mut random = testing::Random::new(seed);
    // Each value with its type. The first one is a tensor.
    let mut values = vec![("%x".to_owned(), TENSOR.to_owned())];
    for name in ["%s", "%t"] {
        let mut ty = TENSOR.to_owned();
        for _ in 0..1 + random.below(3) {
            let (_, other) = random.pick(&values);
            ty = if random.chance(50) {
                format!("({ty}, {other})")
            } else {
                format!("({other}, {ty})")
            };
        }
        values.push((name.to_owned(), ty));
    }
    let params: Vec<String> = values.iter().map(|(name, ty)| format!("{name}: {ty}")).collect();
    let mut text = format!("fn @main({}) -> f64[] {{\n", params.join(", "));
    for number in 0..4 + random.below(20) {
        let tensors: Vec<&str> = tensors_of(&values);
        let (a, b) = (random.pick(&tensors), random.pick(&tensors));
        let (one, one_type) = &values[random.below(values.len())];
        let (other, other_type) = &values[random.below(values.len())];
        let (value, ty) = match random.below(10) {
            0 => (format!("sin({a})"), TENSOR.to_owned()),
            1 => (format!("multiply({a}, {b})"), TENSOR.to_owned()),
            2 => (one.clone(), one_type.clone()),
            3 => (
                format!("split(concatenate(({a}, {b}))) {{ sections = 2 }}"),
                format!("({TENSOR}, {TENSOR})"),
            ),
            4..6 => (format!("({one}, {other})"), format!("({one_type}, {other_type})")),
            _ => {
                // The fields of a type stand on both sides of the comma that is in no inner one.
                let Some((left, right)) = fields_of(one_type) else { continue };
                match random.chance(50) {
                    true => (format!("{one}.0"), left.to_owned()),
                    false => (format!("{one}.1"), right.to_owned()),
                }
            }
        };
        text.push_str(&format!("  %v{number} = {value}\n"));
        values.push((format!("%v{number}"), ty));
    }
    let tensors = tensors_of(&values).join(", ");
    let last = format!("%all = concatenate(({tensors}, %x))\n  %z = sin(%all)\n  %loss = sum(%z)");
    format!("{text}  {last}\n  ret %loss\n}}\n")
}

/// The names of the values that are no tuples.
fn tensors_of(values: &[(String, String)]) -> Vec<&str> {
    values.iter().filter(|(_, ty)| ty == TENSOR).map(|(name, _)| name.as_str()).collect()
}

/// The type of the tensors in nested tuples.
const TENSOR: &str = "f64[2]";

/// The types of a pair.
fn fields_of(ty: &str) -> Option<(&str, &str)> {
    let fields = ty.strip_prefix('(')?.strip_suffix(')')?;
    let mut depth = 0;
    let comma = fields.char_indices().find(|&(_, letter)| {
        depth += (letter == '(') as i32 - (letter == ')') as i32;
        letter == ',' && depth == 0
    })?;
    Some((&fields[..comma.0], fields[comma.0 + 1..].trim_start()))
}

/// Whether the gradients of a loss are the differences that are measured.
fn check(text: &str) -> Result<(), Failed> {
    let module = differentiated(text)?;
    let mut random = Random(1);
    let function = module.get_str("main").ok_or("there is no @main")?;
    let body = function.view();
    let View::Function { params, .. } = body.view(body.root()) else {
        return Err("@main is no function of tensors".into());
    };
    let inputs: Option<Vec<Value>> =
        params.iter().map(|param| input_of(body, param, &mut random)).collect();
    let inputs = inputs.ok_or("a parameter has no shape")?;
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
    let cx = tenon_compiler::testing::cx();
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
    passes::run(&registry, &plan, &module, &mut context)
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

/// A random value of a parameter.
fn input_of(body: BodyView<'_>, param: Expr, random: &mut Random) -> Option<Value> {
    let View::Var { name } = body.view(param) else { return None };
    let is_positive = body.terms().str(name).starts_with("pos");
    value_of(body.terms(), body.ty(param)?, is_positive, random)
}

fn value_of(terms: Terms<'_>, ty: Type, is_positive: bool, random: &mut Random) -> Option<Value> {
    if let TypeView::Tuple(fields) = terms.ty(ty) {
        let fields = fields.iter().map(|&field| value_of(terms, field, is_positive, random));
        return Some(Value::Tuple(Tuple::new(fields.collect::<Option<_>>()?)));
    }
    let (_, shape) = terms.static_tensor(ty)?;
    let shape: Vec<usize> = shape.iter().map(|&extent| extent as usize).collect();
    let mut element = || match is_positive {
        true => random.next() / 2.0 + 1.0,
        false => random.next(),
    };
    let elements: Vec<f64> = (0..shape.iter().product()).map(|_| element()).collect();
    Some(Value::Tensor(Tensor::from_vec(shape, elements)))
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
        return Value::Tuple(Tuple::new(fields));
    }
    let mut elements = numbers(value);
    elements[index] += step;
    let shape = value.to_tensor().map_or(Vec::new(), |tensor| tensor.shape().to_vec());
    Value::Tensor(Tensor::from_vec(shape, elements))
}
