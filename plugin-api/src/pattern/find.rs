//! Finds where a pattern matches.

use crate::ir::{Attrs, BodyView, Expr, Kind, TermView, View};

use super::{AttrIs, Node, Pattern};

/// What a pattern matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// The calls, tuples and projections that parts of the pattern matched, wholes before parts. An
    /// expression that two parts match stands here twice.
    pub inside: Vec<Expr>,
    /// What `*`, `const` and names matched, from left to right.
    pub leaves: Vec<Expr>,
}

/// How far a search has come.
#[derive(Clone)]
struct State {
    /// What is left to be matched, the next one last.
    todo: Vec<(usize, Expr)>,
    inside: Vec<Expr>,
    leaves: Vec<Expr>,
    /// What the names stand for.
    named: Vec<Option<Expr>>,
}

/// The most steps that one search takes: choices within choices may mean many.
const MAX_STEPS: usize = 100_000;

impl Pattern {
    /// The match of this pattern at `expr`: of several the first, in the order of the choices.
    ///
    /// `definition` looks through a variable: it gives what the variable is bound to where that may be part
    /// of the match, and any other expression as it is.
    pub fn find(
        &self,
        body: BodyView<'_>,
        expr: Expr,
        mut definition: impl FnMut(Expr) -> Expr,
    ) -> Option<Match> {
        let mut state = State {
            todo: vec![(self.nodes.len() - 1, expr)],
            inside: Vec::new(),
            leaves: Vec::new(),
            named: vec![None; self.names.len()],
        };
        // States to go back to, each with the choices that were not tried yet.
        let mut others: Vec<(State, &[usize], Expr)> = Vec::new();
        for _ in 0..MAX_STEPS {
            let Some((node, expr)) = state.todo.pop() else {
                return Some(Match { inside: state.inside, leaves: state.leaves });
            };
            let matches = match &self.nodes[node] {
                Node::Choice(choices) => {
                    others.push((state.clone(), choices, expr));
                    false
                }
                node => self.step(node, body, expr, &mut definition, &mut state),
            };
            if matches {
                continue;
            }
            loop {
                let (before, choices, expr) = others.last_mut()?;
                let Some((&first, rest)) = choices.split_first() else {
                    others.pop();
                    continue;
                };
                state = before.clone();
                state.todo.push((first, *expr));
                *choices = rest;
                break;
            }
        }
        None
    }

    /// Matches one part that is no choice, and leaves its own parts to be matched.
    fn step(
        &self,
        node: &Node,
        body: BodyView<'_>,
        expr: Expr,
        definition: &mut impl FnMut(Expr) -> Expr,
        state: &mut State,
    ) -> bool {
        let value = match node {
            Node::Any | Node::Named(_) => expr,
            _ => definition(expr),
        };
        let (parts, args): (&[usize], Vec<Expr>) = match (node, body.view(value)) {
            (Node::Any, _) | (Node::Constant, View::Constant(_)) => {
                state.leaves.push(expr);
                return true;
            }
            (Node::Named(name), _) => {
                state.leaves.push(expr);
                return *state.named[*name].get_or_insert(expr) == expr;
            }
            (Node::Call { op, args, attrs }, View::Call { callee, args: found, attrs: has }) => {
                let is_call = body.kind(callee) == Kind::OP
                    && body.op_name(callee) == Some(op)
                    && args.as_ref().is_none_or(|args| args.len() == found.len())
                    && attrs.iter().all(|(name, value)| value.is(body, has, name));
                if !is_call {
                    return false;
                }
                match args {
                    Some(args) => (args, found.to_vec()),
                    None => {
                        state.leaves.extend(found.iter());
                        (&[], Vec::new())
                    }
                }
            }
            (Node::Tuple(fields), View::Tuple(found)) if fields.len() == found.len() => {
                (fields, found.to_vec())
            }
            (Node::Item(tuple, index), View::TupleGetItem { tuple: found, index: at })
                if at == *index =>
            {
                (std::slice::from_ref(tuple), vec![found])
            }
            _ => return false,
        };
        state.inside.push(value);
        state.todo.extend(parts.iter().copied().zip(args).rev());
        true
    }
}

impl AttrIs {
    fn is(&self, body: BodyView<'_>, attrs: Attrs, name: &str) -> bool {
        let attrs = body.terms().attrs(attrs);
        match (self, attrs.get(name)) {
            (AttrIs::Int(value), Some(TermView::Int(found))) => *value == found,
            (AttrIs::Float(value), Some(TermView::Float(found))) => *value == found,
            (AttrIs::Bool(value), Some(TermView::Bool(found))) => *value == found,
            (AttrIs::Str(value), Some(TermView::Str(found))) => value == found,
            _ => false,
        }
    }
}
