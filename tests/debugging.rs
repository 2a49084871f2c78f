//! From a failing command to a small module that shows why: reproducers, `bisect`, `reduce`, `--validate`.

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "models/program.rs"]
mod program;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use program::{profile, tenon};

/// A folder with a registry of our own plugins and of one whose passes make mistakes.
struct House(tempfile::TempDir);

impl House {
    fn new() -> Self {
        let house = Self(tempfile::tempdir().expect("a folder"));
        let registry = format!(
            "schema = 1\n[[plugins.dir]]\npath = {:?}\nenable = \"all\"\n\
             [[plugins.dir]]\npath = \"wrong\"\nenable = \"all\"\n",
            profile()
        );
        fs::write(house.path("registry.toml"), registry).expect("it can be written");
        fs::create_dir(house.path("wrong")).expect("a folder in it");
        let library = profile().join("examples/libwrong.so");
        fs::copy(library, house.path("wrong/libwrong.so")).expect("the plugin was built");
        house
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Sixty bindings, one of them a `tanh` and one an `exp`, and a function that nothing calls.
    fn module(&self) -> PathBuf {
        let mut text = String::from("fn @other(%x: f32[4]) { ret %x }\nfn @main(%x0: f32[4]) {\n");
        for i in 0..60 {
            let op = match i {
                37 => "tanh",
                45 => "exp",
                _ => "nn.relu",
            };
            text.push_str(&format!("  %x{} = {op}(%x{i})\n", i + 1));
        }
        text.push_str("  ret %x60\n}\n");
        let path = self.path("module.ir");
        fs::write(&path, text).expect("it can be written");
        path
    }

    fn tenon(&self, command: &str) -> Command {
        let mut tenon = tenon();
        tenon.arg(command).arg("--registry").arg(self.path("registry.toml"));
        tenon
    }
}

/// Runs a command to its end: its exit code, and what it said on both outputs.
#[track_caller]
fn say(command: &mut Command) -> (i32, String) {
    let Output { status, stdout, stderr } = command.output().expect("the program was built");
    let said = [stdout, stderr].map(|bytes| String::from_utf8(bytes).expect("it says text"));
    (status.code().expect("it exits"), said.concat())
}

#[test]
fn a_failing_pass_leaves_a_reproducer_that_fails_again_and_can_be_reduced() {
    let house = House::new();
    let (reproducer, small) = (house.path("again.ir"), house.path("small.ir"));
    let mut opt = house.tenon("opt");
    opt.arg(house.module()).args(["-p", "relax.CanonicalizeBindings, test.RefuseTanh"]);
    let (code, said) = say(opt.arg("--reproducer").arg(&reproducer));
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("tanh is not to my taste"), "{said}");
    assert!(said.contains(&format!("tenon opt {}", reproducer.display())), "{said}");

    let (code, said) = say(house.tenon("opt").arg(&reproducer));
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("pass `test.RefuseTanh` in function @main"), "{said}");

    let (code, said) = say(house.tenon("reduce").arg(&reproducer).arg("-o").arg(&small));
    assert_eq!(code, 0, "{said}");
    let text = fs::read_to_string(&small).expect("the smaller module");
    let program: Vec<&str> = text.lines().filter(|line| !line.starts_with("//")).collect();
    assert_eq!(program.len(), 4, "{text}");
    assert!(program[1].contains("tanh(%x0)"), "{text}");

    let (code, said) = say(house.tenon("opt").arg(&small));
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("tanh is not to my taste"), "{said}");
}

#[test]
fn times_of_a_run_that_fails_within_a_group_are_parts_of_a_whole() {
    let house = House::new();
    let mut opt = house.tenon("opt");
    opt.arg(house.module()).args(["-p", "fixpoint(relax.Normalize, test.RefuseTanh)"]);
    let (code, said) = say(opt.arg("--time-passes"));
    assert_eq!(code, 1, "{said}");
    let rows = said.lines().skip_while(|line| !line.contains("functions  sum ms"));
    let rows: Vec<&str> = rows.skip(1).take_while(|line| !line.ends_with("total")).collect();
    assert!(rows.iter().any(|row| row.ends_with("test.RefuseTanh (failed)")), "{said}");
    for row in rows {
        let part = row.split_whitespace().nth(1).expect("a row has a percentage");
        assert!(part == "-" || part.parse::<f64>().is_ok_and(|part| part <= 100.0), "{said}");
    }
}

/// Behind the passes that run the module enters no phase, so what is left of one can be checked and run on.
#[test]
fn a_limit_of_passes_leaves_the_module_in_its_phase() {
    let house = House::new();
    let file = house.path("part.ir");
    for limit in 0..24 {
        let mut opt = tenon();
        opt.arg("opt").arg(house.module()).args(["-p", "default", "--pass-limit"]);
        let (code, said) = say(opt.arg(limit.to_string()).arg("-o").arg(&file));
        assert_eq!((code, &*said), (0, ""), "{limit}");
        let (code, said) = say(tenon().arg("check").arg(&file));
        assert_eq!(code, 0, "{limit}: {said}");
    }
}

/// What is said of groups is no longer than what they hold, however deep they are.
#[test]
fn pipelines_of_deep_groups_are_explained() {
    const DEPTH: usize = 50_000;
    let house = House::new();
    let (begins, ends) = ("sequential(".repeat(DEPTH), ")".repeat(DEPTH));
    let registry = format!("schema = 1\n[pipelines.deep]\npasses = [\"{begins}{ends}\"]\n");
    fs::write(house.path("registry.toml"), registry).expect("it can be written");
    let (code, said) = say(house.tenon("pipeline").args(["explain", "deep"]));
    assert_eq!(code, 0, "it fails");
    assert_eq!(said.lines().filter(|line| line.contains("sequential")).count(), DEPTH);
    assert!(said.len() < DEPTH * 300, "{} bytes", said.len());
}

/// What was to be established is not, so a phase is not entered; the reproducer shows that again.
#[test]
fn a_phase_that_is_not_reached_leaves_a_reproducer() {
    let house = House::new();
    let again = house.path("again.ir");
    let mut opt = tenon();
    opt.arg("opt").arg(house.module()).args(["-p", "default", "--disable", "LegalizeOps"]);
    let (code, said) = say(opt.arg("--reproducer").arg(&again));
    assert_eq!(code, 1, "{said}");
    let message = "the module cannot enter phase `fuse`: @main: `nn.relu` is still called";
    assert!(said.contains(message), "{said}");
    let who =
        "`relax.LegalizeOps` establishes `legal`; it is disabled, or above the optimization level";
    assert!(said.contains(who), "{said}");
    let (code, said) = say(tenon().arg("opt").arg(&again));
    assert_eq!(code, 1, "{said}");
    assert!(said.contains(message), "{said}");
}

#[test]
fn a_file_that_is_no_reproducer_needs_a_pipeline() {
    let house = House::new();
    let (code, said) = say(house.tenon("opt").arg(house.module()));
    assert_eq!(code, 1);
    assert!(said.contains("no pipeline is given") && said.contains("--pipeline"), "{said}");
}

const PASSES: &str =
    "relax.Normalize, relax.CanonicalizeBindings, test.Miscompile, relax.DeadCodeElimination";

#[test]
fn validation_names_the_pass_that_changes_a_result() {
    let house = House::new();
    let mut opt = house.tenon("opt");
    opt.arg(house.module()).args(["-p", PASSES]);
    let (code, said) = say(&mut opt);
    assert_eq!(code, 0, "{said}");
    let (code, said) = say(opt.arg("--validate"));
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("at pass `test.Miscompile`: it changed what @main computes"), "{said}");
}

#[test]
fn no_pass_of_the_default_pipeline_changes_what_a_network_computes() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for model in ["tests/models/mlp.onnx", "examples/digits/digits.onnx"] {
        let mut opt = tenon();
        opt.arg("opt").arg(root.join(model)).args([
            "-D",
            "batch=2",
            "-p",
            "default",
            "--opt-level",
            "3",
        ]);
        opt.args(["--verify-each", "--validate=7", "-o"]).arg(folder.path().join("lowered.ir"));
        let (code, said) = say(&mut opt);
        assert_eq!(code, 0, "{model}: {said}");
    }
}

#[test]
fn bisect_finds_the_pass_that_changes_a_result() {
    let house = House::new();
    let mut bisect = house.tenon("bisect");
    bisect.arg(house.module()).args(["-p", PASSES, "--json", "-o"]).arg(house.path("before.ir"));
    let (code, said) = say(&mut bisect);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("\"pass\": \"test.Miscompile\""), "{said}");
    let (code, said) = say(house.tenon("opt").arg(house.path("before.ir")).arg("--validate"));
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("it changed what @main computes"), "{said}");
}

#[test]
fn bisect_asks_a_command() {
    let house = House::new();
    // Good is what still calls exp.
    let mut bisect = house.tenon("bisect");
    bisect.arg(house.module()).args(["-p", PASSES, "--", "grep", "-q", "exp", "{}"]);
    let (code, said) = say(&mut bisect);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("test.Miscompile"), "{said}");
    // Good is what is there: nothing is wrong in the end.
    let mut bisect = house.tenon("bisect");
    bisect.arg(house.module()).args(["-p", PASSES, "--", "test", "-f"]);
    let (code, said) = say(&mut bisect);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("nothing is wrong after the last pass"), "{said}");
    // And nothing is good before the first pass.
    let mut bisect = house.tenon("bisect");
    bisect.arg(house.module()).args(["-p", PASSES, "--", "false"]);
    let (code, said) = say(&mut bisect);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("the command fails before any pass runs"), "{said}");
}

#[test]
fn reduce_keeps_what_makes_a_command_fail() {
    let house = House::new();
    let small = house.path("small.ir");
    let mut reduce = house.tenon("reduce");
    reduce.arg(house.module()).arg("-o").arg(&small);
    // Fails where there is a tanh.
    let (code, said) = say(reduce.args(["--", "sh", "-c", "! grep -q tanh {}"]));
    assert_eq!(code, 0, "{said}");
    let text = fs::read_to_string(&small).expect("the smaller module");
    assert_eq!(text.lines().count(), 4, "{text}");
    assert!(text.contains("tanh(%x0)") && !text.contains("@other"), "{text}");
    // What does not fail cannot be reduced, and nothing is written.
    let mut reduce = house.tenon("reduce");
    reduce.arg(house.module()).arg("-o").arg(house.path("none.ir")).args(["--", "true"]);
    let (code, said) = say(&mut reduce);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("nothing fails") && !house.path("none.ir").exists(), "{said}");
}

#[test]
fn validation_says_what_it_did_not_compare() {
    let house = House::new();
    let path = house.path("endless.ir");
    let text =
        "fn @main(%x: f32[4]) -> f32[4] {\n  %y = @main(%x)\n  %z = add(%y, %y)\n  ret %z\n}\n";
    fs::write(&path, text).expect("it can be written");
    let mut opt = house.tenon("opt");
    opt.arg(&path).args(["-p", "relax.Normalize, relax.LegalizeOps", "--validate"]);
    let (code, said) = say(&mut opt);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("validate: nothing was compared"), "{said}");
    assert!(said.contains("@main: not compared: in `@main`: more than 262144 functions"), "{said}");
}

#[test]
fn compiled_code_is_compared_with_the_evaluator() {
    let house = House::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut opt = house.tenon("opt");
    opt.arg(root.join("examples/digits/digits.onnx")).args(["-D", "batch=2", "-p", "default"]);
    let (code, said) = say(opt.args(["--validate=compiled", "-o"]).arg(house.path("lowered.ir")));
    assert_eq!(code, 0, "{said}");
    let same = "what was compiled of @main computes what the evaluator does";
    assert!(said.contains(same), "{said}");
    let mut opt = house.tenon("opt");
    let wrong = format!("{PASSES}, default");
    opt.arg(house.module()).args(["-p", &wrong, "--validate=compiled"]);
    let (code, said) = say(&mut opt);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("compiled of @main computes something else"), "{said}");
}

/// Where what is compiled of a model is first wrong, with a mistake in the pipeline of kernels or in that of code.
#[test]
fn the_first_wrong_kernel_is_found_and_who_is_at_fault() {
    let house = House::new();
    let input = format!("x0={}", ones(&house, "x0.npy", &[4]).display());
    // Each operator a kernel of its own, so that not all came from all.
    let compare = |more: &str, json: bool| {
        let mut compare = house.tenon("compare");
        if !more.is_empty() {
            fs::write(house.path("more.toml"), format!("schema = 1\n{more}\n")).unwrap();
            compare.arg("--registry").arg(house.path("more.toml"));
        }
        if json {
            compare.arg("--json");
        }
        compare.args(["--input", &input, "--disable", "relax.FuseOps"]).arg(house.module());
        say(&mut compare)
    };
    let (code, said) = compare("", false);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("1 output agrees; the largest error is "), "{said}");

    let program = "[pipelines.kernels]\npasses = [\"phase(ingest)\", \"test.Miscompile\", \
        \"phase(optimize)\", \"phase(legalize)\", \"phase(fuse)\", \"relax.ReturnIntermediates\"]";
    let code_of = "[pipelines.code]\npasses = [\"test.MiscompileProgram\", \"phase(plan)\", \
        \"phase(target)\", \"phase(builtin)\"]";
    for (pipeline, fault, text) in [
        (program, "program", "computes these numbers when it is evaluated too: a pass made it"),
        (code_of, "code", "its schedule or its code"),
    ] {
        let (code, said) = compare(pipeline, false);
        assert_eq!(code, 1, "{said}");
        assert!(said.contains("first wrong at ") && said.contains("module.ir:48"), "{said}");
        assert!(said.contains(text) && said.contains("output `0` differs"), "{said}");
        let (_, said) = compare(pipeline, true);
        assert!(said.contains(&format!("\"fault\": \"{fault}\"")), "{said}");
    }
}

/// A mistake of as much as rounding makes of a number that lies between two others: by a half, before it is rounded to f16, and to bytes.
#[test]
fn what_was_rounded_may_be_a_step_off() {
    let house = House::new();
    let input = format!("x={}", ones(&house, "x.npy", &[4]).display());
    let wrong = "schema = 1\n[pipelines.kernels]\npasses = [\"phase(ingest)\", \"test.Miscompile\", \
        \"phase(optimize)\", \"phase(legalize)\", \"phase(fuse)\", \"relax.ReturnIntermediates\"]\n";
    fs::write(house.path("more.toml"), wrong).unwrap();
    let compare = |name: &str, lines: &str, more: &[&str]| {
        let module = house.path(name);
        let start = "%a = multiply(exp(%x), const(f32[], 0.5))";
        let text = format!("fn @main(%x: f32[4]) {{\n  {start}\n{lines}  ret %y\n}}\n");
        fs::write(&module, text).unwrap();
        let mut compare = house.tenon("compare");
        compare.arg("--registry").arg(house.path("more.toml")).args(["--input", &input]);
        say(compare.args(more).arg(module))
    };
    let to_byte = "  %b = round(add(%a, const(f32[], 40)))\n  \
        %c = cast(clip(%b) { max = 255.0, min = 0.0 }) { dtype = \"u8\" }\n";
    let byte = format!("{to_byte}  %y = add(%c, const(u8[], 0))\n");
    let number =
        format!("{to_byte}  %y = multiply(cast(%c) {{ dtype = \"f32\" }}, const(f32[], 0.1))\n");
    let half = "  %b = add(cast(%a) { dtype = \"f16\" }, const(f16[], 400))\n  \
        %y = cast(%b) { dtype = \"f32\" }\n";
    for (name, lines) in [("byte.ir", &byte), ("number.ir", &number), ("half.ir", &half.to_owned())]
    {
        let (code, said) = compare(name, lines, &[]);
        assert!(code == 0 && said.contains("1 output agrees"), "{name}: {said}");
        let (code, said) = compare(name, lines, &["--tolerance", "0.001"]);
        assert!(code == 1 && said.contains("output `0` differs"), "{name}: {said}");
    }
    let (code, said) = compare("fine.ir", "  %y = add(%a, const(f32[], 40))\n", &[]);
    assert!(code == 1 && said.contains("output `0` differs"), "{said}");
    // Numbers that are no steps of a scale have no neighbours.
    let (code, said) = compare("far.ir", "  %y = round(add(%a, const(f32[], 40)))\n", &[]);
    assert!(code == 1 && said.contains("output `0` differs"), "{said}");
}

#[test]
fn what_cannot_be_compared_is_told() {
    let house = House::new();
    let module = house.path("m.ir");
    fs::write(&module, "fn @f(%x: f32[4]) { ret %x }\n").unwrap();
    let (code, said) = say(house.tenon("compare").arg(&module));
    assert!(code == 1 && said.contains("no function `main`"), "{said}");
    let (code, said) = say(house.tenon("compare").arg(house.module()));
    assert!(code == 1 && said.contains("input `x0` is missing"), "{said}");
    let (code, said) = say(house.tenon("compare").arg(&module).args(["--with", "onnxruntime"]));
    assert!(code == 1 && said.contains("ONNX Runtime cannot read"), "{said}");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let digits = root.join("examples/digits/digits.onnx");
    let name = format!("image={}", ones(&house, "image.npy", &[2, 1, 8, 8]).display());
    let with =
        ["-D", "batch=2", "--input", &name, "--with", "onnxruntime", "--python", "no-such-python"];
    let (code, said) = say(house.tenon("compare").arg(&digits).args(with));
    assert!(code == 1 && said.contains("no-such-python"), "{said}");
}

/// By ONNX Runtime as well, where its wheel can be had.
#[test]
fn onnx_runtime_judges_what_is_compiled() {
    let house = House::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    if let Ok(why) = fs::read_to_string(root.join(".cache/models-unavailable")) {
        eprintln!("not compared with ONNX Runtime: {why}");
        return;
    }
    let python = root.join(".cache/venv/bin/python");
    let name = format!("image={}", ones(&house, "image.npy", &[2, 1, 8, 8]).display());
    let mut compare = house.tenon("compare");
    compare.arg(root.join("examples/digits/digits.onnx")).args(["--input", &name]);
    let (code, said) = say(compare.args(["--with", "onnxruntime", "--python"]).arg(python));
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("1 output agrees") && said.contains("of probability"), "{said}");
    assert!(said.contains(" were compared with nodes of the model; the largest"), "{said}");
}

#[test]
fn schedules_are_explained_and_measured() {
    let house = House::new();
    let module = house.path("product.ir");
    let text =
        "fn @main(%a: f32[24, 64]) {\n  %b = matmul(%a, %a) { transpose_b = true }\n  ret %b\n}\n";
    fs::write(&module, text).expect("it can be written");
    let library = house.path("product.so");
    let (code, said) = say(house
        .tenon("compile")
        .args(["--explain-schedules=declined", "--target", "haswell,threads=1", "-o"])
        .args([&library, &module]));
    assert_eq!(code, 0, "{said}");
    for line in [
        "@matmul computes matmul",
        "  rule       tenon_schedule_cpu::product::product",
        "  knobs      chunk = 0, rows = ",
        "  because    one operand lies along the columns",
        "  predicted  73.7 k operations, 14.6 k bytes, ",
        "  declined   tenon_schedule_cpu::winograd::winograd: the program is no convolution by Winograd's algorithm",
    ] {
        assert!(said.contains(line), "no `{line}` in {said}");
    }
    let input = format!("a={}", ones(&house, "a.npy", &[24, 64]).display());
    let (code, said) = say(house.tenon("run").args(["--profile", "--input", &input]).arg(&module));
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("% of peak") && said.contains("G operations a second"), "{said}");
    let row = said.lines().find(|line| line.contains("kernel0")).expect("a row of the kernel");
    let cells: Vec<&str> = row.split_whitespace().collect();
    // How large it is depends on what else the machine does.
    let peak: f64 = cells[3].parse().expect("its share of the peak");
    assert!(peak.is_finite() && peak >= 0.0, "{said}");
}

#[test]
fn an_output_that_no_memory_holds_is_an_error() {
    let house = House::new();
    let path = house.path("huge.ir");
    let text =
        "fn @main(%x: f32[1]) {\n  %y = broadcast_to(%x, shape(1099511627776))\n  ret %y\n}\n";
    fs::write(&path, text).expect("it can be written");
    for arguments in [&["--validate"][..], &["--validate=compiled"], &[]] {
        let mut run = house.tenon("run");
        run.arg(&path).args(arguments).arg("--input");
        run.arg(format!("x={}", ones(&house, "x.npy", &[1]).display()));
        let (code, said) = say(&mut run);
        assert_eq!(code, 1, "{arguments:?}: {said}");
        assert!(said.contains("no memory") || said.contains("bytes at a time"), "{said}");
    }
}

/// A file of ones.
fn ones(house: &House, name: &str, shape: &[usize]) -> PathBuf {
    let path = house.path(name);
    let shape_text: String = shape.iter().map(|extent| format!("{extent},")).collect();
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({shape_text}), }}");
    let padded = format!("{header:<117}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((padded.len() as u16).to_le_bytes());
    bytes.extend(padded.as_bytes());
    bytes.extend(1f32.to_le_bytes().repeat(shape.iter().product()));
    fs::write(&path, bytes).expect("it can be written");
    path
}
