//! Names of the IR for names of ONNX, which may be any text.

use std::collections::{HashMap, HashSet};

/// Printable names, each given out once.
#[derive(Debug, Default)]
pub(super) struct Names {
    taken: HashSet<String>,
    /// For a name that was asked for again, the number that was tried last.
    last: HashMap<String, u64>,
}

impl Names {
    /// A name like `name` that was not given out before.
    pub(super) fn fresh(&mut self, name: &str) -> String {
        let plain = printable(name);
        if self.taken.insert(plain.clone()) {
            return plain;
        }
        let last = self.last.entry(plain.clone()).or_default();
        loop {
            *last += 1;
            let numbered = format!("{plain}_{last}");
            if self.taken.insert(numbered.clone()) {
                return numbered;
            }
        }
    }
}

/// `name` in letters, digits, `_` and `.`, not too long.
pub(super) fn printable(name: &str) -> String {
    const LONGEST: usize = 200;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let plain: String =
        name.chars().take(LONGEST).map(|c| if is_plain(c) { c } else { '_' }).collect();
    // A name that begins with a dot or a digit would read as a number or an item of a tuple.
    match plain.chars().next() {
        Some(first) if first.is_ascii_alphabetic() || first == '_' => plain,
        _ => format!("v{plain}"),
    }
}

#[cfg(test)]
mod tests {
    use super::Names;

    #[test]
    fn names_are_printable_and_different() {
        let mut names = Names::default();
        let given = ["gpu_0/data_0", "gpu_0:data_0", "12", "gpu_0_data_0_1", "gpu_0 data_0", ""];
        let given = given.map(|name| names.fresh(name));
        assert_eq!(
            given,
            ["gpu_0_data_0", "gpu_0_data_0_1", "v12", "gpu_0_data_0_1_1", "gpu_0_data_0_2", "v"]
        );
    }
}
