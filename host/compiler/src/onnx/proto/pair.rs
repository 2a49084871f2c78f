//! Two texts, as metadata has them.

use crate::onnx::wire::{Reader, WireError};

/// A `StringStringEntryProto`.
pub(super) fn string_pair<'a>(mut reader: Reader<'a>) -> Result<(&'a str, &'a str), WireError> {
    let (mut key, mut value) = ("", "");
    while let Some(field) = reader.next_field()? {
        match field.number {
            1 => key = field.string()?,
            2 => value = field.string()?,
            _ => {}
        }
    }
    Ok((key, value))
}
