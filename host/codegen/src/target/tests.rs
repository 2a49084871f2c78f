use super::*;
use tenon_ir::Context as _;

fn target(text: &str) -> Target {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn this_machine_has_three_names_and_reads_back() {
    let native = Target::native().unwrap();
    for text in ["llvm", "cpu", "native", &native.to_string()] {
        assert_eq!(native, target(text), "{text}");
    }
    assert!(native.runs_here() && native.threads() > 0);
    assert_ne!(native.cpu(), "generic");
}

#[test]
fn every_target_of_the_list_reads_back() {
    for line in named() {
        let target = target(line.name);
        assert_eq!(target, target.to_string().parse().unwrap(), "{}", line.name);
    }
}

#[test]
fn a_processor_has_its_vectors() {
    for (text, bits, registers, fma) in [
        ("x86_64-linux-gnu", 128, 16, false),
        ("x86_64-linux-gnu,cpu=sandybridge", 128, 16, false),
        ("haswell", 256, 16, true),
        ("x86-64-v4", 512, 32, true),
        ("x86_64-linux-gnu,cpu=x86-64-v3,features=+avx512f,+avx512vl", 512, 32, true),
        ("x86_64-linux-gnu,cpu=skylake-avx512", 512, 32, true),
        ("znver4,features=-avx512f", 256, 16, true),
        ("znver4,vector-width=256", 256, 16, true),
        ("neoverse-n1", 128, 32, true),
        ("riscv64", 128, 32, true),
        ("riscv64-v", 128, 32, true),
        ("riscv64-v,features=+zvl256b", 256, 32, true),
        ("wasm32", 128, 16, false),
        ("nvptx", 32, 255, true),
    ] {
        let target = target(text);
        assert_eq!(
            (target.vector_bits(), target.vector_registers(), target.has_fma()),
            (bits, registers, fma),
            "{text}"
        );
        assert_eq!(target.lanes(4), bits / 32);
    }
}

#[test]
fn a_triple_alone_means_all_of_its_machines() {
    let x86 = target("x86_64-linux-gnu");
    assert_eq!((x86.triple(), x86.cpu()), ("x86_64-unknown-linux-gnu", "x86-64"));
    assert_eq!(x86.features(), "");
    assert_eq!(target("riscv64-linux-gnu").features(), "+m,+a,+f,+d,+c");
    assert_eq!(target("wasm32").triple(), "wasm32-unknown-unknown");
}

#[test]
fn caches_come_from_the_list_and_can_be_said() {
    let zen = target("x86_64-linux-gnu,cpu=znver4");
    assert_eq!(zen, target("znver4"));
    assert_eq!(zen.caches(), Caches { l1: 32 << 10, l2: 1 << 20, l3: 32 << 20 });
    let small = target("znver4,l3=16M,threads=4");
    assert_eq!((small.caches().l3, small.threads()), (16 << 20, 4));
    let text = "x86_64-unknown-linux-gnu,cpu=znver4,vector-width=512,l3=16M,threads=4";
    assert_eq!(small.to_string(), text);
}

#[test]
fn multiply_adds_of_a_cycle_come_from_the_list_and_can_be_said() {
    assert_eq!([target("haswell"), target("x86-64-v3")].map(|it| it.fma_units()), [2, 0]);
    let one = target("haswell,fma-units=1");
    assert_eq!((one.fma_units(), one == target(&one.to_string())), (1, true));
}

#[test]
fn floats_are_contracted_where_nothing_else_is_said() {
    assert_eq!(target("haswell").float(), FloatMode::Contract);
    assert_eq!(target("haswell"), target("haswell,float=contract"));
    let strict = target("haswell,float=strict");
    assert_eq!((strict.float(), &strict), (FloatMode::Strict, &target(&strict.to_string())));
}

#[test]
fn passes_read_what_is_known() {
    let cx = tenon_ir::Cx::new();
    let zen = cx.terms().attrs(target("znver4,threads=4").attrs(&cx));
    let known = [("vector_bits", 512), ("l2_bytes", 1 << 20), ("threads", 4), ("fma_units", 1)];
    for (key, value) in known {
        assert_eq!(zen.int(key), Some(value), "{key}");
    }
    assert_eq!(zen.str("kind"), Some("cpu"));
    assert_eq!(cx.terms().attrs(target("wasm32").attrs(&cx)).int("l1_bytes"), None);
    let nvptx = cx.terms().attrs(target("nvptx64-nvidia-cuda,cpu=sm_90a").attrs(&cx));
    for (key, value) in [("shared_bytes", 48 << 10), ("block_threads", 1024), ("warp", 32)] {
        assert_eq!(nvptx.int(key), Some(value), "{key}");
    }
    assert_eq!(nvptx.str("kind"), Some("cuda"));
}

#[test]
fn wrong_texts_say_what_would_be_right() {
    for (text, hint) in [
        ("", "write `native`"),
        ("znver44", "did you mean `znver4`"),
        ("x86_64", "did you mean `x86-64`"),
        ("riscv64-w", "did you mean `riscv64-v`"),
        ("aarch64-plan9", "names a system"),
        ("x86_64-linux-gnuu", "names a system"),
        ("native,cpu=zenver4", "znver4"),
        ("native,features=+avx512ff", "avx512f"),
        ("native,features=avx2", "needs a `+`"),
        ("native,speed=high", "the keys are cpu, features"),
        ("native,thread=4", "did you mean `threads`?"),
        ("native,threads=0", "no number of threads"),
        ("native,fma-units=many", "no number of fma-units"),
        ("native,float=fast", "none of strict, contract"),
        ("native,l1=48k", "sizes are written"),
        ("native,+avx2", "no `key=value`"),
        ("native,vector-width=100", "128, 256, 512"),
        ("x86_64-linux-gnu,vector-width=512", "wider than the 128 bits"),
        ("sparc-linux-gnu", "x86_64, aarch64, riscv64, wasm32 or nvptx64 and"),
        ("nvptx,vector-width=256", "wider than the 32 bits"),
        ("nvptx64-nvidia-cuda,cpu=sm_8", "nvptx64 has no processor `sm_8`; did you mean"),
        ("riscv64-linux-gnu,cpu=native", "this machine's"),
        ("aarch64,features=+avx2", "aarch64 has no feature `avx2`"),
    ] {
        let problem = text.parse::<Target>().unwrap_err().to_string();
        assert!(problem.contains(hint), "{text:?}: {problem}");
    }
}

#[test]
fn several_targets_have_one_text_the_best_first() {
    let several = Targets::parse("x86-64-v2/haswell / x86-64-v4").unwrap();
    let cpus: Vec<&str> = several.all().iter().map(Target::cpu).collect();
    assert_eq!(cpus, ["x86-64-v4", "haswell", "x86-64-v2"]);
    assert_eq!(Targets::parse(&several.to_string()).unwrap(), several);
    assert_eq!(Targets::parse("native").unwrap().one().unwrap(), &Target::native().unwrap());
    let named = Targets::parse(&several.to_string()).unwrap();
    assert!(named.here().is_ok_and(|here| here.cpu() != "x86-64"));
    for line in named_of_x86() {
        let pair = Targets::parse(&format!("{line}/x86_64-linux-gnu,cpu=nehalem"));
        assert_eq!(pair.unwrap().all().len(), 2, "{line}");
    }
}

/// The names of the list that are processors of x86-64.
fn named_of_x86() -> impl Iterator<Item = &'static str> {
    named().map(|line| line.name).filter(|name| target(name).architecture() == Architecture::X86_64)
}

#[test]
fn several_targets_that_are_no_library_are_refused() {
    for (text, message) in [
        ("x86-64-v2/x86-64-v2", "named twice"),
        ("x86-64-v2/x86_64-none-elf", "another system"),
        ("neoverse-n1/neoverse-v1", "found out on x86-64 alone"),
        ("x86-64-v2/x86_64-linux-gnu,cpu=diamondrapids", "features=-"),
        ("x86-64-v2/", "it is empty"),
        ("x86-64-v2/z80", "no target `z80`"),
    ] {
        let error = Targets::parse(text).unwrap_err().to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
    let error = Target::parse("x86-64-v2/x86-64-v3").unwrap_err().to_string();
    assert!(error.contains("one target is expected here"), "{error}");
    let error = Targets::parse("x86-64-v2/x86-64-v3").unwrap().one().unwrap_err().to_string();
    assert!(error.contains("one target is expected here"), "{error}");
}
