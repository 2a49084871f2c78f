//! A plugin whose passes do next to nothing, or one thing only: what they cost is the border.

mod work;

use tenon_plugin_api::prelude::*;

plugin! { id = "bench", summary = "Passes to measure the border with" }

mod noop {
    use super::*;

    /// Gives the function back.
    #[pass(name = "bench.Noop")]
    fn noop(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
        Ok(func)
    }
}

mod noop_module {
    use super::*;

    /// Gives the module back.
    #[pass(name = "bench.NoopModule")]
    fn noop_module(module: Module, _: &PassContext) -> Result<Module> {
        Ok(module)
    }
}

mod read {
    use super::*;

    /// Reads every node.
    #[pass(name = "bench.Read")]
    fn read(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
        std::hint::black_box(work::read(func.view()));
        Ok(func)
    }
}

mod build {
    use super::*;

    /// Builds a copy of every call and publishes none of them.
    #[pass(name = "bench.Build")]
    fn build(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
        let mut rw = func.edit();
        std::hint::black_box(work::copy_calls(&mut rw, 1));
        Ok(func)
    }
}

mod edit {
    use super::*;

    /// Replaces every tenth call by a copy.
    #[pass(name = "bench.Edit")]
    fn edit(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
        let mut rw = func.edit();
        for (old, new) in work::copy_calls(&mut rw, 10) {
            rw.replace(old, new);
        }
        rw.finish()
    }
}
