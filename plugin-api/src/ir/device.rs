//! Names of devices: `cpu:0`, `cuda:1`.

/// The kinds of devices that there are, as a target names its own.
pub const DEVICE_KINDS: [&str; 2] = ["cpu", "cuda"];

/// Why a text names no device; `None` where it names one.
pub fn device_problem(name: &str) -> Option<String> {
    let is_number = |index: &str| {
        !index.is_empty() && index.len() < 5 && index.bytes().all(|byte| byte.is_ascii_digit())
    };
    match name.split_once(':') {
        Some((kind, index)) if DEVICE_KINDS.contains(&kind) && is_number(index) => None,
        _ => Some(format!(
            "`{name}` is no device: a kind and a number, such as `cuda:0`, where kinds are {}",
            DEVICE_KINDS.join(" and ")
        )),
    }
}
