//! The facet `interpreter`: who runs plugins that are texts.
//!
//! ```text
//! acme.py, interpreters.py = "python3.12" in the registry   =>   /usr/bin/python3.12 -c "…"
//! ```
//!
//! The key is what names of files end in, without the dot. The question is the interpreter that the registry names for it, if it names
//! one; the answer is a command. The host starts it with the file and its digest as two more arguments, once for each file of which
//! a pass is needed, and speaks with it as with the process of an isolated plugin. So a plugin that hosts a language finds
//! an interpreter, and nothing of the language is in the host.

use crate::ir::{Context, Term, TermView};
use crate::pass::{PassError, Result};

use super::{Facet, Question, Reply};

/// The facet.
pub struct Interpreters;

/// What a rule of [`Interpreters`] is asked.
pub struct Interpreter<'a> {
    question: Question<'a>,
}

impl Interpreter<'_> {
    /// The interpreter that the registry names: a path, or a name to be looked for.
    pub fn wanted(&self) -> Option<&str> {
        let data = self.question.data();
        match self.question.context().terms().view(data) {
            TermView::Str(text) => Some(text),
            _ => None,
        }
    }
}

impl Facet for Interpreters {
    const NAME: &'static str = "interpreter";
    type Ask<'a> = Interpreter<'a>;
    type Answer = Vec<String>;

    fn ask(question: Question<'_>) -> Result<Interpreter<'_>> {
        Ok(Interpreter { question })
    }

    fn reply(ask: &mut Interpreter<'_>, command: Vec<String>) -> Result<Reply> {
        if command.is_empty() {
            return Err(PassError::new("a command has at least the program"));
        }
        let cx = ask.question.context();
        let words: Vec<Term> = command.iter().map(|word| cx.symbol(word).into()).collect();
        Ok(Reply { nodes: Vec::new(), data: cx.list(&words) })
    }
}
