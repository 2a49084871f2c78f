//! What crosses: values as nodes.

use crate::ir::{Expr, Term};
use crate::pass::Result;
use crate::rule::{Facet, Question, Reply};

use super::{Node, Value};

/// `import.onnx`: what a node of a model becomes. Its rules answer with the values that the node makes, at least as many as
/// somebody reads.
pub struct ImportOnnx;

impl Facet for ImportOnnx {
    const NAME: &'static str = "import.onnx";
    type Ask<'a> = Node<'a>;
    type Answer = Vec<Value>;

    fn ask(question: Question<'_>) -> Result<Node<'_>> {
        Node::new(&question)
    }

    fn reply(_: &mut Node<'_>, answer: Vec<Value>) -> Result<Reply> {
        let nodes = answer.into_iter().map(|value| Expr(value.0)).collect();
        Ok(Reply { nodes, data: Term::default() })
    }
}
