//! What holds for every module, tried on random ones.

#[path = "support/operators.rs"]
mod operators;
#[path = "support/vocabulary.rs"]
mod vocabulary;

use proptest::prelude::*;
use tenon_compiler::check::check;
use tenon_compiler::diagnostics::Source;
use tenon_compiler::infer::infer_module;
use tenon_compiler::ir::Module;
use tenon_compiler::testing::random_module;
use tenon_compiler::text::{NoWeights, WeightsPolicy, parse_module, print_module};
use vocabulary::vocabulary;

fn print(module: &Module) -> String {
    print_module(module, &mut WeightsPolicy::inline())
}

fn parse(text: &str) -> Module {
    parse_module(&tenon_compiler::testing::cx(), &Source::new("random", text), &mut NoWeights)
        .unwrap_or_else(|errors| panic!("{errors}\n{text}"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn printing_then_parsing_is_the_identity(seed: u64, size in 0..200usize) {
        let module = random_module(&tenon_compiler::testing::cx(), &vocabulary(), seed, size);
        let text = print(&module);
        let again = parse(&text);
        prop_assert!(again.is_structurally_equal(&module), "{}", text);
        prop_assert_eq!(again.structural_hash(), module.structural_hash());
        prop_assert_eq!(print(&again), text);
    }

    #[test]
    fn random_modules_have_the_types_that_are_inferred(seed: u64, size in 0..200usize) {
        let module = random_module(&tenon_compiler::testing::cx(), &vocabulary(), seed, size);
        let typed = infer_module(&module)
            .unwrap_or_else(|errors| panic!("{}\n{}", errors[0].1, print(&module)));
        prop_assert!(typed.is_structurally_equal(&module), "{}\n{}", print(&module), print(&typed));
    }

    #[test]
    fn random_modules_are_well_formed(seed: u64, size in 0..200usize) {
        let module = random_module(&tenon_compiler::testing::cx(), &vocabulary(), seed, size);
        let violations = check(&module);
        prop_assert!(violations.is_empty(), "{}\n{}", violations[0].to_diagnostic(), print(&module));
    }

    #[test]
    fn different_seeds_give_different_modules(seed: u64) {
        let cx = tenon_compiler::testing::cx();
        let (a, b) = (random_module(&cx, &vocabulary(), seed, 60), random_module(&cx, &vocabulary(), seed.wrapping_add(1), 60));
        prop_assert_eq!(a.is_structurally_equal(&b), print(&a) == print(&b));
    }
}
