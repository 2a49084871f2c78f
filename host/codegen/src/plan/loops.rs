//! Loops: a function is called for each trip.
//!
//! ```ir
//! %r: (f32[n], f32[m, n]) = loop(%f, dim(m), %go, (%x)) { out = (f32[n], f32[m, n]) }
//! ```
//!
//! What is carried has two places, which trips write to in turn, so that a trip never writes over what it reads; the first
//! trip reads what the loop was given, where it is. A row is written where it belongs in the result. So memory for rows is
//! made before the first trip: the number of trips must follow from the inputs, and a loop that ends before is an error of the
//! call.
//!
//! A result whose type says nothing of its size is memory that is taken: what is carried by each trip, rows twice as much
//! whenever there are too many.

use super::functions::Given;
use super::sizes::{Agreement, Bindings, Size};
use super::{
    Arg, Carried, Closure, Limit, Loop, LoopArgument, PlannedAction, Planner, Rows, Step, Value,
    malformed, unsupported,
};
use tenon_ir::{Args, BinaryOp, Context, DType, Dim, Expr, Function, Type, TypeView, View};

/// A loop before addresses are known; tensors by their numbers.
pub(super) struct PlannedLoop {
    limit: PlannedLimit,
    go: usize,
    again: usize,
    trip: usize,
    carried: Vec<PlannedCarried>,
    rows: Vec<PlannedRows>,
    routine: usize,
    args: Vec<PlannedArgument>,
    symbols: Vec<Size>,
}

#[derive(Clone, Copy)]
enum PlannedLimit {
    Number(Size),
    At(usize),
}

#[derive(Clone, Copy)]
struct PlannedCarried {
    from: usize,
    here: usize,
    there: usize,
    ty: Type,
    /// That of what trips give.
    ty_here: Type,
}

#[derive(Clone, Copy)]
struct PlannedRows {
    to: usize,
    /// Bytes of one.
    bytes: Size,
    /// What is taken for more of them.
    more: Option<usize>,
}

#[derive(Clone, Copy)]
enum PlannedArgument {
    Tensor(usize),
    Current(usize),
    Next(usize),
    Row(usize),
}

impl<'a> Planner<'a> {
    /// Notes a loop, whose result is of type `out`.
    pub(super) fn repeat(&mut self, args: Args<'a>, out: Type) -> Step<Value> {
        let (Some(body), Some(limit), Some(go), Some(carried)) =
            (args.get(0), args.get(1), args.get(2), args.get(3))
        else {
            return malformed("a loop without its arguments");
        };
        let Value::Closure(closure) = self.resolve(body)? else {
            let help = "which function it is must be known where the loop stands";
            return unsupported("a loop over a function that is chosen at run time", help);
        };
        let Closure { function: name, captured } = self.closures[closure].clone();
        let (routine, function) = self.routine(name)?;
        let limit = self.limit(limit)?;
        let go = self.condition(go)?;
        let TypeView::Tuple(fields) = self.body.terms().ty(out) else {
            return malformed("the result of a loop is no tuple");
        };
        let carried = self.carried(carried, fields)?;
        let cx = self.module.cx();
        let number = cx.static_tensor_type(DType::I64, &[]);
        let (trip, again) = (
            self.fresh_tensor(number)?,
            self.fresh_tensor(cx.static_tensor_type(DType::BOOL, &[]))?,
        );
        let mut given = vec![(Value::Tensor(trip), number)];
        given.extend(carried.iter().map(|it| (Value::Tensor(it.here), it.ty_here)));
        given.extend(captured);
        let Given { args: given, symbols } = self.give(name, &function, &given)?;
        let mut args = Vec::with_capacity(given.len());
        for (at, arg) in given.into_iter().enumerate() {
            let Arg::Tensor(tensor) = arg else { return malformed("a loop is given a scalar") };
            args.push(match at.checked_sub(1).filter(|&at| at < carried.len()) {
                Some(at) => PlannedArgument::Current(at),
                None => PlannedArgument::Tensor(tensor),
            });
        }
        let bindings: Bindings = symbols.iter().copied().collect();
        let results = self.results_of(&function)?;
        let Some((_, results)) = results.split_first() else {
            return malformed("a loop over a function without results");
        };
        let Some((results, row_types)) = results.split_at_checked(carried.len()) else {
            return malformed("a loop over a function of other results");
        };
        for (&result, it) in results.iter().zip(&carried) {
            if self.is_unsized(result) != self.is_unsized(it.ty_here) {
                return malformed("a loop over a function of results of other sizes");
            }
            if self.is_unsized(result) {
                continue;
            }
            self.agree_on(result, &bindings, self.dims_of(it.ty))?;
        }
        let rows = self.rows(out, carried.len(), row_types, &bindings, limit)?;
        args.push(PlannedArgument::Tensor(again));
        args.extend((0..carried.len()).map(PlannedArgument::Next));
        args.extend((0..rows.len()).map(PlannedArgument::Row));
        let values = carried.iter().map(|it| it.here).chain(rows.iter().map(|row| row.to));
        let values: Vec<usize> = values.collect();
        let taken = values.iter().filter(|&&it| self.is_unsized(self.tensors[it].ty));
        let kept: Vec<PlannedAction> = taken.map(|&it| PlannedAction::Keep(it)).collect();
        let values = values.into_iter().map(Value::Tensor).collect();
        let symbols = symbols.into_iter().map(|(_, size)| size).collect();
        self.actions.push(PlannedAction::Loop(Box::new(PlannedLoop {
            limit,
            go,
            again,
            trip,
            carried,
            rows,
            routine,
            args,
            symbols,
        })));
        self.actions.extend(kept);
        Ok(self.tuple(values))
    }

    fn limit(&mut self, limit: Expr) -> Step<PlannedLimit> {
        if let View::Prim { dim } = self.body.view(limit) {
            return Ok(PlannedLimit::Number(self.size(dim)?));
        }
        match self.resolve(limit)? {
            Value::Tensor(tensor) => Ok(PlannedLimit::At(tensor)),
            _ => malformed("the limit of a loop is no number"),
        }
    }

    /// What is carried, with memory for two of each.
    fn carried(&mut self, tuple: Expr, fields: &[Type]) -> Step<Vec<PlannedCarried>> {
        let value = self.resolve(tuple)?;
        let from = self.flatten(value)?;
        let mut carried = Vec::with_capacity(from.len());
        for (at, from) in from.into_iter().enumerate() {
            let ty = self.tensors[from].ty;
            let is_taken = fields.get(at).is_some_and(|&field| self.is_unsized(field));
            let ty_here = if is_taken { fields[at] } else { ty };
            if self.is_unsized(ty) {
                let what = "a tensor of unknown rank that a loop carries";
                return unsupported(what, "bring it to a shape that has its extents before");
            }
            let (here, there) = (self.fresh_tensor(ty_here)?, self.fresh_tensor(ty_here)?);
            carried.push(PlannedCarried { from, here, there, ty, ty_here });
        }
        Ok(carried)
    }

    /// The types of the tensors that a function gives, in its own symbols.
    fn results_of(&self, function: &Function) -> Step<Vec<Type>> {
        let terms = self.body.terms();
        let body = function.view();
        let result = match body.view(body.root()) {
            View::Function { body: value, result, .. } => result.or(body.ty(value)),
            _ => None,
        };
        match result.map(|ty| terms.ty(ty)) {
            Some(TypeView::Tuple(fields)) => Ok(fields.to_vec()),
            _ => malformed("a loop over a function that gives no tuple"),
        }
    }

    fn dims_of(&self, ty: Type) -> Vec<Dim> {
        self.body.terms().tensor(ty).map_or(Vec::new(), |(_, dims)| dims.to_vec())
    }

    /// Notes that a result of a callee has these dimensions.
    fn agree_on(&mut self, result: Type, symbols: &Bindings, dims: Vec<Dim>) -> Step<()> {
        let of_result = self.dims_of(result);
        if of_result.len() != dims.len() {
            return malformed("a loop carries a value whose rank changes");
        }
        for (of_result, dim) in of_result.into_iter().zip(dims) {
            let found = self.sizes.dim(self.body.terms(), of_result, symbols);
            let expected = self.size(dim)?;
            match found {
                Some(found) if found == expected => {}
                Some(found) => {
                    let terms = self.body.terms();
                    let [of_result, dim] = [of_result, dim].map(|dim| terms.dim_text(dim));
                    let what = format!("`{of_result}` of a trip must be `{dim}`");
                    self.agree(Agreement::Equal(expected, found), Some(what));
                }
                None => {
                    let what = format!(
                        "a loop whose result {} does not follow from its arguments",
                        self.body.terms().type_text(result)
                    );
                    return unsupported(&what, "its shape must be the same in each trip");
                }
            }
        }
        Ok(())
    }

    /// Memory for the rows of all trips.
    fn rows(
        &mut self,
        out: Type,
        first: usize,
        types: &[Type],
        symbols: &Bindings,
        limit: PlannedLimit,
    ) -> Step<Vec<PlannedRows>> {
        let TypeView::Tuple(fields) = self.body.terms().ty(out) else {
            return malformed("the result of a loop is no tuple");
        };
        if fields.len() != first + types.len() {
            return malformed("a loop over a function of other results");
        }
        let mut rows = Vec::with_capacity(types.len());
        for (&ty, &row) in fields[first..].iter().zip(types) {
            if self.is_unsized(ty) {
                let bytes = self.bytes_of_row(row, symbols)?;
                let (to, more) = (self.fresh_tensor(ty)?, self.fresh_tensor(ty)?);
                rows.push(PlannedRows { to, bytes, more: Some(more) });
                continue;
            }
            let PlannedLimit::Number(limit) = limit else {
                let help = "the number of trips must follow from the shapes of the inputs";
                return unsupported("a loop that gives a row for each trip", help);
            };
            let Some((dtype, dims)) = self.body.terms().tensor(ty) else {
                return malformed("the rows of a loop are no tensor");
            };
            let (&[trips, ref rest @ ..], true) = (dims, dtype.bits() % 8 == 0) else {
                return unsupported("a loop over rows of bits", "make bytes of them");
            };
            let count = self.size(trips)?;
            if count != limit {
                let what = format!("`{}` trips", self.body.terms().dim_text(trips));
                self.agree(Agreement::Equal(count, limit), Some(what));
            }
            self.agree_on(row, symbols, rest.to_vec())?;
            let bytes = self.bytes(self.module.cx().tensor_type(dtype, rest))?;
            rows.push(PlannedRows { to: self.fresh_tensor(ty)?, bytes, more: None });
        }
        Ok(rows)
    }

    /// Bytes of a row that a function gives.
    fn bytes_of_row(&mut self, row: Type, symbols: &Bindings) -> Step<Size> {
        let terms = self.body.terms();
        let help = "the shape of a row must follow from what the loop is given";
        let Some((dtype, dims)) = terms.tensor(row).filter(|(dtype, _)| dtype.bits() % 8 == 0)
        else {
            return unsupported("a loop over rows of unknown rank, or of bits", help);
        };
        let mut bytes = Size::Known(i64::from(dtype.bits() / 8));
        for &dim in dims {
            let Some(extent) = self.sizes.dim(terms, dim, symbols) else {
                let what = format!("a loop over rows of type {}", terms.type_text(row));
                return unsupported(&what, help);
            };
            bytes = self.sizes.binary(BinaryOp::Mul, bytes, extent);
        }
        Ok(bytes)
    }

    pub(super) fn address_loop(&mut self, planned: PlannedLoop) -> Loop {
        let limit = match planned.limit {
            PlannedLimit::Number(number) => Limit::Number(number),
            PlannedLimit::At(tensor) => Limit::At(self.place(tensor)),
        };
        let [go, again, trip] =
            [planned.go, planned.again, planned.trip].map(|tensor| self.place(tensor));
        let carried = planned.carried.iter().map(|it| Carried {
            from: self.place(it.from),
            here: self.place(it.here),
            there: self.place(it.there),
            bytes: self.tensors[it.from].memory.bytes,
            is_taken: it.ty != it.ty_here,
        });
        let carried = carried.collect();
        let rows = planned.rows.iter().map(|it| Rows {
            to: self.place(it.to),
            bytes: it.bytes,
            more: it.more.map(|more| self.place(more)),
        });
        let rows = rows.collect();
        let args = planned.args.iter().map(|&arg| match arg {
            PlannedArgument::Tensor(tensor) => LoopArgument::Memory(self.place(tensor)),
            PlannedArgument::Current(at) => LoopArgument::Current(at),
            PlannedArgument::Next(at) => LoopArgument::Next(at),
            PlannedArgument::Row(at) => LoopArgument::Row(at),
        });
        let args = args.collect();
        let (routine, symbols) = (planned.routine, planned.symbols);
        Loop { limit, go, again, trip, carried, rows, routine, args, symbols, lent: None }
    }
}
