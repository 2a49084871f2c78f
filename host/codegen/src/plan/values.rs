//! What nodes stand for: tensors, storages and tuples.

use std::sync::Arc;

use super::memory::{Home, PlannedTensor};
use super::sizes::{Agreement, Size};
use super::{
    Closure, FOLD, PlanProblem, PlannedAction, Planner, Shared, Step, Tensor, Value, left,
    malformed, unsupported,
};
use tenon_ir::op_names::SCALARS;
use tenon_ir::{Args, Context, DType, Dim, Expr, TermView, Type, TypeView, View};
use tenon_runtime::signature::{Extent, TensorSpec};

/// No function has so many arguments or results; a tuple of itself, doubled often, would.
pub(super) const MOST_TENSORS: usize = 1 << 20;

impl Planner<'_> {
    /// What a node stands for that nothing has to be done for. Nothing recurses.
    pub(super) fn resolve(&mut self, root: Expr) -> Step<Value> {
        let mut pending = vec![root];
        while let Some(&expr) = pending.last() {
            if self.values[expr.index()].is_some() {
                pending.pop();
                continue;
            }
            let value = match self.body.view(expr) {
                View::Tuple(fields) => {
                    let waiting = pending.len();
                    let missing = |field: &Expr| self.values[field.index()].is_none();
                    pending.extend(fields.iter().filter(missing));
                    if pending.len() > waiting {
                        continue;
                    }
                    let fields = fields.iter().filter_map(|field| self.values[field.index()]);
                    let fields = fields.collect();
                    self.tuple(fields)
                }
                View::TupleGetItem { tuple, index } => match self.values[tuple.index()] {
                    None => {
                        pending.push(tuple);
                        continue;
                    }
                    Some(Value::Tuple(tuple)) if index < self.tuples[tuple].len() => {
                        self.tuples[tuple][index]
                    }
                    Some(_) => return malformed(format!("there is no field {index}")),
                },
                View::Constant(constant) => self.constant(constant.index)?,
                View::Global { name } => {
                    self.closures.push(Closure { function: name, captured: Vec::new() });
                    Value::Closure(self.closures.len() - 1)
                }
                View::Var { name } => {
                    let name = self.body.terms().str(name);
                    return malformed(format!("`{name}` is used before it is bound"));
                }
                View::Call { .. } => {
                    return left("a call within an expression", "block_form");
                }
                View::If { .. } => return left("a choice within an expression", "block_form"),
                _ => {
                    let what = format!("a {} as a value", self.body.kind(expr).name());
                    return unsupported(&what, FOLD);
                }
            };
            self.values[expr.index()] = Some(value);
            pending.pop();
        }
        self.values[root.index()].map_or_else(|| malformed("a value is missing"), Ok)
    }

    fn constant(&mut self, index: u32) -> Step<Value> {
        let Some(constant) = self.function.constants().get(index as usize) else {
            return malformed("a constant is missing");
        };
        let Shared { constants, constant_numbers, .. } = &mut self.shared;
        let number = *constant_numbers.entry(Arc::as_ptr(constant)).or_insert_with(|| {
            constants.push(Arc::clone(constant));
            constants.len() - 1
        });
        Ok(Value::Tensor(self.tensor(Home::Constant(number), 0, constant.ty)?))
    }

    /// The extents of a shape as a tensor.
    pub(super) fn numbers(&mut self, shape: Expr) -> Step<Value> {
        let Some(TypeView::Shape(Some(dims))) =
            self.body.ty(shape).map(|ty| self.body.terms().ty(ty))
        else {
            return unsupported("a shape of unknown rank", FOLD);
        };
        let numbers = dims.iter().map(|&dim| self.size(dim)).collect::<Step<Vec<Size>>>()?;
        let ty = self.module.cx().static_tensor_type(DType::I64, &[numbers.len() as i64]);
        let tensor = self.fresh_tensor(ty)?;
        self.actions.push(PlannedAction::Write(tensor, numbers));
        Ok(Value::Tensor(tensor))
    }

    /// Checks that extents are what they must be.
    pub(super) fn expect_fit(&mut self, args: Args<'_>, may_be_one: bool) -> Step<Value> {
        let terms = self.body.terms();
        let dims = |index: usize| {
            let ty = args.get(index).and_then(|shape| self.body.ty(shape));
            match ty.map(|ty| terms.ty(ty)) {
                Some(TypeView::Shape(Some(dims))) => Ok(dims.to_vec()),
                _ => unsupported("a shape of unknown rank", FOLD),
            }
        };
        for pair in dims(0)?.into_iter().zip(dims(1)?) {
            let (extent, wanted) = (self.size(pair.0)?, self.size(pair.1)?);
            if extent == wanted {
                continue;
            }
            let (agreement, or_one) = match may_be_one {
                true => (Agreement::EqualOrOne(extent, wanted), " or 1"),
                false => (Agreement::Equal(extent, wanted), ""),
            };
            let [extent, wanted] = [pair.0, pair.1].map(|dim| terms.dim_text(dim));
            self.agree(agreement, Some(format!("`{extent}` must be `{wanted}`{or_one}")));
        }
        Ok(self.tuple(Vec::new()))
    }

    /// Whether a value is a shape whose extents its type says, so that nothing has to be done for it.
    pub(super) fn is_known_shape(&self, expr: Expr) -> bool {
        let ty = self.body.ty(expr).map(|ty| self.body.terms().ty(ty));
        let is_pure = match self.body.view(expr) {
            View::Call { callee, .. } => match self.body.view(callee) {
                View::Op { name } => {
                    let (cx, name) = (self.module.cx(), self.body.terms().str(name));
                    cx.operators().find(name).is_some_and(|op| op.effect.is_pure())
                }
                _ => false,
            },
            _ => true,
        };
        is_pure && matches!(ty, Some(TypeView::Shape(Some(_))))
    }

    pub(super) fn tuple(&mut self, fields: Vec<Value>) -> Value {
        self.tuples.push(fields);
        Value::Tuple(self.tuples.len() - 1)
    }

    /// The tensors of a value, in order.
    pub(super) fn flatten(&self, value: Value) -> Step<Vec<usize>> {
        let mut tensors = Vec::new();
        let mut pending = vec![value];
        while let Some(value) = pending.pop() {
            match value {
                Value::Tensor(tensor) => tensors.push(tensor),
                Value::Tuple(tuple) => pending.extend(self.tuples[tuple].iter().rev()),
                Value::Storage(_) => return malformed("a storage is used as a tensor"),
                Value::Closure(_) => {
                    return unsupported("a function as a value", "a function can only be called");
                }
            }
            if tensors.len() + pending.len() > MOST_TENSORS {
                return malformed("a tuple has more than a million tensors");
            }
        }
        Ok(tensors)
    }

    /// The memory of a tensor as one of another type.
    pub(super) fn view(&mut self, args: Args<'_>, ty: Type) -> Step<Value> {
        let Some(arg) = args.get(0) else { return malformed("a view of nothing") };
        let Value::Tensor(tensor) = self.resolve(arg)? else {
            return malformed("a view of something that is no tensor");
        };
        let memory = self.tensors[tensor].memory;
        let is_unsized = self.is_unsized(self.tensors[tensor].ty);
        let view = match self.lies_in_room(memory) {
            true => self.tensor_in_room(memory, ty)?,
            false if is_unsized => self.tensor(memory.home, memory.offset, ty)?,
            false => self.sized_view(memory, ty)?,
        };
        if is_unsized {
            // Who made it has said how large it is.
            return Ok(Value::Tensor(view));
        }
        match (self.tensors[view].memory.bytes, memory.bytes) {
            (view, found) if view == found => {}
            (Size::Known(_), Size::Known(found)) => {
                let ty = self.body.terms().type_text(ty);
                return malformed(format!("{found} bytes are viewed as {ty}"));
            }
            (view, found) => {
                let terms = self.body.terms();
                let [from, to] = [self.tensors[tensor].ty, ty].map(|ty| terms.type_text(ty));
                let what = format!("`{to}` must have the elements of `{from}`");
                self.agree(Agreement::Equal(view, found), Some(what));
            }
        }
        Ok(Value::Tensor(view))
    }

    fn sized_view(&mut self, of: PlannedTensor, ty: Type) -> Step<usize> {
        let (bytes, unit) = (self.bytes(ty)?, self.unit(ty));
        if !self.sizes.is_found(bytes) {
            return self.tensor(of.home, of.offset, ty);
        }
        let memory = self.memory.view(of, bytes, unit);
        self.tensors.push(Tensor { memory, ty });
        Ok(self.tensors.len() - 1)
    }

    /// A part of the memory of a tensor, so many bytes behind its begin.
    pub(super) fn part(&mut self, args: Args<'_>, offset: i64, ty: Type) -> Step<Value> {
        let Some(Value::Tensor(whole)) = args.get(0).map(|arg| self.resolve(arg)).transpose()?
        else {
            return malformed("a part of something that is no tensor");
        };
        let memory = self.tensors[whole].memory;
        let bytes = self.bytes(ty)?;
        let (Ok(offset), Size::Known(all), Size::Known(bytes)) =
            (u64::try_from(offset), memory.bytes, bytes)
        else {
            return malformed("a part of memory whose size is not known");
        };
        if self.lies_in_room(memory) || offset.saturating_add(bytes as u64) > all as u64 {
            return malformed("a part of memory reaches beyond it");
        }
        Ok(Value::Tensor(self.tensor(memory.home, memory.offset + offset, ty)?))
    }

    /// Memory of so many bytes: a part of the workspace, or what is taken here, where nobody knows before how many they are.
    pub(super) fn storage(&mut self, bytes: Size, align: u64) -> Home {
        let size = self.sizes.most(bytes);
        match self.sizes.is_open(size) {
            true => self.storage_to_take(size, align),
            false => self.memory.storage(size, align),
        }
    }

    /// Memory that is taken here.
    pub(super) fn storage_to_take(&mut self, size: Size, align: u64) -> Home {
        let home = self.memory.storage_to_take(size, align);
        if let Home::Storage(storage) = home {
            self.actions.push(PlannedAction::Take(storage));
        }
        home
    }

    /// Whether a type says nothing of a tensor's size.
    pub(super) fn is_unsized(&self, ty: Type) -> bool {
        matches!(self.body.terms().ty(ty), TypeView::Tensor { dims: None, .. })
    }

    pub(super) fn fresh_tensor(&mut self, ty: Type) -> Step<usize> {
        if self.is_unsized(ty) {
            let home = self.memory.unsized_storage();
            return self.tensor(home, 0, ty);
        }
        let bytes = self.bytes(ty)?;
        let home = self.storage(bytes, 1);
        self.tensor(home, 0, ty)
    }

    pub(super) fn tensor(&mut self, home: Home, offset: u64, ty: Type) -> Step<usize> {
        let bytes = match self.is_unsized(ty) {
            true => Size::Known(0),
            false => self.bytes(ty)?,
        };
        let unit = self.unit(ty);
        let (memory, agreement) = self.memory.tensor(&mut self.sizes, home, offset, bytes, unit)?;
        agreement.into_iter().for_each(|agreement| self.agree(agreement, None));
        self.tensors.push(Tensor { memory, ty });
        Ok(self.tensors.len() - 1)
    }

    /// Bytes of an element.
    fn unit(&self, ty: Type) -> u64 {
        let dtype = match self.body.terms().ty(ty) {
            TypeView::Tensor { dtype, .. } => Some(dtype),
            _ => None,
        };
        dtype.map_or(1, |dtype| u64::from(dtype.bits().div_ceil(8)))
    }

    /// That `dim`, of which a number is needed, is not known from the shapes of the inputs.
    fn not_of_inputs(&self, dim: Dim) -> PlanProblem {
        let what = format!("the size {}", self.body.terms().dim_text(dim));
        PlanProblem::Unsupported { what, help: "it does not follow from the shapes of the inputs" }
    }

    /// The size of a tensor of type `ty`.
    pub(super) fn bytes(&mut self, ty: Type) -> Step<Size> {
        let terms = self.body.terms();
        let Some((dtype, dims)) = terms.tensor(ty) else {
            let (what, ty) = ("a value".to_owned(), terms.type_text(ty));
            return Err(PlanProblem::NotATensor { what, ty });
        };
        let mut count = 1u128;
        for &dim in dims {
            let Some(extent) = terms.dim_value(dim) else {
                return self.computed_bytes(dtype, dims);
            };
            let Ok(extent) = u64::try_from(extent) else {
                return malformed(format!("a tensor has the extent {extent}"));
            };
            count = count.saturating_mul(u128::from(extent));
        }
        let small = u64::try_from(count).ok().filter(|&count| count < 1 << 47);
        let bytes = small.and_then(|count| dtype.bytes(count));
        bytes.map(|bytes| Size::Known(bytes as i64)).ok_or(PlanProblem::TooLarge(count))
    }

    /// The size of a tensor with symbolic dimensions.
    fn computed_bytes(&mut self, dtype: DType, dims: &[Dim]) -> Step<Size> {
        let cx = self.module.cx();
        let bits = i64::from(dtype.bits());
        let product = |unit: i64| {
            let factors: Vec<Dim> = dims.iter().copied().chain([cx.dim(unit)]).collect();
            cx.dim_product(&factors)
        };
        self.size(match bits % 8 {
            0 => product(bits / 8),
            // Elements below a byte share it.
            _ => cx.dim_floor_div(cx.dim_add(product(bits), cx.dim(7)), cx.dim(8)),
        })
    }

    /// The number that a dimension of the function is.
    pub(super) fn size(&mut self, dim: Dim) -> Step<Size> {
        match self.sizes.dim(self.body.terms(), dim, &self.symbols) {
            Some(size) => Ok(size),
            None => Err(self.not_of_inputs(dim)),
        }
    }

    pub(super) fn type_of(&self, expr: Expr, what: &str) -> Step<Type> {
        match self.body.ty(expr) {
            Some(ty) if self.body.terms().tensor(ty).is_some() => Ok(ty),
            ty => {
                let ty = ty.map_or("unknown".to_owned(), |ty| self.body.terms().type_text(ty));
                Err(PlanProblem::NotATensor { what: what.to_owned(), ty })
            }
        }
    }

    /// What is told of an input or output.
    pub(super) fn spec(&self, name: String, ty: Type) -> Step<TensorSpec> {
        let terms = self.body.terms();
        let Some((dtype, dims)) = terms.tensor(ty) else {
            let (what, ty) = ("a value".to_owned(), terms.type_text(ty));
            return Err(PlanProblem::NotATensor { what, ty });
        };
        let extent = |&dim: &Dim| match terms.dim_value(dim) {
            Some(extent) => Extent::Known(extent),
            None => Extent::Symbolic(terms.dim_text(dim)),
        };
        Ok(TensorSpec { name, dtype, shape: dims.iter().map(extent).collect() })
    }

    /// What is told of an input whose elements are the extents of a shape: a tensor of as many numbers, or of one without
    /// dimensions, where the function's attribute says so.
    pub(super) fn spec_of_sizes(&self, name: String, dims: &[Dim]) -> TensorSpec {
        let terms = self.body.terms();
        let attrs = terms.attrs(self.body.attrs(self.body.root()));
        let is_scalar = match attrs.get(SCALARS) {
            Some(TermView::List(names)) => {
                names.iter().any(|&it| terms.view(it) == TermView::Str(name.as_str()))
            }
            _ => false,
        };
        let shape = if is_scalar { Vec::new() } else { vec![Extent::Known(dims.len() as i64)] };
        TensorSpec { name, dtype: DType::I64, shape }
    }

    pub(super) fn name_of(&self, var: Expr) -> String {
        match self.body.view(var) {
            View::Var { name } | View::Buffer { name, .. } => {
                self.body.terms().str(name).to_owned()
            }
            _ => String::new(),
        }
    }

    pub(super) fn describe(&self, var: Expr) -> String {
        match self.name_of(var) {
            name if name.is_empty() => format!("a binding without a name (node {})", var.0),
            name => format!("binding `{name}`"),
        }
    }
}
