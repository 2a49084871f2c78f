//! A plugin that watches passes instead of running any.

use std::collections::BTreeMap;

use tenon_plugin_api::pass::{Instrument, Outcome};
use tenon_plugin_api::prelude::*;

plugin! { id = "test.watching", summary = "Instruments" }

mod count {
    use super::*;

    /// Counts how often each pass changed something, and says it in the end.
    #[instrument(name = "test.Count")]
    #[derive(Default)]
    struct Count {
        ran: BTreeMap<String, (usize, usize)>,
    }

    impl Instrument for Count {
        fn enter(&mut self, _: &PassContext) -> Result<()> {
            self.ran.clear();
            Ok(())
        }

        fn after(&mut self, pass: &str, outcome: Outcome<'_>, _: &PassContext) -> Result<()> {
            if let Outcome::Ran { before, after, .. } = outcome {
                let counts = self.ran.entry(pass.to_owned()).or_default();
                counts.0 += 1;
                let (before, after) = (before.functions(), after.functions());
                let is_same = before.iter().zip(&after).all(|(a, b)| a.1.is_same(&b.1));
                counts.1 += usize::from(!is_same);
            }
            Ok(())
        }

        fn exit(&mut self, cx: &PassContext) -> Result<()> {
            for (pass, (ran, changed)) in &self.ran {
                cx.note(&format!("{pass} ran {ran} times and changed something {changed} times"));
            }
            Ok(())
        }
    }
}

mod small {
    use super::*;

    /// Refuses passes over modules of more than one function, and fails at empty ones.
    #[instrument(name = "test.OnlySmall")]
    #[derive(Default)]
    struct OnlySmall;

    impl Instrument for OnlySmall {
        fn should_run(&mut self, _: &str, module: &Module, _: &PassContext) -> Result<bool> {
            match module.functions().len() {
                0 => Err(PassError::new("there is nothing to run it over")),
                count => Ok(count == 1),
            }
        }
    }
}

mod clumsy {
    use super::*;

    /// Panics after the first pass.
    #[instrument(name = "test.Clumsy")]
    #[derive(Default)]
    struct Clumsy;

    impl Instrument for Clumsy {
        fn after(&mut self, pass: &str, _: Outcome<'_>, _: &PassContext) -> Result<()> {
            panic!("dropped {pass}")
        }
    }
}
