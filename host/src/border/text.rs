//! Texts that plugins hand over. Their types promise UTF-8; the host looks at the bytes.

use abi_stable::std_types::{RStr, RString};

/// The text of a borrowed string; the error is what can be read of it.
pub(crate) fn checked(text: RStr<'_>) -> Result<&str, String> {
    let bytes = text.as_rslice().as_slice();
    std::str::from_utf8(bytes).map_err(|_| String::from_utf8_lossy(bytes).into_owned())
}

/// What can be read of a message.
pub(crate) fn readable(message: RString) -> String {
    match String::from_utf8(message.into_bytes().into_vec()) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_text_are_refused_or_replaced() {
        assert_eq!(checked(RStr::from_str("é")), Ok("é"));
        let bytes = vec![b'a', 0xff, b'b'];
        // SAFETY: nothing but `checked` and `readable` looks at the bytes.
        let wrong = unsafe { str::from_utf8_unchecked(&bytes) };
        assert_eq!(checked(RStr::from_str(wrong)), Err("a\u{fffd}b".to_owned()));
        assert_eq!(readable(RString::from(wrong)), "a\u{fffd}b");
    }
}
