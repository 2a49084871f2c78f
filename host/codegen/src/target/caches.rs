//! The caches of a processor.

use std::fs;
use std::path::Path;

/// Where Linux tells of the caches of the first processor.
const FOLDER: &str = "/sys/devices/system/cpu/cpu0/cache";

/// Bytes of the data caches that one core sees; 0 where that is not known, or there is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Caches {
    pub l1: u64,
    pub l2: u64,
    pub l3: u64,
}

impl Caches {
    /// Those of this machine, as far as the system tells of them.
    pub(super) fn of_this_machine() -> Caches {
        Caches::read(Path::new(FOLDER))
    }

    fn read(folder: &Path) -> Caches {
        let mut caches = Caches::default();
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let fact = |name| fs::read_to_string(entry.path().join(name)).unwrap_or_default();
            if fact("type").trim() == "Instruction" {
                continue;
            }
            let bytes = parse_size(fact("size").trim()).unwrap_or(0);
            match fact("level").trim() {
                "1" => caches.l1 = bytes,
                "2" => caches.l2 = bytes,
                "3" => caches.l3 = bytes,
                _ => {}
            }
        }
        caches
    }

    /// Each with its name in the text of a target.
    pub fn named(&self) -> [(&'static str, u64); 3] {
        [("l1", self.l1), ("l2", self.l2), ("l3", self.l3)]
    }
}

/// `48K`, `2M`, `4096`: the form in which the system tells of a cache.
pub(super) fn parse_size(text: &str) -> Option<u64> {
    let (digits, unit) = match text.strip_suffix(['K', 'M', 'G']) {
        Some(digits) if text.ends_with('K') => (digits, 1 << 10),
        Some(digits) if text.ends_with('M') => (digits, 1 << 20),
        Some(digits) => (digits, 1 << 30),
        None => (text, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// A size in the largest unit that it is a multiple of.
pub(super) fn size_text(bytes: u64) -> String {
    let units = [(1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")];
    let unit = units.into_iter().find(|(unit, _)| bytes > 0 && bytes.is_multiple_of(*unit));
    unit.map_or(bytes.to_string(), |(unit, name)| format!("{}{name}", bytes / unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_back() {
        for text in ["48K", "2M", "1G", "1280K", "100", "0"] {
            assert_eq!(size_text(parse_size(text).unwrap()), text);
        }
        assert_eq!(parse_size("2048K"), parse_size("2M"));
        for wrong in ["", "K", "-1", "2T", "1.5M", "99999999999999999999"] {
            assert_eq!(parse_size(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn caches_of_instructions_hold_no_data() {
        let folder = tempfile::tempdir().unwrap();
        for (index, kind, level, size) in [
            ("0", "Data", "1", "48K"),
            ("1", "Instruction", "1", "32K"),
            ("2", "Unified", "2", "2M"),
        ] {
            let cache = folder.path().join(index);
            fs::create_dir(&cache).unwrap();
            for (name, text) in [("type", kind), ("level", level), ("size", size)] {
                fs::write(cache.join(name), format!("{text}\n")).unwrap();
            }
        }
        let caches = Caches::read(folder.path());
        assert_eq!(caches, Caches { l1: 48 << 10, l2: 2 << 20, l3: 0 });
    }
}
