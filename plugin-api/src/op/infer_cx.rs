//! What type inference of an operator sees.

use std::fmt;

use crate::ir::{Context, DType, Dim, Fit, Symbol, Term, TermKind, Terms, Type, TypeView};

use super::{Layout, OpAttrs, OpError, OpSchema};

/// A call whose type is asked for. It is a [`Context`]: types and dimensions are made with it.
#[derive(Clone, Copy)]
pub struct InferCx<'a> {
    /// Where terms are made.
    pub cx: &'a dyn Context,
    /// The operator.
    pub op: &'static OpSchema,
    /// The types of the arguments. `Type(0)` stands for an argument without a type.
    pub args: &'a [Type],
    /// The attributes.
    pub attrs: OpAttrs<'a>,
}

/// A tensor type, taken apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TensorTy<'a> {
    /// The type of each element.
    pub dtype: DType,
    /// The dimensions; `None` when the rank is unknown.
    pub dims: Option<&'a [Dim]>,
}

impl fmt::Debug for InferCx<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InferCx({} of {:?})", self.op.name, self.args)
    }
}

impl Context for InferCx<'_> {
    fn terms(&self) -> Terms<'_> {
        self.cx.terms()
    }

    fn intern(&self, kind: TermKind, flags: u16, bits: u64, children: &[Term]) -> Term {
        self.cx.intern(kind, flags, bits, children)
    }

    fn symbol(&self, text: &str) -> Symbol {
        self.cx.symbol(text)
    }

    fn take_to_fit(&self, fit: Fit) {
        self.cx.take_to_fit(fit);
    }
}

impl<'a> InferCx<'a> {
    /// The terms.
    pub fn terms(&self) -> Terms<'a> {
        self.cx.terms()
    }

    /// The type of argument `index`.
    pub fn arg(&self, index: usize) -> Result<Type, OpError> {
        match self.args.get(index) {
            Some(&ty) if ty.0 != 0 => Ok(ty),
            _ => Err(self.wrong_arg(index, "a value of known type")),
        }
    }

    /// Argument `index`, a tensor.
    pub fn tensor(&self, index: usize) -> Result<TensorTy<'a>, OpError> {
        match self.terms().ty(self.arg(index)?) {
            TypeView::Tensor { dtype, dims } => Ok(TensorTy { dtype, dims }),
            _ => Err(self.wrong_arg(index, "a tensor")),
        }
    }

    /// Argument `index`, a tensor of rank `rank` or of unknown rank.
    pub fn tensor_of_rank(&self, index: usize, rank: usize) -> Result<TensorTy<'a>, OpError> {
        let tensor = self.tensor(index)?;
        match tensor.dims {
            Some(dims) if dims.len() != rank => {
                Err(self.wrong_arg(index, &format!("a tensor of {rank} dimensions")))
            }
            _ => Ok(tensor),
        }
    }

    /// Argument `index`, a shape: its dimensions, or `None` when its rank is unknown.
    pub fn shape(&self, index: usize) -> Result<Option<&'a [Dim]>, OpError> {
        match self.terms().ty(self.arg(index)?) {
            TypeView::Shape(dims) => Ok(dims),
            _ => Err(self.wrong_arg(index, "a shape")),
        }
    }

    /// Argument `index`, a tuple: the types of its fields.
    pub fn tuple(&self, index: usize) -> Result<&'a [Type], OpError> {
        match self.terms().ty(self.arg(index)?) {
            TypeView::Tuple(fields) => Ok(fields),
            _ => Err(self.wrong_arg(index, "a tuple")),
        }
    }

    /// A tensor type; of unknown rank without dimensions.
    pub fn tensor_type(&self, dtype: DType, dims: Option<&[Dim]>) -> Type {
        match dims {
            Some(dims) => self.cx.tensor_type(dtype, dims),
            None => self.cx.unranked_tensor_type(dtype),
        }
    }

    /// That argument `index` is not what is expected.
    pub fn wrong_arg(&self, index: usize, expected: &str) -> OpError {
        let found = match self.args.get(index) {
            Some(&ty) if ty.0 != 0 => self.terms().type_text(ty),
            Some(_) => "of unknown type".into(),
            None => "missing".into(),
        };
        OpError::WrongArg { index, expected: expected.into(), found }
    }

    /// That two shapes do not agree.
    pub fn mismatch(&self, what: &str, left: &[Dim], right: &[Dim]) -> OpError {
        let text = |dims: &[Dim]| {
            let dims: Vec<String> = dims.iter().map(|&dim| self.terms().dim_text(dim)).collect();
            format!("[{}]", dims.join(", "))
        };
        OpError::ShapeMismatch { what: what.into(), left: text(left), right: text(right) }
    }

    /// That this cannot be done.
    pub fn unsupported<T>(&self, reason: impl Into<String>) -> Result<T, OpError> {
        Err(OpError::Unsupported(reason.into()))
    }

    /// That attribute `name` has a value it cannot have.
    pub fn bad_attr<T>(
        &self,
        name: &'static str,
        value: impl std::fmt::Debug,
        reason: impl Into<String>,
    ) -> Result<T, OpError> {
        Err(OpError::BadAttr { name, value: format!("{value:?}"), reason: reason.into() })
    }

    /// Whether two dimensions that must be equal are different whatever the symbols stand for. Where that depends on the
    /// symbols, the operator is taken to be called where they are equal, and each call is checked.
    pub fn is_different(&self, a: Dim, b: Dim) -> bool {
        if a == b {
            return false;
        }
        let difference = self.terms().dim_value(self.cx.dim_sub(a, b));
        if difference.is_none() {
            self.cx.take_to_fit(Fit { extent: a, wanted: b, may_be_one: false });
        }
        difference.is_some_and(|value| value != 0)
    }

    /// Whether a tensor of extent `extent` cannot be repeated to `wanted` along an axis, whatever the symbols stand for: it is
    /// neither 1 nor equal. Where that depends on the symbols, it is taken to fit, and each call is checked.
    pub fn is_no_repeat(&self, extent: Dim, wanted: Dim) -> bool {
        match (self.value(extent), self.value(wanted)) {
            _ if extent == wanted => false,
            (Some(1), _) => false,
            (Some(_), Some(_)) => true,
            _ => {
                self.cx.take_to_fit(Fit { extent, wanted, may_be_one: true });
                false
            }
        }
    }

    /// Checks that argument `index` has the element type of argument 0.
    pub fn check_same_dtype(&self, index: usize) -> Result<(), OpError> {
        let expected = self.tensor(0)?.dtype;
        let found = self.tensor(index)?.dtype;
        match expected == found {
            true => Ok(()),
            false => Err(OpError::WrongDType { index, expected: expected.to_string(), found }),
        }
    }

    /// Checks that argument `index` has floating point elements.
    pub fn check_float(&self, index: usize) -> Result<(), OpError> {
        let found = self.tensor(index)?.dtype;
        match found.is_float() {
            true => Ok(()),
            false => Err(OpError::WrongDType { index, expected: "a float type".into(), found }),
        }
    }

    /// The element type of a product of which `given` is asked for: that of the data where it is empty, else that of
    /// the data or f32 where this is narrower. `name` is the attribute that asks.
    pub fn product_dtype(&self, name: &'static str, given: &str) -> Result<DType, OpError> {
        let data = self.tensor(0)?.dtype;
        if data.is_bool() {
            let expected = "a number".into();
            return Err(OpError::WrongDType { index: 0, expected, found: data });
        }
        if given.is_empty() {
            return Ok(data);
        }
        let dtype = self.attrs.dtype(name)?;
        let is_wider = dtype == DType::F32 && matches!(data, DType::F16 | DType::BF16);
        match dtype == data || is_wider {
            true => Ok(dtype),
            false => {
                let reason = "it is the element type of the data, or f32 for f16 and bf16";
                self.bad_attr(name, dtype.to_string(), reason)
            }
        }
    }

    /// Axes, counted from the end when negative; none may be named twice.
    pub fn axes(
        &self,
        name: &'static str,
        axes: &[i64],
        rank: usize,
    ) -> Result<Vec<usize>, OpError> {
        let found: Vec<usize> =
            axes.iter().map(|&axis| self.axis(name, axis, rank)).collect::<Result<_, _>>()?;
        let mut sorted = found.clone();
        sorted.sort_unstable();
        match sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            true => self.bad_attr(name, axes, "an axis is named twice"),
            false => Ok(found),
        }
    }

    /// A layout with the axes of `axes` in any order.
    pub fn layout(&self, name: &'static str, axes: &str) -> Result<Layout, OpError> {
        let text = self.attrs.str(name)?;
        match Layout::parse(text) {
            Ok(layout) if layout.has_axes(axes) => Ok(layout),
            Ok(_) => self.bad_attr(name, text, format!("it must have the axes of {axes}")),
            Err(error) => self.bad_attr(name, text, error.to_string()),
        }
    }

    /// The whole extents of the axes of argument `index`, a tensor of layout `layout`, in the order of
    /// the letters `axes`; `None` when its rank is unknown.
    pub fn extents<const N: usize>(
        &self,
        index: usize,
        layout: &Layout,
        axes: &[u8; N],
    ) -> Result<Option<[Dim; N]>, OpError> {
        let Some(dims) = self.tensor(index)?.dims else { return Ok(None) };
        let extents = layout
            .extents(self.cx, dims)
            .map_err(|error| self.wrong_arg(index, &error.to_string()))?;
        Ok(Some(axes.map(|axis| {
            extents[layout.position(axis).expect("the layout was checked to have the axes")]
        })))
    }

    /// A number that a dimension is not below, if one is known: symbols are not negative.
    pub fn lower_bound(&self, dim: Dim) -> Option<i64> {
        self.terms().dim_lower_bound(dim)
    }

    /// The value of a dimension that is a plain integer.
    pub fn value(&self, dim: Dim) -> Option<i64> {
        self.terms().dim_value(dim)
    }

    /// An axis, counted from the end when negative.
    pub fn axis(&self, name: &'static str, axis: i64, rank: usize) -> Result<usize, OpError> {
        let rank = rank as i64;
        match axis {
            axis if (0..rank).contains(&axis) => Ok(axis as usize),
            axis if (-rank..0).contains(&axis) => Ok((axis + rank) as usize),
            _ if rank == 0 => self.bad_attr(name, axis, "there are no dimensions"),
            _ => {
                let reason = format!("there are {rank} dimensions, {} to {}", -rank, rank - 1);
                self.bad_attr(name, axis, reason)
            }
        }
    }
}
