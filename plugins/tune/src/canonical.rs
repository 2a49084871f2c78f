//! The canonical text of a program: the same wherever it was built, whatever its variables are called.
//!
//! Nodes, symbols of dimensions and terms are numbered in the order of their first appearance. Scalars that mean the same are one,
//! whether they are shared or not. Of constants only their types count, and of the attributes of the program only what it
//! computes.

use std::collections::HashMap;
use std::fmt::Write;

use tenon_plugin_api::abi::records::RawNode;
use tenon_plugin_api::ir::{BodyView, Dim, DimView, Kind, Symbol, Term, TermKind, TermView, Terms};
use tenon_plugin_api::program::OP_NAME;

/// The canonical text of a published program.
pub(crate) fn canonical_text(body: BodyView<'_>) -> String {
    let mut form =
        Form { terms: Names::new(body.terms()), numbers: HashMap::new(), text: String::new() };
    let mut number = vec![0; body.len()];
    for expr in body.post_order() {
        let node = body.raw_node(expr);
        let mut record = form.head(body, node, expr == body.root());
        for operand in body.operands(expr).iter() {
            let _ = write!(record, " {}", number[operand.index()]);
        }
        let kind = Kind(node.kind);
        // Calls in tensor programs are of functions without effects.
        number[expr.index()] = form.number(record, kind.is_value() || kind == Kind::CALL);
    }
    form.text
}

struct Form<'a> {
    terms: Names<'a>,
    /// The numbers of values by their records.
    numbers: HashMap<String, usize>,
    text: String,
}

impl Form<'_> {
    /// All of a node's record but its operands.
    fn head(&mut self, body: BodyView<'_>, node: RawNode, is_root: bool) -> String {
        let kind = Kind(node.kind);
        let mut term = |id: u32| self.terms.text(Term(id));
        // What variables are called does not count. A dimension and a number stand in terms.
        let (data, aux) = match kind {
            Kind::VAR | Kind::CONSTANT => (String::new(), String::new()),
            Kind::BUFFER => (String::new(), term(node.aux)),
            Kind::GLOBAL | Kind::OP | Kind::EXTERN => (term(node.data), node.aux.to_string()),
            Kind::SHAPE | Kind::PRIM | Kind::INT | Kind::FLOAT | Kind::INTRINSIC => {
                (term(node.data), node.aux.to_string())
            }
            Kind::BLOCK => (term(node.data), term(node.aux)),
            Kind::FOR => (node.data.to_string(), term(node.aux)),
            _ => (node.data.to_string(), node.aux.to_string()),
        };
        let ty =
            if kind.is_stmt() || kind == Kind::PRIM_FUNC { String::new() } else { term(node.ty) };
        let attrs = match is_root {
            true => body
                .terms()
                .attrs(body.attrs(body.root()))
                .str(OP_NAME)
                .unwrap_or_default()
                .to_owned(),
            false => term(node.attrs),
        };
        format!("{} {} {ty} {data} {aux} {attrs} :", kind.name(), node.flags)
    }

    /// The number of a node with this record.
    fn number(&mut self, record: String, is_value: bool) -> usize {
        if let Some(&known) = self.numbers.get(&record).filter(|_| is_value) {
            return known;
        }
        let fresh = self.numbers.len();
        self.text.push_str(&record);
        self.text.push('\n');
        // What is no value is itself and no other: its record gets its number.
        let key = if is_value { record } else { format!("{record} #{fresh}") };
        self.numbers.insert(key, fresh);
        fresh
    }
}

/// Texts of terms, with symbols of dimensions by their numbers.
struct Names<'a> {
    terms: Terms<'a>,
    texts: HashMap<Term, String>,
    symbols: HashMap<Symbol, usize>,
}

impl<'a> Names<'a> {
    fn new(terms: Terms<'a>) -> Self {
        Self { terms, texts: HashMap::new(), symbols: HashMap::new() }
    }

    /// The text of a term. Those inside of it are written before it, so that nothing recurses.
    fn text(&mut self, term: Term) -> String {
        let mut waiting = vec![term];
        while let Some(&next) = waiting.last() {
            let children = self.terms.children(next).iter();
            let missing: Vec<Term> =
                children.filter(|child| !self.texts.contains_key(child)).copied().collect();
            if missing.is_empty() {
                waiting.pop();
                let text = self.one(next);
                self.texts.entry(next).or_insert(text);
            }
            waiting.extend(missing.into_iter().rev());
        }
        self.texts[&term].clone()
    }

    fn one(&mut self, term: Term) -> String {
        match self.terms.view(term) {
            TermView::None => return String::new(),
            TermView::Str(text) => return format!("{text:?}"),
            TermView::Int(value) => return value.to_string(),
            TermView::Float(value) => return format!("{:x}", value.to_bits()),
            TermView::Bool(value) => return value.to_string(),
            TermView::Dim(dim) => {
                if let DimView::Symbol(name) = self.terms.dim(Dim(dim.0)) {
                    let fresh = self.symbols.len();
                    return format!("?{}", self.symbols.entry(name).or_insert(fresh));
                }
            }
            _ => {}
        }
        let raw = self.terms.raw(term);
        if TermKind(raw.kind) == TermKind::DICT && raw.len == 0 {
            return String::new();
        }
        let children = self.terms.children(term).iter().map(|child| self.texts[child].as_str());
        let children: Vec<&str> = children.collect();
        format!("{}.{}.{:x}({})", raw.kind, raw.flags, raw.bits, children.join(","))
    }
}
