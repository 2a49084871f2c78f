//! How many axes values have of which only a call could tell.
//!
//! ```text
//! x: float[n, 2]                              fn @main(%x: f32[n, 2]) {
//! y = Squeeze(x)      y: float[m]       =>      assert n == 1
//!                                               ret the row of %x
//!                                             }
//! ```
//!
//! A value of ours has one rank. Where a call could take an axis out, what the model declares decides: first of the value itself.
//! Where it says nothing of that, as many stay as there can be, and a call that has one of them out ends. If outputs have other
//! ranks then than the model declares, or it cannot be imported so, it is tried with as few as there can be; that is meant if all
//! outputs have their ranks then. Exporters run a model with one item and call the number of items open all the same.

use std::cell::Cell;

use super::declared::Declared;
use super::driver::Imported;
use super::error::Stop;

/// Which ranks are taken, and what came of it.
#[derive(Debug, Default)]
pub(super) struct Ranks {
    /// Whether there are as few axes as there can be where the model says nothing.
    fewest: bool,
    /// Whether a rule wanted to know a rank of which the model says nothing.
    asked: Cell<bool>,
    /// Whether an output has another rank than the model declares.
    pub(super) differ: Cell<bool>,
}

impl Ranks {
    /// What a rule is told of the rank of a value that is called so; nothing is declared of the results of functions and bodies.
    pub(super) fn of(&self, name: &str, declared: Option<&Declared<'_>>) -> Option<usize> {
        let rank = declared.and_then(|declared| declared.rank(name));
        self.asked.set(self.asked.get() || rank.is_none());
        rank.or(self.fewest.then_some(0))
    }
}

/// Imports a model, once more with fewer axes if that is what it declares.
pub(super) fn import_with_ranks(
    import: &dyn Fn(&Ranks) -> Result<Imported, Stop>,
) -> Result<Imported, Stop> {
    let ranks = Ranks::default();
    let imported = import(&ranks);
    if ranks.asked.get() && (imported.is_err() || ranks.differ.get()) {
        let ranks = Ranks { fewest: true, ..Ranks::default() };
        if let Ok(imported) = import(&ranks)
            && !ranks.differ.get()
        {
            return Ok(imported);
        }
    }
    imported
}
