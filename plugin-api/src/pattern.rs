//! Patterns of graph expressions: what a code generator can compute, what a pass looks for.
//!
//! A pattern is written as text, or built:
//!
//! ```
//! use tenon_plugin_api::pattern::Pattern;
//!
//! let text: Pattern = "nn.relu(add(nn.conv2d(*, const), *) | nn.conv2d(*, const))".parse()?;
//! let conv = || Pattern::op("nn.conv2d", [Pattern::any(), Pattern::constant()]);
//! let built = Pattern::op("nn.relu", [Pattern::op("add", [conv(), Pattern::any()]).or(conv())]);
//! assert_eq!(text.to_string(), built.to_string());
//! # Ok::<(), tenon_plugin_api::pattern::PatternError>(())
//! ```
//!
//! ```text
//! pattern = term { "|" term }                              the first that fits
//! term    = "*"                                            anything
//!         | "const"                                        a constant
//!         | "%" name                                       anything, the same wherever the name stands
//!         | operator "(" [ "..." | pattern { "," pattern } ] ")" { where }
//!         | "(" pattern ")"
//!         | "(" [ pattern "," [ pattern { "," pattern } ] ] ")"   a tuple
//!         | term "." number                                its field
//! where   = "{" name "=" value { "," name "=" value } "}"  attributes that a call must have
//! value   = integer | float | true | false | string
//! ```
//!
//! Variables are looked through: a pattern matches what they are bound to, as far as [`Pattern::find`] is told
//! to look.

mod find;
mod parse;

use std::fmt;

pub use find::Match;
pub use parse::PatternError;

/// What an expression may look like. Building one from parts takes time in proportion to all but the first.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    /// Parts before wholes; the last is the root.
    nodes: Vec<Node>,
    names: Vec<String>,
}

/// A part of a pattern; parts of its own by their numbers.
#[derive(Clone, Debug, PartialEq)]
enum Node {
    Any,
    Constant,
    /// By the number of its name.
    Named(usize),
    Call {
        op: String,
        /// `None` for any.
        args: Option<Vec<usize>>,
        attrs: Vec<(String, AttrIs)>,
    },
    Tuple(Vec<usize>),
    Item(usize, usize),
    Choice(Vec<usize>),
}

/// The value of an attribute that a call must have.
#[derive(Clone, Debug, PartialEq)]
pub enum AttrIs {
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A bool.
    Bool(bool),
    /// A string.
    Str(String),
}

impl Pattern {
    /// Anything.
    pub fn any() -> Self {
        Self::leaf(Node::Any)
    }

    /// A constant.
    pub fn constant() -> Self {
        Self::leaf(Node::Constant)
    }

    /// Anything; in every place where the name stands the same.
    pub fn named(name: &str) -> Self {
        Self { nodes: vec![Node::Named(0)], names: vec![name.to_owned()] }
    }

    /// A call of the operator called `op` with these arguments.
    pub fn op(op: &str, args: impl IntoIterator<Item = Pattern>) -> Self {
        let op = op.to_owned();
        Self::of(args, |args| Node::Call { op, args: Some(args), attrs: Vec::new() })
    }

    /// A call of the operator called `op`, whatever its arguments.
    pub fn op_of_any(op: &str) -> Self {
        Self::leaf(Node::Call { op: op.to_owned(), args: None, attrs: Vec::new() })
    }

    /// A tuple.
    pub fn tuple(fields: impl IntoIterator<Item = Pattern>) -> Self {
        Self::of(fields, Node::Tuple)
    }

    /// This pattern, a call, with an attribute that it must have.
    ///
    /// # Panics
    /// When this pattern is no call of an operator.
    #[must_use]
    pub fn with_attr(mut self, name: &str, value: AttrIs) -> Self {
        let Some(Node::Call { attrs, .. }) = self.nodes.last_mut() else {
            panic!("only calls have attributes");
        };
        attrs.push((name.to_owned(), value));
        self
    }

    /// Field `index` of what this pattern matches.
    #[must_use]
    pub fn item(self, index: usize) -> Self {
        Self::of([self], |tuple| Node::Item(tuple[0], index))
    }

    /// What this pattern matches, or else the other.
    #[must_use]
    pub fn or(mut self, other: Pattern) -> Self {
        if let Some(Node::Choice(mut choices)) =
            self.nodes.pop_if(|last| matches!(last, Node::Choice(_)))
        {
            choices.push(self.append(other));
            self.nodes.push(Node::Choice(choices));
            return self;
        }
        Self::of([self, other], Node::Choice)
    }

    fn leaf(node: Node) -> Self {
        Self { nodes: vec![node], names: Vec::new() }
    }

    fn of(
        parts: impl IntoIterator<Item = Pattern>,
        whole: impl FnOnce(Vec<usize>) -> Node,
    ) -> Self {
        let mut parts = parts.into_iter();
        let Some(mut this) = parts.next() else { return Self::leaf(whole(Vec::new())) };
        let mut roots = vec![this.nodes.len() - 1];
        for part in parts {
            roots.push(this.append(part));
        }
        this.nodes.push(whole(roots));
        this
    }

    /// Takes the nodes of another pattern over, and says which is its root.
    fn append(&mut self, other: Pattern) -> usize {
        let base = self.nodes.len();
        let names: Vec<usize> = other.names.iter().map(|name| self.name(name)).collect();
        self.nodes.extend(other.nodes.into_iter().map(|node| match node {
            Node::Named(name) => Node::Named(names[name]),
            Node::Call { op, args, attrs } => {
                let args = args.map(|args| args.into_iter().map(|arg| base + arg).collect());
                Node::Call { op, args, attrs }
            }
            Node::Tuple(fields) => {
                Node::Tuple(fields.into_iter().map(|field| base + field).collect())
            }
            Node::Item(tuple, index) => Node::Item(base + tuple, index),
            Node::Choice(all) => Node::Choice(all.into_iter().map(|one| base + one).collect()),
            leaf => leaf,
        }));
        self.nodes.len() - 1
    }

    fn name(&mut self, name: &str) -> usize {
        let known = self.names.iter().position(|other| other == name);
        known.unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        })
    }
}

/// The text of a pattern, which reads as the pattern again.
impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        enum Piece<'a> {
            Node(usize),
            /// A part that stands in parentheses where it is a choice.
            Operand(usize),
            Text(&'static str),
            Attrs(&'a [(String, AttrIs)]),
            Field(usize),
        }
        fn list(pieces: &mut Vec<Piece<'_>>, parts: &[usize]) {
            for (number, &part) in parts.iter().enumerate().rev() {
                pieces.push(Piece::Node(part));
                pieces.extend((number > 0).then_some(Piece::Text(", ")));
            }
        }
        let mut pieces = vec![Piece::Node(self.nodes.len() - 1)];
        while let Some(piece) = pieces.pop() {
            let node = match piece {
                Piece::Node(node) => &self.nodes[node],
                Piece::Operand(node) => {
                    if matches!(self.nodes[node], Node::Choice(_)) {
                        f.write_str("(")?;
                        pieces.push(Piece::Text(")"));
                    }
                    &self.nodes[node]
                }
                Piece::Text(text) => {
                    f.write_str(text)?;
                    continue;
                }
                Piece::Field(index) => {
                    write!(f, ".{index}")?;
                    continue;
                }
                Piece::Attrs(attrs) => {
                    let all: Vec<String> =
                        attrs.iter().map(|(name, value)| format!("{name} = {value}")).collect();
                    write!(f, " {{ {} }}", all.join(", "))?;
                    continue;
                }
            };
            match node {
                Node::Any => f.write_str("*")?,
                Node::Constant => f.write_str("const")?,
                Node::Named(name) => write!(f, "%{}", self.names[*name])?,
                Node::Call { op, args, attrs } => {
                    write!(f, "{op}(")?;
                    pieces.extend((!attrs.is_empty()).then_some(Piece::Attrs(attrs)));
                    pieces.push(Piece::Text(")"));
                    match args {
                        Some(args) => list(&mut pieces, args),
                        None => pieces.push(Piece::Text("...")),
                    }
                }
                Node::Tuple(fields) => {
                    f.write_str("(")?;
                    pieces.push(Piece::Text(if fields.len() == 1 { ",)" } else { ")" }));
                    list(&mut pieces, fields);
                }
                Node::Item(tuple, index) => {
                    pieces.extend([Piece::Field(*index), Piece::Operand(*tuple)]);
                }
                Node::Choice(choices) => {
                    for (number, &choice) in choices.iter().enumerate().rev() {
                        pieces.push(Piece::Operand(choice));
                        pieces.extend((number > 0).then_some(Piece::Text(" | ")));
                    }
                }
            }
        }
        Ok(())
    }
}

impl fmt::Display for AttrIs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttrIs::Int(value) => write!(f, "{value}"),
            AttrIs::Float(value) => write!(f, "{value:?}"),
            AttrIs::Bool(value) => write!(f, "{value}"),
            AttrIs::Str(value) => write!(f, "{value:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{AttrIs, Pattern};

    #[test]
    fn prints_what_it_read() {
        for text in [
            "*",
            "const",
            "nn.relu(*)",
            "add(%x, %x)",
            "nn.relu(add(nn.conv2d(*, const), *) | nn.conv2d(...) { groups = 1, layout = \"NCHW\" })",
            "split(*) { sections = 2 }.0",
            "(add(*, *) | multiply(*, *)).1",
            "concat((*, const, %x))",
            "concat((*,))",
            "f(())",
            "clip(*) { min = 0.0, max = -1, on = true }",
        ] {
            let pattern: Pattern = text.parse().expect(text);
            assert_eq!(pattern.to_string(), text);
            assert_eq!(pattern.to_string().parse::<Pattern>().expect(text), pattern);
        }
    }

    #[test]
    fn says_what_is_wrong() {
        for (text, at, message) in [
            ("", 0, "expected a pattern"),
            ("nn.relu", 7, "expected `(` behind"),
            ("nn.relu(*", 9, "expected `|`, `.`, `,` or `)`"),
            ("nn.relu(*))", 10, "expected `|`, `.` or the end"),
            ("add(*, )", 8, ""),
            ("add(* | )", 8, "expected a pattern"),
            ("split(*).x", 9, "expected the number of a field"),
            ("clip(*) { min = ? }", 16, "expected an integer"),
            ("*, *", 1, "expected `|`, `.` or the end"),
        ] {
            match text.parse::<Pattern>() {
                Ok(pattern) => assert_eq!(message, "", "{text} reads as {pattern}"),
                Err(error) => {
                    assert!(error.message.starts_with(message), "{text}: {error}");
                    assert_eq!(error.at, at, "{text}: {error}");
                }
            }
        }
    }

    #[test]
    fn deep_patterns_neither_recurse_nor_take_long() {
        let depth = if cfg!(miri) { 100 } else { 100_000 };
        let text = "f(".repeat(depth) + "*" + &")".repeat(depth);
        let pattern: Pattern = text.parse().expect("it is a pattern");
        assert_eq!(pattern.to_string(), text);
        let built = (0..depth).fold(Pattern::any(), |pattern, _| Pattern::op("f", [pattern]));
        assert_eq!(built, pattern);
    }

    #[test]
    fn builds_what_text_says() {
        let split = Pattern::op("split", [Pattern::any()]).with_attr("sections", AttrIs::Int(2));
        let built =
            Pattern::op("add", [split.item(0), Pattern::named("x").or(Pattern::constant())]);
        let text = "add(split(*) { sections = 2 }.0, %x | const)";
        assert_eq!(built.to_string(), text);
        assert_eq!(text.parse(), Ok(built));
    }
}
