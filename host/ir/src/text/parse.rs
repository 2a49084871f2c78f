//! Reads modules from text.

mod body;
mod constant;
mod cursor;
mod graph;
mod graph_scope;
mod module;
mod numbers;
mod prim;
mod prim_scope;
mod scalar;
mod scope;
mod source;
mod terms;

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::lexer::{Lexer, Token};
use crate::diagnostics::{Diagnostic, Diagnostics, Source};
use crate::{Attrs, Constant, Cx, Module, Term, Type};

/// The weights file that a text names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightsFile {
    /// Relative to the text's own place.
    pub name: String,
    /// Its digest, in hexadecimal digits, where the text says it.
    pub sha256: Option<String>,
}

/// Where the constants come from that do not stand in the text.
pub trait LoadWeight {
    /// The constant `key` of the weights file that the text names. It is asked for once.
    fn load(&mut self, file: Option<&WeightsFile>, key: &str) -> Result<Constant, Box<dyn Error>>;
}

impl<F: FnMut(Option<&WeightsFile>, &str) -> Result<Constant, Box<dyn Error>>> LoadWeight for F {
    fn load(&mut self, file: Option<&WeightsFile>, key: &str) -> Result<Constant, Box<dyn Error>> {
        self(file, key)
    }
}

/// For texts that have all their constants inline.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoWeights;

impl LoadWeight for NoWeights {
    fn load(
        &mut self,
        _file: Option<&WeightsFile>,
        _key: &str,
    ) -> Result<Constant, Box<dyn Error>> {
        Err("no weights file was given".into())
    }
}

/// Reads a module. All errors of the text come back together.
pub fn parse_module(
    cx: &Cx,
    source: &Arc<Source>,
    weights: &mut dyn LoadWeight,
) -> Result<Module, Diagnostics> {
    parse_as(cx, source, Places::Unnamed, weights)
}

/// What places in a text are good for, once it is read.
#[derive(Clone, Copy)]
pub enum Places {
    /// They are where nodes came from, for users as well.
    Named,
    /// Who has the text at hand can point at them.
    Unnamed,
    /// Nothing: the text is no user's.
    Forgotten,
}

/// The bytes of a text are fewer: a place in it is half of a word.
pub const LONGEST_TEXT: u64 = i32::MAX as u64;

/// Reads a module as [`parse_module`] does. `places` says what places in its text are good for afterwards.
pub fn parse_as(
    cx: &Cx,
    source: &Arc<Source>,
    places: Places,
    weights: &mut dyn LoadWeight,
) -> Result<Module, Diagnostics> {
    if source.text.len() as u64 >= LONGEST_TEXT {
        let message = format!("`{}` is too long: a text has at most 2 GB", source.name);
        return Err(Diagnostic::error(message).into());
    }
    let base = match places {
        Places::Named => cx.add_text(Some(&source.name), &source.text),
        Places::Unnamed => cx.add_text(None, &source.text),
        Places::Forgotten => None,
    };
    Parser::new(cx, source, base, weights).module()
}

/// The state of reading one text.
struct Parser<'s, 'w> {
    cx: &'s Cx,
    source: &'s Arc<Source>,
    /// Where its offsets begin among those of the context; nothing when there is no room for them.
    base: Option<u32>,
    text: &'s str,
    lexer: Lexer<'s>,
    token: Token,
    last_end: u32,
    depth: u32,
    open_dicts: u32,
    errors: usize,
    diagnostics: Vec<Diagnostic>,
    // Terms by their text: the same few types, attributes and names come again and again.
    types: FxHashMap<&'s str, Type>,
    dicts: FxHashMap<&'s str, Attrs>,
    ops: FxHashMap<&'s str, crate::Symbol>,
    small_ints: Box<[Term; numbers::SMALL]>,
    scalar_types: [Option<Type>; 32],
    weights: &'w mut dyn LoadWeight,
    weights_file: Option<WeightsFile>,
    constants: HashMap<String, Arc<Constant>>,
}

impl<'s, 'w> Parser<'s, 'w> {
    fn new(
        cx: &'s Cx,
        source: &'s Arc<Source>,
        base: Option<u32>,
        weights: &'w mut dyn LoadWeight,
    ) -> Self {
        let mut lexer = Lexer::new(&source.text);
        let token = lexer.next();
        Self {
            cx,
            source,
            base,
            text: &source.text,
            lexer,
            token,
            last_end: 0,
            depth: 0,
            open_dicts: 0,
            errors: 0,
            diagnostics: Vec::new(),
            types: FxHashMap::default(),
            dicts: FxHashMap::default(),
            ops: FxHashMap::default(),
            small_ints: Box::new([Term::NONE; numbers::SMALL]),
            scalar_types: [None; 32],
            weights,
            weights_file: None,
            constants: HashMap::new(),
        }
    }
}
