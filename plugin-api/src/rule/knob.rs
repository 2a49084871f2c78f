//! What a rule lets others choose.

/// A choice of a rule between whole numbers, such as how many rows a tile has: the rule knows what it thinks best, and a tuner may
/// try others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Knob {
    /// Its name, of this rule.
    pub name: &'static str,
    /// The least value.
    pub least: i64,
    /// The greatest.
    pub most: i64,
}
