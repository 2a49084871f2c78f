//! The inverse of a map of indices.
//!
//! ```text
//! a = i // 4, b = i % 4      gives      i = a * 4 + b
//! f = i * 8 + j              gives      i = f // 8, j = f % 8
//! ```

use rustc_hash::FxHashMap as HashMap;

use super::{Atom, AtomId, Space, Sum};

impl Space {
    /// What the variables `vars` are where a map of them, which takes no two values to one, gives `given`, and one of a single value is
    /// that; `None` where that is not found.
    pub(crate) fn invert(
        &mut self,
        outputs: &[Sum],
        given: &[Sum],
        vars: &[AtomId],
    ) -> Option<Vec<Sum>> {
        let only = |var: &AtomId| {
            let range = self.range(*var).filter(|range| range.extent.value() == Some(1));
            range.map(|range| range.min.clone())
        };
        let mut values: Vec<Option<Sum>> = vars.iter().map(only).collect();
        // What has one value is no digit, whatever it is multiplied with.
        let known: HashMap<AtomId, Sum> = vars
            .iter()
            .zip(&values)
            .filter_map(|(&var, value)| Some((var, value.clone()?)))
            .collect();
        for (output, given) in outputs.iter().zip(given) {
            let output = self.substitute(output, &known);
            self.solve(&output, given, vars, &mut values);
        }
        values.into_iter().collect()
    }

    /// From `sum = given`, with `sum` made of digits of variables in a mixed radix, what these digits are of the variables.
    fn solve(&mut self, sum: &Sum, given: &Sum, vars: &[AtomId], values: &mut [Option<Sum>]) {
        let mut rest = given.add_int(-sum.constant());
        let mut terms: Vec<(AtomId, i64)> = sum
            .terms()
            .iter()
            .filter_map(|(atoms, scale)| match atoms.as_slice() {
                &[atom] => Some((atom, *scale)),
                _ => None,
            })
            .collect();
        terms.sort_by_key(|&(_, scale)| -scale);
        for (atom, scale) in terms {
            let Some((var, lower)) = self.digits_of(atom) else { return };
            let Some(slot) = vars.iter().position(|&known| known == var) else { return };
            let (digit, left) = self.divide(&rest, &Sum::int(scale));
            rest = left;
            let value = values[slot].take().unwrap_or_default().plus(&digit, lower);
            values[slot] = Some(self.rejoin(value));
        }
    }

    /// The variable whose digits an atom is, from which place on: `v // 4 % 8` are those of `v` from 4 on.
    fn digits_of(&self, mut atom: AtomId) -> Option<(AtomId, i64)> {
        let mut lower = 1i64;
        loop {
            match self.atom(atom) {
                Atom::Node(_) => return Some((atom, lower)),
                Atom::Div(inner, by) => {
                    lower = lower.checked_mul(by.value()?)?;
                    atom = inner.as_atom()?;
                }
                Atom::Mod(inner, _) => atom = inner.as_atom()?,
                _ => return None,
            }
        }
    }
}
