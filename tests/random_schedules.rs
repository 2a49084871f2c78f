//! Random traces of schedule primitives, on programs of several shapes: each primitive is refused, or leaves a program that is
//! well-formed and computes the same.
//!
//! Primitives run one after the other, each as a trace of its own, so that one that is refused stops nothing. Each of them has
//! to be applied somewhere.

use std::collections::BTreeMap;
use std::path::Path;

use tenon_compiler::diagnostics::Source;
use tenon_compiler::ir::{Context, Cx, Module};
use tenon_compiler::passes;
use tenon_compiler::passes::{Instrument, PassContext, Validate, VerifyEach, plan};
use tenon_compiler::registry::Registry;
use tenon_compiler::testing::Random;
use tenon_compiler::text::{NoWeights, WeightsPolicy, parse_module, print_module};
use tenon_plugin_api::ir::{Kind, View, Walk};

const SEEDS: u64 = 1000;
const STEPS: usize = 8;
/// What makes plain code of blocks, and of kinds of loops.
const LOWERING: &str = "tir.CompactBuffers, tir.LowerBlocks, tir.FlattenBuffer, tir.Simplify, \
                        tir.VectorizeLoop{lanes=4}, tir.UnrollLoop, tir.Simplify";

/// Programs with extents `P`, `Q` and `R`, which may be symbols.
const PROGRAMS: &[&str] = &[
    include_str!("random_schedules/chain.ir"),
    include_str!("random_schedules/product.ir"),
    include_str!("random_schedules/softmax.ir"),
    include_str!("random_schedules/window.ir"),
    include_str!("random_schedules/lines.ir"),
    include_str!("random_schedules/halves.ir"),
    include_str!("random_schedules/padded.ir"),
    include_str!("random_schedules/rows.ir"),
    include_str!("random_schedules/best.ir"),
];

#[test]
fn each_primitive_is_refused_or_keeps_what_is_computed() {
    let registry = registry();
    let mut counts: BTreeMap<String, [u32; 2]> = BTreeMap::new();
    for seed in 0..SEEDS {
        run(&registry, seed, &mut counts);
    }
    println!("primitive: applied, refused\n{counts:?}");
    let finders =
        ["block", "blocks", "anchor", "loops", "loop", "producers", "consumers", "children"];
    let draws =
        ["sample_categorical", "sample_perfect_tile", "sample_tile", "sample_compute_location"];
    for primitive in tenon_schedule::primitives() {
        let is_finder = [&finders[..], &draws].concat().contains(&primitive.name);
        let applied = counts.get(primitive.name).map_or(0, |count| count[0]);
        assert!(is_finder || applied > 0, "`{}` was never applied", primitive.name);
    }
}

/// Rows of so many elements.
fn rows(registry: &Registry, extent: i64, attrs: &str) -> Module {
    let text = format!(
        "prim @rows(%A: f32[{extent}], out %B: f32[{extent}]) {attrs}{{
  for %i in 0..{extent} {{
    block \"B\" (%v: spatial = %i) {{
      %B[%v] = %A[%v] * 2.0
    }}
  }}
}}
"
    );
    let cx = Cx::with_operators(registry.operators());
    parse_module(&cx, &Source::new("rows", text.as_str()), &mut NoWeights)
        .unwrap_or_else(|errors| panic!("{}\n{text}", errors.render(false)))
}

/// What an attribute of the only program says.
fn said(module: &Module, key: &str) -> String {
    let (_, program) = module.iter().next().expect("there is a program");
    let body = program.view();
    let attrs = body.terms().attrs(body.attrs(body.root()));
    attrs.str(key).expect("it is a text").to_owned()
}

/// The integers of the list behind `decision = `.
fn decision(trace: &str) -> Vec<i64> {
    let behind = trace.split_once("decision = ").expect("it says what was drawn").1;
    let list = behind.split(')').next().unwrap_or_default().trim_matches(['[', ']']);
    list.split(", ").map(|number| number.parse().expect("a number")).collect()
}

/// What `pipeline` makes of a module, unchecked.
fn made(registry: &Registry, pipeline: &str, module: &Module) -> Result<Module, String> {
    let plan = plan(registry, pipeline).expect("a pipeline");
    passes::run(registry, &plan, module, &mut PassContext::default())
        .map_err(|error| error.to_diagnostic().render(false))
}

fn registry() -> Registry {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    Registry::open(&root.join("registry.toml")).expect("the registry is readable")
}

#[test]
fn tiles_that_are_drawn_are_those_of_the_extent_and_replay_s056() {
    let registry = registry();
    for extent in [128, 257, 1470, 12] {
        let module = rows(&registry, extent, "");
        let mut counts: BTreeMap<Vec<i64>, u32> = BTreeMap::new();
        let count = if extent == 12 { 2 } else { 4 };
        let names = ["a", "b", "c", "d"][..count].join(", ");
        for seed in 0..300 {
            let trace = format!(
                "b = block(\\\"B\\\"); [i] = loops(b); [{names}] = sample_perfect_tile(i, {count}); split(i, [{names}])"
            );
            let drawn = format!("tir.Schedule{{trace=\"{trace}\", seed={seed}}}");
            let after = made(&registry, &drawn, &module).expect("it applies");
            let trace = said(&after, "trace");
            let factors = decision(&trace);
            assert_eq!(factors.iter().product::<i64>(), extent, "{trace}");
            assert_eq!(factors.len(), count, "{trace}");
            if seed < 10 {
                let again =
                    format!("tir.Schedule{{trace=\"{}\", seed=77}}", trace.replace('"', "\\\""));
                let again = made(&registry, &again, &module).expect("it applies");
                let print = |module: &Module| print_module(module, &mut WeightsPolicy::inline());
                assert_eq!(print(&again), print(&after));
            }
            *counts.entry(factors).or_default() += 1;
        }
        // 1, 2, 3, 4, 6 or 12 as the first of two, each as often as the others.
        let is_even = |count: &u32| (25..80).contains(count);
        assert!(extent != 12 || (counts.len() == 6 && counts.values().all(is_even)), "{counts:?}");
    }
}

#[test]
fn candidates_are_drawn_as_often_as_their_weights_say_s056() {
    let registry = registry();
    let module = rows(&registry, 128, "");
    let mut counts = [0u32; 4];
    for seed in 0..1000 {
        let trace = "b = block(\\\"B\\\"); [i] = loops(b); \
                     n = sample_categorical([4, 8, 16, 32], weights = [10, 20, 0, 70]); split(i, [_, n])";
        let drawn = format!("tir.Schedule{{trace=\"{trace}\", seed={seed}}}");
        let after = made(&registry, &drawn, &module).expect("it applies");
        counts[decision(&said(&after, "trace"))[0] as usize] += 1;
    }
    for (count, wanted) in counts.into_iter().zip([100, 200, 0, 700]) {
        assert!(count.abs_diff(wanted) <= 70, "{counts:?}");
    }
}

#[test]
fn a_mutation_draws_other_tiles_of_the_same_extent_s059() {
    let registry = registry();
    let mut drawn: BTreeMap<Vec<i64>, u32> = BTreeMap::new();
    for seed in 0..1000 {
        let attrs = format!(
            "{{ mutation = {seed}, schedule = \"b = block(\\\"B\\\"); [i] = loops(b); [a, b_1, c, d] = \
             sample_perfect_tile(i, 4, decision = [4, 32, 4, 1]); split(i, [a, b_1, c, d])\" }} "
        );
        let module = rows(&registry, 512, &attrs);
        match made(&registry, "tune.MutateSchedule", &module) {
            Ok(after) => {
                let factors = decision(&said(&after, "schedule"));
                assert_eq!(factors.iter().product::<i64>(), 512, "{factors:?}");
                *drawn.entry(factors).or_default() += 1;
            }
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    drawn.remove(&vec![4, 32, 4, 1]);
    assert!(drawn.len() > 15, "{drawn:?}");
}

fn run(registry: &Registry, seed: u64, counts: &mut BTreeMap<String, [u32; 2]>) {
    let mut random = Random::new(seed);
    let mut text = PROGRAMS[random.below(PROGRAMS.len())].to_owned();
    for name in ["P", "Q", "R"] {
        let extent = match random.below(4) {
            0 => name.to_lowercase(),
            _ => [1, 2, 3, 4, 7, 8, 12, 13][random.below(8)].to_string(),
        };
        text = with_extent(&text, name, &extent);
    }
    let source = Source::new("random", text.as_str());
    let cx = Cx::with_operators(registry.operators());
    let mut module = parse_module(&cx, &source, &mut NoWeights)
        .unwrap_or_else(|errors| panic!("{}\n{text}", errors.render(false)));
    for _ in 0..STEPS {
        let (name, trace) = instruction(&mut random, &module);
        let pipeline =
            format!("tir.Schedule{{trace=\"{}\", seed={seed}}}", trace.replace('"', "\\\""));
        let count = counts.entry(name).or_default();
        match pass(registry, &pipeline, &module, seed) {
            Ok(after) => {
                count[0] += 1;
                module = after;
            }
            Err(error) => {
                let text = print_module(&module, &mut WeightsPolicy::inline());
                assert!(error.contains(" is refused: "), "seed {seed}: {trace}\n{error}\n{text}");
                count[1] += 1;
            }
        }
    }
    // What is behind in the pipeline takes what the primitives leave.
    let lowered = pass(registry, LOWERING, &module, seed);
    if let Err(error) = lowered {
        let text = print_module(&module, &mut WeightsPolicy::inline());
        panic!("seed {seed}: {error}\n{text}");
    }
}

/// What a pipeline makes of a module, each pass checked and compared with what was before it.
fn pass(registry: &Registry, pipeline: &str, module: &Module, seed: u64) -> Result<Module, String> {
    let plan = plan(registry, pipeline).expect("a pipeline");
    let instruments: Vec<Box<dyn Instrument>> =
        vec![Box::new(VerifyEach::default()), Box::new(Validate::new(seed))];
    let mut context = PassContext { instruments, ..PassContext::default() };
    passes::run(registry, &plan, module, &mut context)
        .map_err(|error| error.to_diagnostic().render(false))
}

/// The text with an extent in the place of a name that stands alone.
fn with_extent(text: &str, name: &str, extent: &str) -> String {
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || "%_\"".contains(c));
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(name) {
        let (before, behind) = (&rest[..at], &rest[at + name.len()..]);
        let is_alone = !is_word(before.chars().last()) && !is_word(behind.chars().next());
        out += before;
        out += if is_alone { extent } else { name };
        rest = behind;
    }
    out + rest
}

/// A block: its name, how many loops are around it, and the buffers that it accesses.
struct Found {
    name: String,
    loops: usize,
    buffers: Vec<String>,
}

fn blocks(module: &Module) -> Vec<Found> {
    let (_, program) = module.iter().next().expect("there is a program");
    let body = program.view();
    let terms = module.cx().terms();
    let (mut found, mut loops): (Vec<Found>, usize) = (Vec::new(), 0);
    for step in body.walk(body.root()) {
        match step {
            Walk::Enter(stmt) => match body.view(stmt) {
                View::For { .. } => loops += 1,
                View::Block(block) => {
                    let regions = block.reads.iter().chain(block.writes.iter());
                    let name = |region| match body.view(region) {
                        View::Region { buffer, .. } => match body.view(buffer) {
                            View::Buffer { name, .. } => terms.str(name).to_owned(),
                            _ => String::new(),
                        },
                        _ => String::new(),
                    };
                    let buffers = regions.map(name).collect();
                    found.push(Found { name: terms.str(block.name).to_owned(), loops, buffers });
                }
                _ => {}
            },
            Walk::Leave(stmt) if body.kind(stmt) == Kind::FOR => loops -= 1,
            Walk::Leave(_) => {}
        }
    }
    found
}

/// A primitive, and a trace that applies it to something.
fn instruction(random: &mut Random, module: &Module) -> (String, String) {
    let blocks = blocks(module);
    let block = &blocks[random.below(blocks.len())];
    let other = &blocks[random.below(blocks.len())];
    let list = |prefix: &str, count: usize| -> String {
        let names: Vec<String> = (0..count).map(|at| format!("{prefix}{at}")).collect();
        names.join(", ")
    };
    let mut trace = format!("b = block(\"{}\")", block.name);
    if block.loops > 0 {
        trace += &format!("; [{}] = loops(b)", list("l", block.loops));
    }
    if other.name != block.name && other.loops > 0 {
        trace +=
            &format!("; c = block(\"{}\"); [{}] = loops(c)", other.name, list("m", other.loops));
    }
    let each = format!("l{}", random.below(block.loops.max(1)));
    let second = format!("l{}", random.below(block.loops.max(1)));
    let buffer = match block.buffers.len() {
        0 => String::new(),
        count => block.buffers[random.below(count)].clone(),
    };
    let factor = [1, 2, 3, 4, 5, 7][random.below(6)];
    let tail = ["guard", "mask", "cut", "shift", "pad", "perfect"][random.below(6)];
    let scope = ["global", "shared", "local"][random.below(3)];
    let at = format!("m{}", random.below(other.loops.max(1)));
    let map = ["(i, j) -> (j, i)", "(i, j) -> (i / 2, j, i % 2)", "(i) -> (i / 2, i % 2)"];
    let map = map[random.below(3)];
    let iterators = ["(i, j) -> (j, i)", "(i, j) -> (j / 2, i, j % 2)", "(i, j, k) -> (k, i)"];
    let iterators = iterators[random.below(3)];
    let boxes = ["(i, j) -> (j, i)", "(i, j) -> (j / 2, i, j % 2)", "(i, j) -> (i * 8 + j)"];
    let box_map = [boxes[0], boxes[1], boxes[2], "(i) -> (i / 2, i % 2)"][random.below(4)];
    let stages = ["[0, 1]", "[0, 2]", "[1, 0]", "[0, 0, 1]", "[0, 1, 2]"][random.below(5)];
    let order = ["[0, 1]", "[1, 0]", "[1, 0, 2]", "[2, 1, 0]"][random.below(4)];
    let first = random.below(2);
    let multiples = ["[2, 3]", "[1, 4]", "[4, 3, 2]", "[1, 5, 1]"][random.below(4)];
    let choices = [
        format!("split({each}, [_, {factor}], tail = {tail})"),
        format!("split({each}, [_, {factor}], tail = {tail})"),
        format!("split({each}, [{factor}, _])"),
        format!("fuse([{each}, {second}])"),
        format!("reorder([{each}, {second}])"),
        format!("reorder([{each}, {second}])"),
        format!("partition({each}, [{factor}])"),
        format!("merge([{each}, {at}])"),
        String::from("merge([l0, m0])"),
        format!("add_unit_loop({each})"),
        format!("reorder_iterators(b, {order})"),
        format!("parallel({each})"),
        format!("vectorize({each})"),
        format!("unroll({each})"),
        format!("bind({each}, threadIdx_x)"),
        String::from("inline(b)"),
        String::from("reverse_inline(b)"),
        format!("compute_at(b, {at})"),
        format!("compute_at(b, {at})"),
        String::from("p = sample_compute_location(b); compute_at(b, p)"),
        format!("[s, t] = sample_perfect_tile({each}, 2); split({each}, [s, t])"),
        format!("s = sample_categorical([2, 3, 5]); split({each}, [_, s], tail = {tail})"),
        format!("reverse_compute_at(b, {at})"),
        format!("reverse_compute_at(b, {at})"),
        format!("epilogue_at(b, {each})"),
        format!("cache_read(b, \"{buffer}\", {scope})"),
        format!("cache_write(b, \"{buffer}\", {scope})"),
        String::from("skip_zeros(b)"),
        format!("decompose_reduction(b, {each})"),
        format!("rfactor({each})"),
        format!("transform_layout(b, \"{buffer}\", \"{map}\")"),
        format!("transform_layout(b, \"{buffer}\", \"{map}\", holes = leave)"),
        format!("transform_layout(b, \"{buffer}\", \"{map}\", pad = \"7\")"),
        format!("transform_block_layout(b, \"{box_map}\")"),
        format!("join_iterators(b, {first})"),
        format!("join_axes(b, \"{buffer}\", {first})"),
        format!("[s, t] = sample_tile({each}, 2); split({each}, [_, s, t], tail = {tail})"),
        format!("decompose_padding(b, {each})"),
        format!("blockize({each})"),
        String::from("blockize([b])"),
        String::from("blockize([b, c])"),
        format!("pad_einsum(b, {multiples})"),
        format!("set_scope(b, \"{buffer}\", {scope})"),
        format!("reindex_cache_read(b, \"{buffer}\", {scope}, \"{iterators}\")"),
        format!("reindex_cache_write(b, \"{buffer}\", {scope}, \"{iterators}\")"),
        format!("reindex(b, \"{buffer}\")"),
        format!("compute_at(b, {at}); rolling_buffer(b, \"{buffer}\")"),
        format!("compute_at(b, {at}); rolling_buffer(b, \"{buffer}\")"),
        format!("compute_at(b, {at}); rolling_buffer(b, \"{buffer}\")"),
        format!("compute_at(b, {at}); rolling_buffer(b, \"{buffer}\")"),
        format!("rolling_buffer(b, \"{buffer}\")"),
        format!("compute_at(b, {at}); pipeline({at}, {stages})"),
        format!("pipeline({each}, {stages}, order = [1, 0])"),
        format!("storage_align(b, \"{buffer}\", -2, 8, {factor})"),
        format!("annotate({each}, \"settled\")"),
        format!("unannotate({each}, \"settled\")"),
        format!("tensorize({each}, \"x86.fma.f32x8\")"),
        format!("tensorize({each}, \"x86.fma.f32x8\")"),
    ];
    let chosen = &choices[random.below(choices.len())];
    let last = chosen.rsplit("; ").next().unwrap_or_default();
    let name = last.split('(').next().unwrap_or_default().to_owned();
    (name, format!("{trace}; {chosen}"))
}

/// What an index is made of is told up to some depth, so that a long computation takes neither the stack nor more than linear time.
#[test]
fn an_index_may_be_computed_in_many_steps() {
    let registry = registry();
    let step = |at: usize| match at % 2 {
        0 => format!("let %x{}: i64 = %x{at} floordiv 2 + %i", at + 1),
        _ => format!("let %x{}: i64 = %x{at} % 37 + %i * 3", at + 1),
    };
    let steps: Vec<String> = (0..500).map(step).collect();
    let text = format!(
        "prim @steps(%A: f32[64], out %B: f32[64]) {{
  for %j in 0..64 {{
    block \"B\" (%i: spatial = %j) {{
      let %x0: i64 = %i
      {}
      %B[%i] = %A[%x{} % 64]
    }}
  }}
}}
",
        steps.join("\n"),
        steps.len()
    );
    let cx = Cx::with_operators(registry.operators());
    let module = parse_module(&cx, &Source::new("steps", text.as_str()), &mut NoWeights)
        .unwrap_or_else(|errors| panic!("{}", errors.render(false)));
    let after = made(&registry, "tir.ApplySchedules, tir.CompactBuffers", &module);
    assert_eq!(after.map(|module| module.len()), Ok(1));
}
