//! What the border costs: `cargo bench -p tenon-compiler --bench border`.
//!
//! The plugin is the shared library of `plugin-api/examples/bench`, loaded by a registry like any other. The
//! same work, compiled into this program, runs beside it over the host's own functions.

use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, LazyLock};
use std::{fs, hint};
use tenon_operators as _;

use divan::Bencher;
use divan::counter::ItemsCount;
use tenon_compiler::border::Run;
use tenon_compiler::ir::{Attrs, Function, Module, Transaction};
use tenon_compiler::passes::{PassContext, plan, run};
use tenon_compiler::registry::{
    Config, Guard, LibraryFile, LoadedPass, Manifest, Plugin, Registry, State, sha256, try_out,
};

mod input;
#[path = "../../../tests/registry/library.rs"]
mod library;
#[path = "../../../plugin-api/examples/bench/work.rs"]
mod work;

fn main() {
    tenon_compiler::runtime::memory::keep_freed_memory();
    divan::main();
}

/// Bindings of a function of a million nodes: a variable and a call each.
const BINDINGS: usize = 500_000;

static LARGE: LazyLock<Module> = LazyLock::new(|| input::layers(BINDINGS));

static HOUSE: LazyLock<House> = LazyLock::new(|| {
    let house = House::new();
    house.add_plugin(0);
    house
});

/// A folder with `registry.toml` and a folder of plugins.
struct House {
    folder: tempfile::TempDir,
}

impl House {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("plugins")).expect("a folder in it");
        let registry = "schema = 1\n[[plugins.dir]]\npath = \"plugins\"\nenable = \"all\"\n";
        fs::write(folder.path().join("registry.toml"), registry).expect("registry.toml");
        Self { folder }
    }

    /// Adds a copy of the library, which the dynamic linker takes for another one.
    fn add_plugin(&self, number: usize) -> PathBuf {
        let path = self.folder.path().join(format!("plugins/libbench{number}.so"));
        fs::copy(bench_library(), &path).expect("the plugin");
        path
    }

    /// Adds plugins with code of their own.
    fn add_plugins(&self, count: usize) {
        (0..count).for_each(|number| drop(self.add_plugin(number)));
    }

    /// Adds plugins that are nothing but a manifest.
    fn add_manifests(&self, count: usize) {
        for number in 0..count {
            let plugin = format!(r#"{{"plugin":"acme.p{number}","format":1,"version":"1.0.0"}}"#);
            let pass = format!(r#"{{"pass":"acme.P{number}","kind":"function"}}"#);
            let path = self.folder.path().join(format!("plugins/libp{number}.so"));
            fs::write(path, library::library(&[&plugin, &pass])).expect("a plugin");
        }
    }

    /// Adds plugins that are nothing but a manifest of this many operators, each with two attributes and a rule.
    fn add_operators(&self, count: usize, operators: usize) {
        for number in 0..count {
            let mut records =
                vec![format!(r#"{{"plugin":"acme.o{number}","format":1,"version":"1.0.0"}}"#)];
            for operator in 0..operators {
                let name = format!("acme.o{number}.op{operator}");
                let axis = r#"{"name":"axis","kind":"int","default":-1,"help":"the axis whose elements are one row"}"#;
                let kept = r#"{"name":"keepdims","kind":"bool","default":false,"help":"whether the axis stays"}"#;
                records.push(format!(
                    r#"{{"op":"{name}","min_args":1,"max_args":1,"effect":"none","pattern":"reduction","doc":"Mean and variance along an axis","attrs":[{axis},{kept}]}}"#
                ));
                records.push(format!(
                    r#"{{"rule":"gradient","key":"{name}","doc":"Its derivative"}}"#
                ));
            }
            let records: Vec<&str> = records.iter().map(String::as_str).collect();
            let path = self.folder.path().join(format!("plugins/libo{number}.so"));
            fs::write(path, library::library(&records)).expect("a plugin");
        }
    }

    /// Drops the files from the system's cache.
    fn forget(&self) {
        let drop_each = "for file in plugins/*; do \
                         dd if=$file iflag=nocache count=0 status=none; sync $file; done";
        let mut command = Command::new("sh");
        command.args(["-c", drop_each]).current_dir(self.folder.path());
        assert!(command.status().expect("a shell").success());
    }

    fn open(&self) -> Registry {
        Registry::open(&self.folder.path().join("registry.toml")).expect("the registry is readable")
    }

    fn guarded(&self, guard: Guard) -> Registry {
        let config = Config::read(&self.folder.path().join("registry.toml"));
        Registry::guarded(config.expect("the registry is readable"), guard)
    }
}

/// The folder of the programs and the plugins.
fn profile() -> PathBuf {
    let program = std::env::current_exe().expect("this program's file");
    program.ancestors().nth(2).expect("target/<profile>/deps/<bench>").to_owned()
}

/// The library that cargo builds from plugin-api's example.
fn bench_library() -> PathBuf {
    let path = profile().join("examples/libbench.so");
    let command = "cargo build --release -p tenon-plugin-api --examples";
    assert!(path.exists(), "{} is built by `{command}`", path.display());
    path
}

/// One pass over one function, without the manager around it.
struct Direct<'a> {
    pass: LoadedPass,
    run: Arc<Run>,
    module: &'a Module,
    function: &'a Arc<Function>,
}

impl<'a> Direct<'a> {
    fn new(name: &str, module: &'a Module) -> Self {
        let pass = HOUSE.open().get_pass(name).expect("the plugin has it");
        let run = Run::new(module.cx().clone(), Attrs::NONE, Attrs::NONE, Arc::default());
        let function = module.get_str("main").expect("there is one");
        Self { pass, run: Arc::new(run), module, function }
    }

    fn run(&self) -> Arc<Function> {
        let LoadedPass::Here { plugin, index } = &self.pass else { unreachable!("not isolated") };
        plugin.run_on_function(*index, &self.run, self.function, self.module).expect("it runs")
    }
}

fn large() -> &'static Arc<Function> {
    LARGE.get_str("main").expect("there is one")
}

fn nodes() -> ItemsCount {
    ItemsCount::new(large().view().len())
}

/// Kind, type and operands of every node of a function of a million. Items are nodes.
#[divan::bench_group(sample_count = 20)]
mod reads {
    use super::*;

    #[divan::bench]
    fn in_process(bencher: Bencher<'_, '_>) {
        let body = large().view();
        bencher.counter(nodes()).bench_local(|| work::read(hint::black_box(body)));
    }

    #[divan::bench]
    fn in_a_plugin(bencher: Bencher<'_, '_>) {
        let direct = Direct::new("bench.Read", &LARGE);
        bencher.counter(nodes()).bench_local(|| direct.run());
    }
}

/// A copy of every call of that function, not published. Items are calls.
#[divan::bench_group(sample_count = 10)]
mod builds {
    use super::*;

    #[divan::bench]
    fn in_process(bencher: Bencher<'_, '_>) {
        bencher.counter(ItemsCount::new(BINDINGS)).bench_local(|| {
            let mut transaction = Transaction::edit(large());
            work::copy_calls(&mut transaction, 1)
        });
    }

    #[divan::bench]
    fn in_a_plugin(bencher: Bencher<'_, '_>) {
        let direct = Direct::new("bench.Build", &LARGE);
        bencher.counter(ItemsCount::new(BINDINGS)).bench_local(|| direct.run());
    }
}

/// Every tenth call of that function replaced by a copy, and the function published. Items are nodes.
#[divan::bench_group(sample_count = 10)]
mod edits {
    use super::*;

    #[divan::bench]
    fn in_process(bencher: Bencher<'_, '_>) {
        bencher.counter(nodes()).bench_local(|| {
            let mut transaction = Transaction::edit(large());
            for (old, new) in work::copy_calls(&mut transaction, 10) {
                transaction.replace(old, new);
            }
            transaction.finish().expect("it is whole")
        });
    }

    #[divan::bench]
    fn in_a_plugin(bencher: Bencher<'_, '_>) {
        let direct = Direct::new("bench.Edit", &LARGE);
        bencher.counter(nodes()).bench_local(|| direct.run());
    }
}

/// Passes that do nothing, run by the manager: what is left is the cost of a pass.
mod no_ops {
    use super::*;

    fn bench(bencher: Bencher<'_, '_>, module: &Module, pipeline: &str) {
        let registry = HOUSE.open();
        let plan = plan(&registry, pipeline).expect("a plan");
        let mut cx = PassContext::default();
        // The first run opens the library.
        run(&registry, &plan, module, &mut cx).expect("it runs");
        bencher.bench_local(|| run(&registry, &plan, module, &mut cx).expect("it runs"));
    }

    const PASSES: &[&str] = &["bench.Noop", "bench.NoopModule"];

    #[divan::bench(args = PASSES)]
    fn one_binding(bencher: Bencher<'_, '_>, pass: &str) {
        bench(bencher, &input::layers(1), pass);
    }

    #[divan::bench(args = PASSES)]
    fn a_million_nodes(bencher: Bencher<'_, '_>, pass: &str) {
        bench(bencher, &LARGE, pass);
    }

    #[divan::bench(args = PASSES)]
    fn a_thousand_functions(bencher: Bencher<'_, '_>, pass: &str) {
        let function = |number| format!("fn @f{number}(%x: f32[16]) {{\n  ret exp(%x)\n}}\n");
        let text: String = (0..1000).map(function).collect();
        bench(bencher, &input::module(&text), pass);
    }

    #[divan::bench(args = PASSES)]
    fn ten_in_a_pipeline(bencher: Bencher<'_, '_>, pass: &str) {
        bench(bencher, &LARGE, &[pass; 10].join(", "));
    }
}

/// Finding and opening plugins.
mod registry {
    use super::*;

    /// The first pass of a library: it is opened and checked.
    #[divan::bench(sample_count = 50, sample_size = 1)]
    fn first_pass(bencher: Bencher<'_, '_>) {
        // One folder for each library: an opened one is never closed, so none may be opened twice.
        let house = || {
            let house = House::new();
            house.add_plugin(0);
            let registry = house.open();
            (house, registry)
        };
        bencher
            .with_inputs(house)
            .bench_local_refs(|(_, registry)| registry.get_pass("bench.Noop").expect("it loads"));
    }

    /// A library that is open is checked again: its root, its manifest, its layouts, its names.
    #[divan::bench]
    fn layout_check(bencher: Bencher<'_, '_>) {
        let path = HOUSE.folder.path().join("plugins/libbench0.so");
        let file = LibraryFile::open(&path).expect("it is there");
        let manifest = file.manifest().expect("it has one");
        Plugin::open(&file, &manifest).expect("it opens");
        bencher.bench_local(|| Plugin::open(&file, &manifest).expect("it opens"));
    }

    /// A pass of a library that is open.
    #[divan::bench]
    fn later_pass(bencher: Bencher<'_, '_>) {
        let registry = HOUSE.open();
        registry.get_pass("bench.Noop").expect("it loads");
        bencher.bench_local(|| registry.get_pass("bench.Noop").expect("it loads"));
    }

    /// The first pass of one of 500 plugins: it is opened, and the others are not.
    #[divan::bench(sample_count = 20, sample_size = 1)]
    fn first_pass_of_500(bencher: Bencher<'_, '_>) {
        let house = || {
            let house = House::new();
            house.add_manifests(499);
            house.add_plugin(0);
            let registry = house.open();
            (house, registry)
        };
        bencher
            .with_inputs(house)
            .bench_local_refs(|(_, registry)| registry.get_pass("bench.Noop").expect("it loads"));
    }

    /// A folder of 500 plugins is listed; none of them is opened.
    #[divan::bench(sample_count = 50)]
    fn list_of_500(bencher: Bencher<'_, '_>) {
        let house = House::new();
        house.add_plugins(500);
        bencher.bench_local(|| house.open().passes().count());
    }

    /// A folder of 500 plugins with 50 operators each, and a rule for each of these.
    #[divan::bench(sample_count = 50)]
    fn list_of_500_with_operators(bencher: Bencher<'_, '_>) {
        let house = House::new();
        house.add_operators(500, 50);
        // A command ends with what it has listed, and does not take it apart.
        bencher.bench_local(|| {
            let registry = house.open();
            (registry.ops().count(), registry)
        });
    }

    /// The same when nothing of the files is in memory.
    #[divan::bench(sample_count = 5, sample_size = 1)]
    fn list_of_500_cold(bencher: Bencher<'_, '_>) {
        let house = House::new();
        house.add_plugins(500);
        let forget = || house.forget();
        bencher.with_inputs(forget).bench_local_values(|()| house.open().passes().count());
    }

    /// What an index of 500 plugins could not save: looking at each file's size and times, and parsing
    /// the records.
    #[divan::bench(sample_count = 50)]
    fn least_for_500(bencher: Bencher<'_, '_>) {
        let house = House::new();
        house.add_plugins(500);
        let registry = house.open();
        let index: Vec<(PathBuf, String)> = registry
            .plugins
            .iter()
            .map(|entry| {
                let passes = entry.manifest.passes.iter();
                let passes = passes.map(|pass| serde_json::to_string(pass).expect("JSON"));
                let plugin = serde_json::to_string(&entry.manifest.plugin).expect("JSON");
                let records: Vec<String> = [plugin].into_iter().chain(passes).collect();
                (entry.path.clone(), records.join("\n"))
            })
            .collect();
        bencher.bench_local(|| {
            let parsed = index.iter().map(|(path, records)| {
                let metadata = fs::metadata(path).expect("it is there");
                (metadata.len(), Manifest::parse(records.as_str()).expect("it parses"))
            });
            parsed.collect::<Vec<_>>().len()
        });
    }
}

/// What stands before the opening of a library.
mod trust {
    use super::*;

    fn tenon() -> PathBuf {
        let path = profile().join("tenon");
        assert!(path.exists(), "{} is built by `cargo build --release`", path.display());
        path
    }

    /// The digest of a library.
    #[divan::bench]
    fn digest(bencher: Bencher<'_, '_>) {
        let library = bench_library();
        bencher.bench_local(|| sha256(&library).expect("it is readable"));
    }

    /// A library that was never opened is tried out in a child process.
    #[divan::bench(sample_count = 20, sample_size = 1)]
    fn trial(bencher: Bencher<'_, '_>) {
        let (library, program) = (bench_library(), tenon());
        let digest = sha256(&library).expect("it is readable");
        let config = Config::default();
        bencher.bench_local(|| {
            try_out(&config, &program, &library, &digest).expect("it is harmless");
        });
    }

    /// The first pass of a library that is known to do no harm: its digest is remembered, and the journal is written.
    /// The library is open in this process already.
    #[divan::bench(sample_count = 50, sample_size = 1)]
    fn first_pass_of_a_known_library(bencher: Bencher<'_, '_>) {
        let house = House::new();
        house.add_plugin(0);
        // Until then it may change without another time.
        std::thread::sleep(std::time::Duration::from_secs(3));
        let open = || {
            let state = State::at(house.folder.path().join("state"));
            house.guarded(Guard::new(tenon(), Some(state)))
        };
        open().get_pass("bench.Noop").expect("it loads");
        bencher.with_inputs(open).bench_local_refs(|registry| {
            registry.get_pass("bench.Noop").expect("it loads");
        });
    }

    /// A pass that does nothing over one binding, in a process of its own that runs.
    #[divan::bench(sample_count = 50, sample_size = 1)]
    fn isolated_no_op(bencher: Bencher<'_, '_>) {
        let house = House::new();
        house.add_plugin(0);
        let registry = house.folder.path().join("registry.toml");
        let text = fs::read_to_string(&registry).expect("it was written");
        let isolate = "[passes.\"bench.Noop\"]\nisolate = true\n";
        fs::write(&registry, text + isolate).expect("registry.toml");
        let registry = house.guarded(Guard::new(tenon(), None));
        let plan = plan(&registry, "bench.Noop").expect("a plan");
        let module = input::layers(1);
        let mut cx = PassContext::default();
        run(&registry, &plan, &module, &mut cx).expect("it runs");
        bencher.bench_local(|| run(&registry, &plan, &module, &mut cx).expect("it runs"));
    }
}
