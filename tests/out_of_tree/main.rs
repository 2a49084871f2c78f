//! The example plugins, built as their authors build them: `examples/c-pass` with a C compiler alone,
//! `examples/custom-pass` with cargo in a workspace of its own. Their fixtures run like those of the house.

use tenon_operators as _;

#[path = "../filetests/file_test.rs"]
mod file_test;
#[path = "../support/outside.rs"]
mod outside;
#[path = "../models/program.rs"]
mod program;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Failed, Trial};

use program::{run, succeed, tenon};

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let arguments = Arguments::from_args();
    let house = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("out_of_tree");
    let registry = house.join("registry.toml");
    // Each test is a process of its own when nextest runs them; the plugins are built by each that runs one,
    // and cargo and the compiler do nothing when there is nothing to do.
    let folders =
        ["c-pass", "custom-pass"].map(|name| root.join("examples").join(name).join("tests"));
    let mut trials = file_test::trials(root, &folders, &registry, arguments.filter.as_deref());
    if !arguments.list
        && let Err(error) = build(root, &house)
    {
        eprintln!("{}", error.message().unwrap_or("the example plugins cannot be built"));
        return ExitCode::FAILURE;
    }
    let plugins = house.join("plugins");
    trials.push(Trial::test("the_examples_pass_the_conformance_kit", move || conform(&plugins)));
    trials.push(Trial::test("a_c_plugin_links_nothing_of_the_host", move || links_nothing(&house)));
    trials.push(Trial::test("a_plugin_that_was_built_again_is_picked_up", move || rebuilt(root)));
    trials
        .push(Trial::test("an_operator_of_a_third_party_is_one_like_ours", move || operator(root)));
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Models in Acme's own domain, in both of its versions, import with its plugin and are refused with a word without it.
fn models(
    imported: &Path,
    said: impl Fn(bool, &[&str], &Path) -> Result<String, Failed>,
) -> Result<(), Failed> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/custom-op/tests");
    let output = imported.display().to_string();
    let import = ["opt", "--pipeline", "relax.Normalize", "-o", &output];
    for (file, wanted) in [
        ("moments_1.onnx", "acme.moments(%x) { axis = 1, correction = 0, keepdims = false }"),
        ("moments_2.onnx", "acme.moments(%x) { axis = 1, correction = 1, keepdims = false }"),
    ] {
        let file = folder.join(file);
        let told = said(true, &import, &file)?;
        let text = fs::read_to_string(imported).map_err(|error| format!("{told}{error}"))?;
        if !text.contains(wanted) {
            return Err(format!("`{wanted}` is expected in:\n{text}").into());
        }
        fs::remove_file(imported)?;
        let told = said(false, &import, &file)?;
        let wanted = ["Moments (acme.ops", "rules for other domains were looked for in", "release"];
        if wanted.iter().any(|wanted| !told.contains(wanted)) || imported.exists() {
            return Err(format!("it is to name what is missing:\n{told}").into());
        }
    }
    Ok(())
}

/// `examples/custom-op` is listed, inferred, evaluated here and in a process of its own; its bounds hold; without its
/// plugin the same file gives an error that names it.
fn operator(root: &'static Path) -> Result<(), Failed> {
    let house = tempfile::tempdir()?;
    let (folder, plugins) = (house.path().join("custom-op"), house.path().join("plugins"));
    check_out_of(
        root,
        &folder,
        "custom-op",
        &["src/lib.rs", "src/moments.rs", "src/dense_schedule.rs", "src/pairs.rs"],
    )?;
    fs::create_dir_all(&plugins)?;
    build_in(&folder, "libacme_operators.so", &plugins.join("libacme_operators.so"))?;
    build_c(root, "c-op/moments.c", &plugins.join("libc_op.so"))?;
    build_c(root, "c-op/softsign.c", &plugins.join("libc_softsign.so"))?;
    let ours = program::profile().display().to_string();
    let dir = |path: &str| format!("[[plugins.dir]]\npath = {path:?}\nenable = \"all\"\n");
    let registry = house.path().join("registry.toml");
    let text = format!("schema = 1\n{}{}", dir(&ours), dir("plugins"));
    let said = |text: &str, arguments: &[&str], file: &Path| -> Result<String, Failed> {
        fs::write(&registry, text)?;
        let mut command = tenon();
        command.args(arguments).arg(file).arg("--registry").arg(&registry);
        let output = run(&mut command)?;
        let said = [output.stdout, output.stderr].concat();
        Ok(String::from_utf8_lossy(&said).into_owned())
    };
    let expect = |said: String, wanted: &str| match said.contains(wanted) {
        true => Ok(()),
        false => Err(Failed::from(format!("`{wanted}` is expected in:\n{said}"))),
    };
    let file = root.join("examples/custom-op/tests/moments.ir");
    let folding = ["opt", "--pipeline", "relax.FoldConstant"];
    let folded = "(const(f32[2], [2, 6]), const(f32[2], [0.6666667, 2.6666667]))";
    expect(said(&text, &["ops", "show"], Path::new("acme.moments"))?, "default")?;
    expect(said(&text, &["check"], &file)?, "well formed")?;
    let in_c = root.join("examples/c-op/tests/moments.ir");
    expect(said(&text, &folding, &in_c)?, folded)?;
    // Of 6 elements, of which 4 numbers are computed.
    let estimated = said(&text, &["opt", "--pipeline", "tenon.EstimateCost"], &in_c)?;
    expect(estimated, "bytes = 40, flops = 24")?;
    let no_axis = house.path().join("no_axis.ir");
    fs::write(&no_axis, fs::read_to_string(&in_c)?.replace("axis = 1", "axis = 2"))?;
    expect(said(&text, &["check"], &no_axis)?, "`c.moments`: its attribute `axis` is no axis")?;
    expect(said(&text, &folding, &file)?, folded)?;
    let training = root.join("examples/custom-op/tests/training.ir");
    let differentiated = said(&text, &["opt", "--pipeline", "relax.Gradient"], &training)?;
    expect(differentiated, "multiply(%t_3, const(f32[], 1))")?;
    let bare = format!("schema = 1\n{}", dir(&ours));
    models(&house.path().join("imported.ir"), |registry, arguments, file| {
        said(if registry { &text } else { &bare }, arguments, file)
    })?;
    compiled(root, house.path(), |arguments, file| said(&text, arguments, file))?;
    compiled_from_c(root, house.path(), |arguments, file| said(&text, arguments, file))?;
    scheduled(root, &text, &bare, said)?;
    tensorized(root, house.path(), |registry, arguments, file| {
        said(if registry { &text } else { &bare }, arguments, file)
    })?;
    let isolated = format!("{text}[passes.\"relax.FoldConstant\"]\nisolate = true\n");
    expect(said(&isolated, &folding, &file)?, folded)?;
    let alone = format!("schema = 1\n{}", dir(&ours));
    let told = said(&alone, &["check"], &file)?;
    expect(told, &format!("no operator `acme.moments`; plugins were looked for in {ours}"))?;
    let other = house.path().join("other.ir");
    fs::write(
        &other,
        fs::read_to_string(&file)?.replace("acme.moments", "acme.mean_and_variance"),
    )?;
    expect(said(&text, &folding, &other)?, folded)?;
    let wrong = house.path().join("wrong.ir");
    fs::write(&wrong, fs::read_to_string(&file)?.replace("axis = 1", "correction = 2"))?;
    expect(said(&text, &["check"], &wrong)?, "`correction` cannot be 2: it must be at most 1")
}

/// The schedule of a third party is taken for the operator and the processor that it is for, and nowhere else.
fn scheduled(
    root: &Path,
    with: &str,
    without: &str,
    said: impl Fn(&str, &[&str], &Path) -> Result<String, Failed>,
) -> Result<(), Failed> {
    let file = root.join("examples/custom-op/tests/dense.ir");
    // The lines of the three programs: two products, of which one has columns that fill vectors, and another operator.
    let traces = |registry: &str, target: &str| -> Result<[bool; 3], Failed> {
        let mut arguments = vec!["opt", "--validate", "--pipeline", "tir.ApplySchedules"];
        arguments.extend(["--target", target]);
        let text = said(registry, &arguments, &file)?;
        let is_acmes = |name: &str| -> Result<bool, Failed> {
            let line = text.lines().find(|line| line.contains(name));
            let line = line.ok_or_else(|| format!("{name} is expected in:\n{text}"))?;
            // What no rule of Acme's knows is scheduled as any program is.
            let is_scheduled = line.contains("parallel(");
            is_scheduled.then_some(line.contains("anchor()")).ok_or_else(|| line.into())
        };
        let found = ["@dense", "@uneven", "@scale"].map(is_acmes);
        let [dense, uneven, scale] = found;
        Ok([dense?, uneven?, scale?])
    };
    for (registry, target, wanted) in [
        (with, "x86-64-v4,threads=4", [true, false, false]),
        (with, "x86-64-v3,threads=4", [false; 3]),
        (without, "x86-64-v4,threads=4", [false; 3]),
    ] {
        let found = traces(registry, target)?;
        if found != wanted {
            return Err(format!("{target}: {found:?}, and {wanted:?} is expected").into());
        }
    }
    Ok(())
}

/// An instruction of a third party is what a program that names it runs, and computes what its loops say.
fn tensorized(
    root: &Path,
    house: &Path,
    said: impl Fn(bool, &[&str], &Path) -> Result<String, Failed>,
) -> Result<(), Failed> {
    let file = root.join("examples/custom-op/tests/pairs.ir");
    let out = house.join("pairs.s");
    let compile =
        ["compile", "--target", "x86-64", "--emit", "asm", "-o", &out.display().to_string()];
    let told = said(true, &compile, &file)?;
    let text = fs::read_to_string(&out).map_err(|error| format!("{told}{error}"))?;
    if !text.contains("pmaddwd") {
        return Err(format!("`pmaddwd` is expected in:\n{text}").into());
    }
    if cfg!(target_arch = "x86_64") {
        let validate = ["opt", "--pipeline", "default", "--validate=compiled"];
        let computes = "what was compiled of @main computes what the evaluator does";
        let is_right = "same results  its code for this processor";
        let library = house.join("plugins/libacme_operators.so");
        for (arguments, of, wanted) in [
            (&validate[..], &file, computes),
            (&["plugins", "test", "--modules", "1"], &library, is_right),
        ] {
            let told = said(true, arguments, of)?;
            if !told.contains(wanted) {
                return Err(format!("`{wanted}` is expected in:\n{told}").into());
            }
        }
    }
    let told = said(false, &compile, &file)?;
    match told.contains("there is no intrinsic `acme.sse2.i16x4x2`") {
        true => Ok(()),
        false => Err(format!("it is to name what is missing:\n{told}").into()),
    }
}

/// A function that calls the operator is compiled with its neighbours, and the library runs where nobody knows the plugin.
fn compiled(
    root: &Path,
    house: &Path,
    said: impl Fn(&[&str], &Path) -> Result<String, Failed>,
) -> Result<(), Failed> {
    let library = house.join("compiled.so");
    let out = library.display().to_string();
    let file = root.join("examples/custom-op/tests/compiled.ir");
    let told = said(&["compile", "-o", &out], &file)?;
    if !library.exists() {
        return Err(format!("it does not compile: {told}").into());
    }
    // An array of two rows in NumPy's format, version 1.
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
    let mut array = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    array.extend(format!("{header:<117}\n").bytes());
    array.extend([1.0f32, 2.0, 3.0, 4.0, 6.0, 8.0].iter().flat_map(|x| x.to_le_bytes()));
    let input = house.join("x.npy");
    fs::write(&input, array)?;
    let given = format!("x={}", input.display());
    let output = run(tenon().args(["run", "--input", &given]).arg(&library))?;
    let text = String::from_utf8_lossy(&output.stdout);
    // The means, and the roots of 2 / 3 and of 8 / 3.
    match ["[2, 6]", "[0.8164966, 1.6329932]"].iter().all(|wanted| text.contains(wanted)) {
        true => Ok(()),
        false => Err(format!("{text} {}", String::from_utf8_lossy(&output.stderr)).into()),
    }
}

/// Programs that are written in C compute what their operators do, fuse with what is around them, and are called from C.
fn compiled_from_c(
    root: &Path,
    house: &Path,
    said: impl Fn(&[&str], &Path) -> Result<String, Failed>,
) -> Result<(), Failed> {
    let folder = root.join("examples/c-op");
    for plugin in ["example.c-op", "example.c-softsign"] {
        let tried = said(&["plugins", "test"], Path::new(plugin))?;
        let is_right = tried.contains("\ncompute of c.") && tried.contains(" passed, 0 failed, ");
        if !is_right {
            return Err(tried.into());
        }
    }
    let file = folder.join("tests/fused.ir");
    let passes = "relax.LegalizeOps, tir.AnnotateOpPattern, relax.FuseOps, relax.FuseTIR";
    let fused = said(&["opt", "--pipeline", passes], &file)?;
    if !fused.contains("call_tir(@fused_matmul_softsign_relu, %x, %w)") {
        return Err(fused.into());
    }
    let library = house.join("fused.so");
    said(&["compile", "-o", &library.display().to_string()], &file)?;
    let program = house.join("fused");
    let mut cc = Command::new("cc");
    cc.arg(folder.join("main.c")).arg("-I").arg(house).arg(&library);
    cc.args(["-Wl,-rpath,$ORIGIN", "-o"]).arg(&program);
    succeed(&mut cc)?;
    let output = run(&mut Command::new(&program))?;
    let text = String::from_utf8_lossy(&output.stdout);
    match text == "0.5000 0.6667 0.0000 0.7500\n0.8000 0.8333 0.0000 0.8571\n" {
        true => Ok(()),
        false => Err(format!("{text}{}", String::from_utf8_lossy(&output.stderr)).into()),
    }
}

/// Both pass every check that there is something to look at for.
fn conform(plugins: &Path) -> Result<(), Failed> {
    for library in ["libc_pass.so", "libacme_passes.so"] {
        let mut test = tenon();
        test.args(["plugins", "test", "--modules", "5"]).arg(plugins.join(library));
        let output = run(&mut test)?;
        let said = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() || !said.contains(" passed, 0 failed, ") {
            return Err(format!("{library}: {said}").into());
        }
    }
    Ok(())
}

/// Builds both plugins into a house with a registry.
fn build(root: &Path, house: &Path) -> Result<(), Failed> {
    let plugins = house.join("plugins");
    fs::create_dir_all(&plugins)?;
    build_c(root, "c-pass/multiply_by_one.c", &plugins.join("libc_pass.so"))?;
    let folder = house.join("custom-pass");
    check_out(root, &folder)?;
    build_in(&folder, "libacme_passes.so", &plugins.join("libacme_passes.so"))?;
    let text = "schema = 1\n[[plugins.dir]]\npath = \"plugins\"\nenable = \"all\"\n";
    Ok(fs::write(house.join("registry.toml"), text)?)
}

fn build_c(root: &Path, source: &str, library: &Path) -> Result<(), Failed> {
    let source = root.join("examples").join(source);
    // Nothing may be left for a host to resolve.
    let flags = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fPIC", "-shared"];
    let fresh = library.with_extension(format!("so.{}", std::process::id()));
    let mut cc = Command::new("cc");
    cc.args(flags).args(["-fvisibility=hidden", "-Wl,-z,defs", "-I"]);
    cc.arg(root.join("plugin-api/include")).arg("-o").arg(&fresh);
    succeed(cc.arg(source))?;
    Ok(fs::rename(fresh, library)?)
}

/// Copies the Rust plugin to `folder`, with the versions of packages that the house has.
fn check_out(root: &Path, folder: &Path) -> Result<(), Failed> {
    check_out_of(root, folder, "custom-pass", &["src/lib.rs", "src/double_negation.rs"])
}

/// Copies files of an example to `folder`, with the versions of packages that the house has.
fn check_out_of(root: &Path, folder: &Path, name: &str, files: &[&str]) -> Result<(), Failed> {
    let example = root.join("examples").join(name);
    fs::create_dir_all(folder.join("src"))?;
    for file in files {
        write_changed(&folder.join(file), &fs::read_to_string(example.join(file))?)?;
    }
    let api = root.join("plugin-api").display().to_string();
    let manifest = fs::read_to_string(example.join("Cargo.toml"))?;
    let schedule = root.join("schedule").display().to_string();
    let manifest = manifest.replace("../../plugin-api", &api).replace("../../schedule", &schedule);
    write_changed(&folder.join("Cargo.toml"), &manifest)?;
    if !folder.join("Cargo.lock").exists() {
        fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock"))?;
    }
    Ok(())
}

/// Writes a file unless it is as it should be: what is not written anew is not compiled anew.
fn write_changed(path: &Path, text: &str) -> Result<(), Failed> {
    match fs::read_to_string(path).is_ok_and(|found| found == text) {
        true => Ok(()),
        false => Ok(fs::write(path, text)?),
    }
}

/// Builds what is in `folder`, and puts the library in its place.
fn build_in(folder: &Path, library: &str, place: &Path) -> Result<(), Failed> {
    outside::locked(|| {
        succeed(outside::cargo().args(["build", "--quiet"]).current_dir(folder))?;
        install(&outside::built().join(library), place)
    })
}

/// Puts a library in its place in one step, as somebody may be reading the one that is there.
fn install(library: &Path, place: &Path) -> Result<(), Failed> {
    let fresh = place.with_extension(format!("so.{}", std::process::id()));
    fs::copy(library, &fresh)?;
    Ok(fs::rename(fresh, place)?)
}

/// The plugin exports its root and nothing else; that it imports nothing but libc is what `-z defs` checked.
fn links_nothing(house: &Path) -> Result<(), Failed> {
    let nm = run(Command::new("nm")
        .args(["-D", "--defined-only"])
        .arg(house.join("plugins/libc_pass.so")))?;
    let symbols = String::from_utf8_lossy(&nm.stdout).into_owned();
    let names: Vec<&str> = symbols.lines().filter_map(|line| line.split(' ').next_back()).collect();
    match names == ["tenon_plugin_root"] {
        true => Ok(()),
        false => Err(format!("it exports {names:?}").into()),
    }
}

/// An edit of a pass shows in the next run of the program, with the same registry.
fn rebuilt(root: &Path) -> Result<(), Failed> {
    let house = tempfile::tempdir()?;
    let (folder, plugins) = (house.path().join("custom-pass"), house.path().join("plugins"));
    check_out(root, &folder)?;
    fs::create_dir_all(&plugins)?;
    let text = "schema = 1\n[[plugins.dir]]\npath = \"plugins\"\nenable = \"all\"\n";
    fs::write(house.path().join("registry.toml"), text)?;
    let model = house.path().join("model.ir");
    fs::write(&model, "fn @main(%x: f32[4]) -> f32[4] {\n  ret negative(negative(%x))\n}\n")?;
    // What is edited here is of this test alone.
    let manifest = fs::read_to_string(folder.join("Cargo.toml"))?;
    fs::write(folder.join("Cargo.toml"), manifest.replace("acme-passes", "acme-edited"))?;
    let found = || -> Result<String, Failed> {
        build_in(&folder, "libacme_edited.so", &plugins.join("libacme_passes.so"))?;
        let mut opt = tenon();
        opt.arg("opt").arg(&model).args(["-p", "acme.DoubleNegation", "--registry"]);
        let output = run(opt.arg(house.path().join("registry.toml")))?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned().into()),
        }
    };
    let before = found()?;
    let pass = folder.join("src/double_negation.rs");
    let source = fs::read_to_string(&pass)?;
    fs::write(&pass, source.replace("Some(\"negative\")", "Some(\"nothing\")"))?;
    let after = found()?;
    match (before.contains("negative"), after.contains("negative")) {
        (false, true) => Ok(()),
        _ => Err(format!("before the edit:\n{before}\nafter it:\n{after}").into()),
    }
}
