//! Operators and rules that are written in Python, for a session that tries them out.

use std::sync::Arc;

use pyo3::prelude::*;
use tenon_compiler::border::{add_program, lend_transaction};
use tenon_compiler::diagnostics::Source;
use tenon_compiler::eval::Tensor;
use tenon_compiler::ir::{
    Attrs, Bytes, Context, Cx, DType, Evaluation, RuleCode, RuleQuestion, RuleReply, Term,
    TermView, Type,
};
use tenon_compiler::ops::{Extended, OpError};
use tenon_compiler::registry::Reason;
use tenon_compiler::text::parse_checked_module;

use crate::arrays::Array;
use crate::edit::{Edit, parsed_type};
use crate::passes::traceback;
use crate::terms;

/// The facet whose rules answer with a tensor program.
const COMPUTE: &str = "compute";

/// An operator as Python gives it: its record as JSON, and two functions.
pub(crate) type Op = (String, Py<PyAny>, Py<PyAny>);

/// A rule: its facet, its key, its benefit, its function and what it is called in messages.
pub(crate) type Rule = (String, String, i64, Py<PyAny>, String);

/// A book with these operators and rules besides.
pub(crate) fn extended(
    mut book: Extended,
    ops: Vec<Op>,
    rules: Vec<Rule>,
) -> Result<Extended, Reason> {
    for (record, infer, evaluate) in ops {
        book = book.with_op(&record, Arc::new(PythonOp { infer, evaluate }))?;
    }
    for (facet, key, benefit, body, provider) in rules {
        let is_program = facet == COMPUTE;
        let code = Arc::new(PythonRule { body, is_program });
        book = book.with_rule(&facet, &key, benefit, &provider, code);
    }
    Ok(book)
}

/// `infer(types, attributes)` gives a type, `evaluate(arrays, attributes, outputs)` gives bytes for each output.
struct PythonOp {
    infer: Py<PyAny>,
    evaluate: Py<PyAny>,
}

impl Evaluation for PythonOp {
    fn infer(&self, cx: &Cx, args: &[Type], attrs: Attrs) -> Result<Type, OpError> {
        let terms = cx.terms();
        let types: Vec<String> = args.iter().map(|&ty| terms.type_text(ty)).collect();
        let attrs = terms::dict(terms, attrs).to_string();
        told(|py| {
            let ty: String = self.infer.call1(py, (types, attrs))?.extract(py)?;
            parsed_type(cx, &ty)
        })
    }

    fn evaluate(
        &self,
        cx: &Cx,
        args: &[Tensor],
        attrs: Attrs,
        outs: &[(DType, Vec<usize>)],
    ) -> Result<Vec<Tensor>, OpError> {
        let attrs = terms::dict(cx.terms(), attrs).to_string();
        let made: Vec<Vec<u8>> = told(|py| {
            let arrays: PyResult<Vec<Array>> = args.iter().map(array).collect();
            let outs: Vec<(String, &Vec<usize>)> =
                outs.iter().map(|(dtype, shape)| (dtype.to_string(), shape)).collect();
            self.evaluate.call1(py, (arrays?, attrs, outs))?.extract(py)
        })?;
        let outs = outs.iter().zip(made).map(|((dtype, shape), bytes)| {
            let tensor = Tensor::new(*dtype, shape.clone(), Bytes::new(bytes));
            tensor.ok_or_else(|| OpError::Broken("an output has another size".to_owned()))
        });
        outs.collect()
    }
}

fn array(tensor: &Tensor) -> PyResult<Array> {
    let shape: Vec<i64> = tensor.shape().iter().map(|&extent| extent as i64).collect();
    Array::of_bytes(tensor.dtype(), &shape, tensor.bytes())
}

struct PythonRule {
    body: Py<PyAny>,
    is_program: bool,
}

impl RuleCode for PythonRule {
    fn ask(&self, question: &RuleQuestion<'_>) -> Result<Option<RuleReply>, OpError> {
        match self.is_program {
            true => self.program(question),
            false => self.rewritten(question),
        }
    }
}

impl PythonRule {
    /// `body(edit, call, definitions)` gives a node of the edit, or None.
    fn rewritten(&self, question: &RuleQuestion<'_>) -> Result<Option<RuleReply>, OpError> {
        let &[call, ..] = question.nodes else {
            return Err(OpError::Broken("its facet asks about no call".to_owned()));
        };
        let answer = lend_transaction(question, |transaction, definitions| {
            Python::attach(|py| {
                let edit = Py::new(py, Edit::lent(question.cx, transaction));
                let edit = edit.expect("Python has memory for an object");
                let answer = self.body.call1(py, (edit.clone_ref(py), call, definitions));
                let answer = answer.and_then(|answer| answer.extract::<Option<u32>>(py));
                (edit.get().give_back(), answer.map_err(|error| traceback(py, &error)))
            })
        })?;
        let node = answer.map_err(OpError::Told)?;
        Ok(node.map(|node| RuleReply { nodes: vec![node], data: 0 }))
    }

    /// `body(types, result, attributes, target)` gives the text of a tensor program, or None.
    fn program(&self, question: &RuleQuestion<'_>) -> Result<Option<RuleReply>, OpError> {
        let cx = question.cx;
        let terms = cx.terms();
        let &[attrs, _, _, target, inputs, outputs, ..] = terms.children(Term(question.data))
        else {
            return Err(OpError::Broken("the question is none of a program".to_owned()));
        };
        let texts = |list: Term| -> Vec<String> {
            terms.children(list).iter().map(|it| terms.type_text(Type(it.0))).collect()
        };
        let dict = |term: Term| match terms.view(term) {
            TermView::Dict(_) => terms::dict(terms, Attrs(term.0)).to_string(),
            _ => "{}".to_owned(),
        };
        let given = (texts(inputs), texts(outputs), dict(attrs), dict(target));
        let text: Option<String> = told(|py| self.body.call1(py, given)?.extract(py))?;
        let Some(text) = text else { return Ok(None) };
        let module = parse_checked_module(cx, &Source::new("the program of a rule", text))
            .map_err(|told| OpError::Told(told.render(false)))?;
        let mut functions = module.iter();
        let (Some((_, program)), None) = (functions.next(), functions.next()) else {
            return Err(OpError::Told("the rule gives one tensor program".to_owned()));
        };
        if !program.is_prim() {
            return Err(OpError::Told("the rule gives no tensor program".to_owned()));
        }
        let root = add_program(question, program)?;
        Ok(Some(RuleReply { nodes: vec![root], data: 0 }))
    }
}

/// What Python makes; what it raises is told with its traceback.
fn told<T>(work: impl FnOnce(Python<'_>) -> PyResult<T>) -> Result<T, OpError> {
    Python::attach(|py| work(py).map_err(|error| OpError::Told(traceback(py, &error))))
}
