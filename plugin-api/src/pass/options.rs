//! The options of a pass, as a struct of its author's.

use crate::ir::{Context, Symbol, TermView};
use crate::pass::{PassContext, PassError, Result};

/// A struct that holds the options of a pass; `#[derive(Options)]` makes it one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not hold the options of a pass",
    label = "no options of a pass",
    note = "the last parameter of a pass is a struct under `#[derive(Options)]`"
)]
pub trait Options: Sized {
    /// What the manifest says of them: a JSON array of one object for each.
    const DECLARED: &'static str;

    /// Those of this run, with defaults filled in. Fails for what is declared and yet no value of its type: the name of no
    /// operator.
    fn of_run(cx: &PassContext) -> Result<Self>;
}

/// What an option may be.
pub trait OptionValue: Sized {
    /// The value of the option `name`; the host has compared it with what the manifest says.
    fn read(value: TermView<'_>, name: &str, cx: &PassContext) -> Result<Self>;
}

/// The value of one option of this run. `#[derive(Options)]` expands to calls of it.
pub fn option_of_run<T: OptionValue>(cx: &PassContext, name: &str) -> Result<T> {
    let value = cx.options().get(name).unwrap_or(TermView::None);
    T::read(value, name, cx)
}

fn other_type(name: &str, expected: &str, value: TermView<'_>) -> PassError {
    PassError::new(format!("the option `{name}` is to be {expected}, and the host gives {value:?}"))
}

macro_rules! scalars {
    ($($ty:ty, $expected:literal, $pattern:pat => $value:expr;)*) => {$(
        impl OptionValue for $ty {
            fn read(value: TermView<'_>, name: &str, _: &PassContext) -> Result<Self> {
                let read: Option<Self> = match value {
                    $pattern => $value,
                    _ => None,
                };
                read.ok_or_else(|| other_type(name, $expected, value))
            }
        }
    )*};
}

scalars! {
    i64, "an integer", TermView::Int(value) => Some(value);
    u64, "a natural number", TermView::Int(value) => value.try_into().ok();
    usize, "a natural number", TermView::Int(value) => value.try_into().ok();
    f64, "a number", TermView::Float(value) => Some(value);
    bool, "true or false", TermView::Bool(value) => Some(value);
    String, "a text", TermView::Str(value) => Some(value.to_owned());
}

/// An operator, by its name.
impl OptionValue for Symbol {
    fn read(value: TermView<'_>, name: &str, cx: &PassContext) -> Result<Self> {
        let TermView::Str(op) = value else {
            return Err(other_type(name, "the name of an operator", value));
        };
        match cx.op_info(op) {
            Some(_) => Ok(cx.symbol(op)),
            None => {
                let text = format!("option `{name}` names `{op}`, which is no operator");
                Err(PassError::new(text))
            }
        }
    }
}

impl<T: OptionValue> OptionValue for Vec<T> {
    fn read(value: TermView<'_>, name: &str, cx: &PassContext) -> Result<Self> {
        let TermView::List(items) = value else { return Err(other_type(name, "a list", value)) };
        items.iter().map(|&item| T::read(cx.terms().view(item), name, cx)).collect()
    }
}
