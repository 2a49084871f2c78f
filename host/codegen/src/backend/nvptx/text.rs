//! PTX as text: what may stand in a symbol, and several kernels in one file.

/// A symbol of PTX, which has no dots.
pub(super) fn symbol(symbol: &str) -> String {
    symbol.replace('.', "_")
}

/// The text of a kernel that stands behind others: what is said once in a file is left out.
pub(super) fn behind_others(ptx: Vec<u8>) -> Vec<u8> {
    let directives: [&[u8]; 4] = [b".version", b".target", b".address_size", b"//"];
    let is_said = |line: &&[u8]| directives.iter().any(|directive| line.starts_with(directive));
    let lines = ptx.split_inclusive(|&byte| byte == b'\n');
    lines.filter(|line| !is_said(line)).flatten().copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_once_is_left_out() {
        let text = "//\n// LLVM\n//\n.version 7.0\n.target sm_80\n.address_size 64\n\n.visible .entry k(\n)\n";
        let kept = behind_others(text.as_bytes().to_vec());
        assert_eq!(kept, b"\n.visible .entry k(\n)\n");
    }
}
