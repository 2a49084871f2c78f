//! Structural equality and hash: whether two functions, possibly of different contexts, are the same but
//! for names.
//!
//! - Variables and buffers are matched by where they are bound, whatever they are called.
//! - Types, attributes and dimensions are compared by value, symbolic dimensions by name.
//! - Constants are compared by type and bytes; their names do not count, nor does where a node was read.
//! - Leaves and the scalar expressions of tensor programs mean the same wherever they stand, so whether
//!   two uses share one does not count. Sharing of all other nodes does: a shared call runs once.
//! - What follows from the rest does not count: the types of functions, `let`s, operators and globals.
//!
//! Both are linear and do not recurse: a function is brought into a canonical form by one sweep over its
//! nodes, which stand in depth-first order, and forms are compared word by word.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use hashbrown::HashTable;
use rustc_hash::{FxHashMap, FxHasher};
use tenon_plugin_api::abi::records::RawNode;
use tenon_plugin_api::ir::{Context, Kind, Term, TermKind, Terms};

use super::{Constant, Function, Module};

impl Function {
    /// Whether both are the same but for names.
    pub fn is_structurally_equal(&self, other: &Function) -> bool {
        std::ptr::eq(self, other) || Canonical::of(self) == Canonical::of(other)
    }

    /// The same for functions that are structurally equal; it does not depend on the context.
    pub fn structural_hash(&self) -> u64 {
        hash_of(&Canonical::of(self))
    }
}

impl Module {
    /// Whether both have equal attributes and structurally equal functions under the same names, in any
    /// order.
    pub fn is_structurally_equal(&self, other: &Module) -> bool {
        self.len() == other.len()
            && canonical_attrs(self) == canonical_attrs(other)
            && self.iter().all(|(name, function)| {
                let same = other.get_str(self.cx().terms().str(name));
                same.is_some_and(|same| function.is_structurally_equal(same))
            })
    }

    /// The same for modules that are structurally equal.
    pub fn structural_hash(&self) -> u64 {
        let terms = self.cx().terms();
        let mut functions: Vec<(&str, u64)> = self
            .iter()
            .map(|(name, function)| (terms.str(name), function.structural_hash()))
            .collect();
        functions.sort_unstable();
        hash_of(&(canonical_attrs(self), functions))
    }
}

fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = FxHasher::default();
    value.hash(&mut hasher);
    hasher.finish()
}

fn canonical_attrs(module: &Module) -> CanonicalTerms<'_> {
    let mut terms = CanonicalTerms::new(module.cx().terms());
    terms.number(module.attrs.into());
    terms
}

/// A function with everything numbered in the order of its first appearance.
struct Canonical<'a> {
    /// A record for each node that counts: kind and flags, type, payloads, attributes, operands.
    words: Vec<u32>,
    terms: CanonicalTerms<'a>,
    constants: Vec<(u64, &'a Arc<Constant>)>,
}

impl PartialEq for Canonical<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.words == other.words
            && self.terms == other.terms
            && self.constants.len() == other.constants.len()
            // A constant's type stands in the record that names it.
            && self.constants.iter().zip(&other.constants).all(|(a, b)| {
                a.0 == b.0 && (Arc::ptr_eq(a.1, b.1) || a.1.data[..] == b.1.data[..])
            })
    }
}

impl Hash for Canonical<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.words.hash(state);
        self.terms.hash(state);
        self.constants.iter().for_each(|(hash, _)| hash.hash(state));
    }
}

impl<'a> Canonical<'a> {
    fn of(function: &'a Function) -> Self {
        let mut form = Self {
            words: Vec::with_capacity(8 * function.nodes.len()),
            terms: CanonicalTerms::new(function.cx.terms()),
            constants: Vec::new(),
        };
        let constants = form.number_constants(function);
        let is_prim = function.is_prim();
        let mut number: Vec<u32> = Vec::with_capacity(function.nodes.len());
        // The first word of each record, and the hashes and numbers of those that may be shared.
        let mut starts: Vec<usize> = Vec::with_capacity(function.nodes.len());
        let mut shared: HashTable<(u64, u32)> = HashTable::new();
        for node in &function.nodes {
            let start = form.words.len();
            form.push_record(node, &constants);
            let operands = &function.operands[node.start as usize..][..node.len as usize];
            form.words.extend(operands.iter().map(|&operand| number[operand as usize]));
            let fresh = starts.len() as u32;
            let kind = Kind(node.kind);
            if kind.is_value() || (is_prim && kind == Kind::CALL) {
                let own = &form.words[start..];
                let hash = hash_of(&own);
                let is_same = |&(known, number): &(u64, u32)| {
                    // Operands are the last of a record, and their count stands before them.
                    known == hash && form.words[starts[number as usize]..].starts_with(own)
                };
                if let Some(&(_, known)) = shared.find(hash, is_same) {
                    number.push(known);
                    form.words.truncate(start);
                    continue;
                }
                shared.insert_unique(hash, (hash, fresh), |&(hash, _)| hash);
            }
            number.push(fresh);
            starts.push(start);
        }
        form
    }

    /// The number of each constant; equal ones have the same.
    fn number_constants(&mut self, function: &'a Function) -> Vec<u32> {
        let mut known: HashTable<u32> = HashTable::new();
        let mut numbers = Vec::with_capacity(function.constants.len());
        for constant in &function.constants {
            let mut hasher = FxHasher::default();
            hasher.write(&constant.data);
            let hash = hasher.finish();
            let list = &self.constants;
            let is_same = |&number: &u32| {
                let (other_hash, other) = list[number as usize];
                let is_equal = Arc::ptr_eq(other, constant) || other.data[..] == constant.data[..];
                other_hash == hash && other.ty == constant.ty && is_equal
            };
            let number = match known.find(hash, is_same) {
                Some(&number) => number,
                None => {
                    let number = list.len() as u32;
                    known.insert_unique(hash, number, |&number| list[number as usize].0);
                    self.constants.push((hash, constant));
                    number
                }
            };
            numbers.push(number);
        }
        numbers
    }

    /// All of a node's record but its operands.
    fn push_record(&mut self, node: &RawNode, constants: &[u32]) {
        let kind = Kind(node.kind);
        let mut term = |id: u32| self.terms.number(Term(id));
        let (data, aux) = match kind {
            Kind::VAR => (0, 0),
            Kind::BUFFER => (0, term(node.aux)),
            Kind::CONSTANT => (constants.get(node.data as usize).copied().unwrap_or(u32::MAX), 0),
            Kind::GLOBAL | Kind::OP | Kind::EXTERN | Kind::LET | Kind::FUNCTION => {
                (term(node.data), node.aux)
            }
            Kind::SHAPE | Kind::PRIM | Kind::INT | Kind::FLOAT | Kind::INTRINSIC => {
                (term(node.data), node.aux)
            }
            Kind::BLOCK => (term(node.data), term(node.aux)),
            Kind::FOR => (node.data, term(node.aux)),
            _ => (node.data, node.aux),
        };
        let ty = if has_implied_type(kind) { 0 } else { term(node.ty) };
        let attrs = term(node.attrs);
        let head = u32::from(node.kind) | u32::from(node.flags) << 16;
        self.words.extend([head, ty, data, aux, attrs, node.len]);
    }
}

/// Whether the type of nodes of this kind follows from what they are built from.
fn has_implied_type(kind: Kind) -> bool {
    let is_implied = matches!(
        kind,
        Kind::FUNCTION | Kind::LET | Kind::PRIM_FUNC | Kind::GLOBAL | Kind::OP | Kind::REGION
    );
    is_implied || kind.is_stmt()
}

/// Terms, numbered in the order in which they are first met; 0 is none, an empty name, or an empty
/// dictionary.
struct CanonicalTerms<'a> {
    terms: Terms<'a>,
    numbers: FxHashMap<Term, u32>,
    count: u32,
    /// A record for each term: kind and flags, payload, children or the length of the text.
    words: Vec<u32>,
    texts: Vec<u8>,
    stack: Vec<Term>,
}

impl PartialEq for CanonicalTerms<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.words == other.words && self.texts == other.texts
    }
}

impl Hash for CanonicalTerms<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.words.hash(state);
        self.texts.hash(state);
    }
}

impl<'a> CanonicalTerms<'a> {
    fn new(terms: Terms<'a>) -> Self {
        let numbers = FxHashMap::from_iter([(Term::NONE, 0)]);
        Self { terms, numbers, count: 0, words: Vec::new(), texts: Vec::new(), stack: Vec::new() }
    }

    fn number(&mut self, term: Term) -> u32 {
        if let Some(&number) = self.numbers.get(&term) {
            return number;
        }
        self.stack.push(term);
        while let Some(&next) = self.stack.last() {
            if self.numbers.contains_key(&next) {
                self.stack.pop();
                continue;
            }
            let waiting = self.stack.len();
            let children = self.terms.children(next).iter().rev();
            self.stack.extend(children.filter(|&child| !self.numbers.contains_key(child)));
            if self.stack.len() == waiting {
                self.stack.pop();
                self.push_record(next);
            }
        }
        self.numbers[&term]
    }

    /// Numbers a term whose children are numbered.
    fn push_record(&mut self, term: Term) {
        let raw = self.terms.raw(term);
        let kind = TermKind(raw.kind);
        if raw.len == 0 && (kind == TermKind::STR || kind == TermKind::DICT) {
            self.numbers.insert(term, 0);
            return;
        }
        let head = u32::from(raw.kind) | u32::from(raw.flags) << 16;
        let (low, high) = (raw.bits as u32, (raw.bits >> 32) as u32);
        self.words.extend([head, low, high, raw.len]);
        self.texts.extend_from_slice(self.terms.str(term).as_bytes());
        let numbers = &self.numbers;
        self.words.extend(self.terms.children(term).iter().map(|child| numbers[child]));
        self.count += 1;
        self.numbers.insert(term, self.count);
    }
}

#[cfg(test)]
mod tests;
