//! Loops: a function is called for each trip, with what the last trip gave.

use tenon_ir::{Bytes, Context, DType, Expr, Type, TypeView};

use super::super::value::FunctionValue;
use super::super::{EvalProblem, Tensor, Tuple, Value};
use super::{Callee, Caller, Machine, Step, Task};

/// A loop between two trips.
pub(super) struct Trips {
    /// The node whose value it is.
    pub(super) node: Expr,
    function: Callee,
    limit: i64,
    /// Trips that were made.
    made: i64,
    /// Whether the trip that was made last says that another one may follow.
    goes_on: bool,
    carried: Vec<Value>,
    /// What trips gave besides, those of one place of the result together.
    rows: Vec<Vec<Tensor>>,
}

impl Machine<'_, '_> {
    /// Begins the loop `node` with the values of its arguments.
    pub(super) fn begin_loop(&mut self, node: Expr, args: Vec<Value>) -> Step {
        let mut args = args.into_iter();
        let mut next = || args.next().unwrap_or_else(Value::unit);
        let (function, limit, go, carried) = (next(), next(), next(), next());
        let Value::Function(FunctionValue(function)) = function else {
            return Err(EvalProblem::WrongValue("a function", function.kind()));
        };
        let Value::Tuple(carried) = carried else {
            return Err(EvalProblem::WrongValue("a tuple", carried.kind()));
        };
        let limit = match &limit {
            Value::Scalar(limit) => *limit,
            other => {
                let limit = other.to_tensor().and_then(|it| it.elements::<i64>().first().copied());
                limit.ok_or(EvalProblem::WrongValue("a number", other.kind()))?
            }
        };
        let (goes_on, carried) = (is_true(&go)?, carried.fields().to_vec());
        let rows = self.out_types(node)?.len().saturating_sub(carried.len());
        let rows = vec![Vec::new(); rows];
        let trips = Trips { node, function, limit, made: 0, goes_on, carried, rows };
        self.frame().tasks.push(Task::Trip(Box::new(trips)));
        Ok(())
    }

    /// Takes what the last trip gave, and makes the next one or ends the loop.
    pub(super) fn make_trip(&mut self, mut trips: Box<Trips>) -> Step {
        if let Some(given) = self.trip.take() {
            trips.take(&given)?;
        }
        if trips.goes_on && trips.made < trips.limit {
            let number = Value::Tensor(Tensor::scalar(trips.made));
            let args = std::iter::once(number).chain(trips.carried.iter().cloned()).collect();
            let function = trips.function.clone();
            self.frame().tasks.push(Task::Trip(trips));
            return self.call(function, args, Some(Caller::Trip));
        }
        let types = self.out_types(trips.node)?;
        let mut fields = trips.carried;
        let rows = types.get(fields.len()..).unwrap_or_default().iter().zip(trips.rows);
        for (&ty, rows) in rows {
            fields.push(Value::Tensor(self.stacked(ty, &rows)?));
        }
        let value = Value::Tuple(Tuple::new(fields));
        if let Some(ty) = self.code().body.ty(trips.node) {
            self.compare(ty, &value, || "the result of the loop".to_owned())?;
        }
        self.set(trips.node, value);
        Ok(())
    }

    /// The types of the fields of a loop's result.
    fn out_types(&self, node: Expr) -> Step<Vec<Type>> {
        let terms = self.cx.terms();
        let out = terms.attrs(self.attrs(node)).get("out");
        let fields = match out {
            Some(tenon_ir::TermView::Type(ty)) => match terms.ty(ty) {
                TypeView::Tuple(fields) => Some(fields.to_vec()),
                _ => None,
            },
            _ => None,
        };
        fields.ok_or(EvalProblem::UnknownNode("a loop without the type of its result"))
    }

    /// Rows as one tensor, which is to be of type `ty`.
    fn stacked(&self, ty: Type, rows: &[Tensor]) -> Step<Tensor> {
        let terms = self.cx.terms();
        let unknown = || EvalProblem::UnknownDim(terms.type_text(ty));
        let (dtype, dims) = match terms.ty(ty) {
            TypeView::Tensor { dtype, dims } => (dtype, dims),
            _ => return Err(unknown()),
        };
        let Some(first) = rows.first() else {
            // Where the rank is not said, whoever reads nothing says what shape that has.
            let known = dims.unwrap_or_default().iter().skip(1).map(|&dim| {
                terms.dim_value(dim).and_then(|dim| usize::try_from(dim).ok()).ok_or_else(unknown)
            });
            let shape = std::iter::once(Ok(0)).chain(known).collect::<Step<Vec<usize>>>()?;
            let nothing = Tensor::new(dtype, shape, Bytes::new(Vec::new()));
            return nothing.ok_or_else(unknown);
        };
        if let Some(at) = rows.iter().position(|row| row.shape() != first.shape()) {
            let text = |tensor: &Tensor| terms.type_text(tensor.ty(self.cx));
            return Err(EvalProblem::WrongShape {
                what: format!("the row of trip {at}"),
                found: text(&rows[at]),
                declared: text(first),
                reason: ": all rows have the shape of the first one".to_owned(),
            });
        }
        let bytes: Vec<u8> = rows.iter().flat_map(|row| row.bytes().iter().copied()).collect();
        drop(self.budget.charge(bytes.len() as u64)?);
        let shape = std::iter::once(rows.len()).chain(first.shape().iter().copied()).collect();
        Tensor::new(dtype, shape, Bytes::new(bytes)).ok_or_else(unknown)
    }
}

impl Trips {
    /// Takes what a trip gave.
    fn take(&mut self, given: &Value) -> Step {
        let Value::Tuple(given) = given else {
            return Err(EvalProblem::WrongValue("a tuple", given.kind()));
        };
        let mut fields = given.fields().iter();
        let go = fields.next().ok_or(EvalProblem::WrongValue("a boolean", "nothing"))?;
        self.goes_on = is_true(go)?;
        for carried in &mut self.carried {
            let field = fields.next().ok_or(EvalProblem::WrongValue("a value", "nothing"))?;
            carried.clone_from(field);
        }
        for (rows, field) in self.rows.iter_mut().zip(fields) {
            let row = field.to_tensor();
            rows.push(row.ok_or(EvalProblem::WrongValue("a tensor", field.kind()))?);
        }
        self.made += 1;
        Ok(())
    }
}

fn is_true(value: &Value) -> Step<bool> {
    let byte = value.to_tensor().filter(|tensor| tensor.dtype() == DType::BOOL);
    let byte = byte.and_then(|tensor| tensor.bytes().first().copied());
    byte.map(|byte| byte != 0).ok_or(EvalProblem::WrongValue("a boolean", value.kind()))
}
