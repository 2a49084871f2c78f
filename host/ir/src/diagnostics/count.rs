//! Numbers of things in words.

/// `1 pass`, `2 passes`: a number and what there is so many of, given for one.
pub fn count_of(count: usize, one: &str) -> String {
    let ending = match one.as_bytes() {
        _ if count == 1 => "",
        [.., b's' | b'x' | b'z'] | [.., b'c' | b's', b'h'] => "es",
        _ => "s",
    };
    format!("{count} {one}{ending}")
}

#[cfg(test)]
mod tests {
    use super::count_of;

    #[test]
    fn one_is_one() {
        let texts = [0, 1, 2].map(|count| count_of(count, "pass"));
        assert_eq!(texts, ["0 passes", "1 pass", "2 passes"]);
        assert_eq!([1, 3].map(|count| count_of(count, "function")), ["1 function", "3 functions"]);
    }
}
