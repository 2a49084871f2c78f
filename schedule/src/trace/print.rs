//! Printing a trace.

use std::collections::HashMap;
use std::fmt::{Formatter, Result};

use super::{Handle, Instruction, Value};

/// `[i_0, i_1] = split(i, [_, 16], tail = cut)`: required arguments in order, others by name where they are not the default.
pub(super) fn instruction(
    f: &mut Formatter<'_>,
    instruction: &Instruction,
    results: &[String],
    names: &HashMap<Handle, String>,
) -> Result {
    match results {
        [] => {}
        [only] => write!(f, "{only} = ")?,
        several => write!(f, "[{}] = ", several.join(", "))?,
    }
    let primitive = instruction.primitive;
    f.write_str(primitive.name)?;
    if primitive.version > 1 {
        write!(f, "@{}", primitive.version)?;
    }
    let mut args = Vec::new();
    for (param, value) in primitive.params.iter().zip(&instruction.args.0) {
        let text = text_of(value, names);
        match param.default {
            None => args.push(text),
            Some(default) if default != text => args.push(format!("{} = {text}", param.name)),
            Some(_) => {}
        }
    }
    write!(f, "({})", args.join(", "))
}

fn text_of(value: &Value, names: &HashMap<Handle, String>) -> String {
    match value {
        Value::Handle(handle) => names.get(handle).cloned().unwrap_or_else(|| "gone".into()),
        Value::Int(value) => value.to_string(),
        Value::Open => "_".into(),
        Value::Word(word) => word.clone(),
        Value::Text(text) => quoted(text),
        Value::List(values) => {
            let items: Vec<String> = values.iter().map(|value| text_of(value, names)).collect();
            format!("[{}]", items.join(", "))
        }
    }
}

fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{escaped}\"")
}
