//! What a rule knows of values, and how it makes them.

use crate::ir::{AttrValue, Context, DType, Dim, Type, TypeView};
use crate::op::Tensor;

use super::{Known, Node, Problem, Scalar, Value, invalid, unsupported};

impl Node<'_> {
    /// The type of a value.
    pub fn ty(&self, value: Value) -> Type {
        self.services.value_type(value)
    }

    /// The type of a tensor's elements.
    ///
    /// # Errors
    /// When it is no tensor.
    pub fn dtype(&self, value: Value) -> Result<DType, Problem> {
        match self.terms().ty(self.ty(value)) {
            TypeView::Tensor { dtype, .. } => Ok(dtype),
            _ => invalid("a tensor is expected"),
        }
    }

    /// The dimensions of a tensor.
    ///
    /// # Errors
    /// When it is no tensor, or of unknown rank.
    pub fn dims(&self, value: Value) -> Result<Vec<Dim>, Problem> {
        match self.terms().ty(self.ty(value)) {
            TypeView::Tensor { dims: Some(dims), .. } => Ok(dims.to_vec()),
            TypeView::Tensor { .. } => unsupported("a tensor of unknown rank"),
            _ => invalid("a tensor is expected"),
        }
    }

    /// The elements of a value, where they are known as dimensions.
    pub fn elements(&self, value: Value) -> Option<Known> {
        let elements = self.services.elements(value)?;
        let (dtype, shape) = self.terms().static_tensor(self.ty(value))?;
        let shape = shape.into_iter().map(|extent| extent as usize).collect();
        Some(Known { dtype, shape, elements })
    }

    /// Whether a value is a constant.
    pub fn is_constant(&self, value: Value) -> bool {
        self.services.is_constant(value)
    }

    /// The tensor that a value is, if it is a constant. Its bytes are the model's; they are not copied.
    pub fn as_constant(&self, value: Value) -> Option<Tensor> {
        self.services.tensor(value)
    }

    /// The number that a value is, when it is a constant of one element.
    pub fn number(&self, value: Value) -> Option<Scalar> {
        let (dtype, shape) = self.terms().static_tensor(self.ty(value))?;
        if shape.iter().any(|&dim| dim != 1) {
            return None;
        }
        Scalar::of_bytes(dtype, self.as_constant(value)?.bytes())
    }

    /// A call of operator `op`, whose type is inferred at once.
    ///
    /// # Errors
    /// When the operator does not take these arguments and attributes, or the result is beyond what a model has a use for.
    pub fn call(
        &mut self,
        op: &str,
        args: &[Value],
        attrs: &[(&str, AttrValue)],
    ) -> Result<Value, Problem> {
        let attrs = self.cx().attrs(attrs);
        self.services.call(op, args, attrs)
    }

    /// A call without attributes.
    ///
    /// # Errors
    /// As for [`Node::call`].
    pub fn apply(&mut self, op: &str, args: &[Value]) -> Result<Value, Problem> {
        self.call(op, args, &[])
    }

    /// The outputs of a node that is operator `op` under another name: a call with all of its inputs.
    ///
    /// # Errors
    /// When an input is left out, and as for [`Node::call`].
    pub fn same(&mut self, op: &str) -> Result<Vec<Value>, Problem> {
        let inputs = self.all_inputs()?;
        Ok(vec![self.apply(op, &inputs)?])
    }

    /// A constant of bytes that are computed here.
    ///
    /// # Errors
    /// When they are not as many as type and shape say.
    pub fn constant(
        &mut self,
        dtype: DType,
        shape: &[i64],
        bytes: &[u8],
    ) -> Result<Value, Problem> {
        let ty = self.cx().static_tensor_type(dtype, shape);
        self.services.constant(ty, bytes)
    }

    /// A constant without dimensions.
    ///
    /// # Errors
    /// When there are no numbers of this type.
    pub fn scalar(&mut self, dtype: DType, value: f64) -> Result<Value, Problem> {
        match Scalar::bytes_of(dtype, value) {
            Some(bytes) => self.constant(dtype, &[], &bytes),
            None => unsupported(format!("the element type {dtype}")),
        }
    }

    /// A constant without dimensions that has the element type of `like`.
    ///
    /// # Errors
    /// As for [`Node::scalar`].
    pub fn scalar_like(&mut self, like: Value, value: f64) -> Result<Value, Problem> {
        let dtype = self.dtype(like)?;
        self.scalar(dtype, value)
    }

    /// A constant with the bytes of another one, and of these dimensions. The bytes are not copied.
    ///
    /// # Errors
    /// When it is no constant, or has another number of elements.
    pub fn reshaped(&mut self, constant: Value, dims: &[Dim]) -> Result<Value, Problem> {
        let dtype = self.dtype(constant)?;
        let ty = self.cx().tensor_type(dtype, dims);
        self.services.retyped(constant, ty)
    }

    /// A tensor whose elements are known as dimensions. It gets into the function only where something reads it.
    ///
    /// # Errors
    /// When its elements are no integers or truth values, or are not as many as its shape says.
    pub fn known(&mut self, known: &Known) -> Result<Value, Problem> {
        let ty = known.ty(self.cx());
        self.services.dimensions(ty, &known.elements)
    }

    /// A shape.
    ///
    /// # Errors
    /// When one of them is no dimension.
    pub fn shape(&mut self, dims: &[Dim]) -> Result<Value, Problem> {
        self.services.shape(dims)
    }

    /// A tuple.
    ///
    /// # Errors
    /// When a field cannot be a value of the function, as a tensor of dimensions that may be negative.
    pub fn tuple(&mut self, fields: &[Value]) -> Result<Value, Problem> {
        self.services.tuple(fields)
    }

    /// The fields of a tuple.
    ///
    /// # Errors
    /// When it is none.
    pub fn items(&mut self, tuple: Value) -> Result<Vec<Value>, Problem> {
        match self.terms().ty(self.ty(tuple)) {
            TypeView::Tuple(fields) => self.services.items(tuple, fields.len()),
            _ => invalid("a tuple is expected"),
        }
    }

    /// Takes `bytes` of what the constants that are computed for a model may take together; false when there is not so much
    /// left. A short model can ask for long constants, once for each node.
    #[must_use]
    pub fn spend(&mut self, bytes: usize) -> bool {
        self.services.spend(bytes)
    }
}
