//! What the legalization of an operator sees: a call to be turned into a tensor program.

use std::collections::HashMap;
use std::sync::Arc;

use rustc_hash::{FxBuildHasher, FxHashSet};

use crate::ir::{
    Attrs, AttrsView, Build, Context, Cx, DType, Dim, DimView, Function, OpDef, Transaction, Type,
    View, flatten_type,
};

use super::{OpAttrs, OpError, OpSchema, legalize};

/// A call to be turned into a tensor program.
///
/// The legalization builds the program in `tx` and sets its root, a tensor program whose parameters are
/// the buffers of [`LegalizeCx::inputs`], in order, and then those of [`LegalizeCx::outputs`].
pub struct LegalizeCx<'a> {
    /// The program being built.
    pub tx: Transaction,
    /// The operator.
    pub op: &'static OpSchema,
    /// The attributes.
    pub attrs: OpAttrs<'a>,
    /// The types of the arguments as they stand in the call.
    pub args: Vec<Type>,
    /// The type of the result.
    pub out: Type,
    /// The vector registers of the target.
    pub vectors: VectorUnit,
}

/// The vector registers of a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VectorUnit {
    /// How many f32 a register holds, a power of two.
    pub lanes: i64,
    /// How many registers there are.
    pub registers: i64,
}

impl VectorUnit {
    /// The registers that a target states, a dictionary with `vector_bits` and `vector_registers`.
    pub fn of_target(target: AttrsView<'_>) -> Self {
        let bits = target.int("vector_bits").unwrap_or(128).max(32);
        let registers = target.int("vector_registers").unwrap_or(16).max(8);
        Self { lanes: 1 << (bits / 32).ilog2(), registers }
    }
}

impl LegalizeCx<'_> {
    /// How many elements a vector register holds when they are computed with: floats narrower than f32
    /// are computed with as f32.
    pub fn lanes_of(&self, dtype: DType) -> i64 {
        let bits = if dtype.is_float() { dtype.bits().max(32) } else { dtype.bits().max(8) };
        (self.vectors.lanes * 32 / bits as i64).max(1)
    }

    /// The types of the tensors that are read: the arguments with tuples flattened; shapes, dimensions
    /// and other arguments that are no tensors are left out. A dimension that is neither an integer nor a symbol has a
    /// symbol of its own in the program, which finds its symbols in the shapes of its buffers.
    pub fn inputs(&self) -> Vec<Type> {
        let mut types = self.tensors();
        types.truncate(flatten_type(self.attrs.terms(), &self.args).len());
        types
    }

    /// The types of the tensors that are written: the result, flattened if it is a tuple; dimensions are as with those
    /// that are read.
    pub fn outputs(&self) -> Vec<Type> {
        self.tensors().split_off(flatten_type(self.attrs.terms(), &self.args).len())
    }

    /// Whether the sizes of all tensors are known.
    pub fn is_static(&self) -> bool {
        let terms = self.attrs.terms();
        self.tensors().into_iter().all(|ty| terms.static_tensor(ty).is_some())
    }

    fn tensors(&self) -> Vec<Type> {
        let terms = self.attrs.terms();
        let types = [flatten_type(terms, &self.args), flatten_type(terms, &[self.out])].concat();
        let dims_of = |&ty: &Type| terms.tensor(ty).map_or(&[][..], |(_, dims)| dims);
        let is_symbol = |dim: Dim| matches!(terms.dim(dim), DimView::Symbol(_));
        let symbols: FxHashSet<Dim> =
            types.iter().flat_map(dims_of).copied().filter(|&dim| is_symbol(dim)).collect();
        let cx = self.tx.cx();
        let mut own: HashMap<Dim, Dim, FxBuildHasher> = HashMap::default();
        let mut names = (0..).map(|number| cx.dim_symbol(&format!("d{number}")));
        let mut general = |dim: Dim| match terms.dim_value(dim) {
            None if !is_symbol(dim) => *own.entry(dim).or_insert_with(|| {
                names.find(|name| !symbols.contains(name)).expect("there is always another name")
            }),
            _ => dim,
        };
        let generalized = types.iter().map(|&ty| match terms.tensor(ty) {
            Some((dtype, dims)) => {
                let dims: Vec<Dim> = dims.iter().map(|&dim| general(dim)).collect();
                cx.tensor_type(dtype, &dims)
            }
            None => ty,
        });
        generalized.collect()
    }

    /// Element type and shape of a tensor type, which must be static.
    pub fn static_tensor(&self, ty: Type) -> Result<(DType, Vec<i64>), OpError> {
        let terms = self.attrs.terms();
        terms.static_tensor(ty).ok_or_else(|| {
            OpError::Unsupported(match self.unbound_symbol() {
                Some(dim) => format!(
                    "symbolic dimension {dim} is not bound, and the operator needs to know it: give \
                     -D {dim}=…"
                ),
                None => format!("a tensor of known shape is expected, not {}", terms.type_text(ty)),
            })
        })
    }

    /// The name of the first symbol in the shapes of arguments and result.
    fn unbound_symbol(&self) -> Option<String> {
        let terms = self.attrs.terms();
        let tensors = [flatten_type(terms, &self.args), flatten_type(terms, &[self.out])].concat();
        let dims_of = |&ty: &Type| terms.tensor(ty).map_or(&[][..], |(_, dims)| dims);
        let mut pending: Vec<Dim> = tensors.iter().flat_map(dims_of).copied().collect();
        pending.reverse();
        while let Some(dim) = pending.pop() {
            match terms.dim(dim) {
                DimView::Symbol(name) => return Some(terms.str(name).to_owned()),
                DimView::Add(parts) | DimView::Mul(parts) => pending.extend(parts),
                DimView::FloorDiv(a, b)
                | DimView::FloorMod(a, b)
                | DimView::Min(a, b)
                | DimView::Max(a, b) => pending.extend([a, b]),
                DimView::Const(_) | DimView::Unknown(_) => {}
            }
        }
        None
    }
}

/// The tensor program of a call, private: its parameters are the flattened tensor arguments, then the
/// flattened tensors of the result.
pub fn legalize_call(
    cx: &Cx,
    op: &OpDef,
    args: &[Type],
    attrs: Attrs,
    out: Type,
    vectors: VectorUnit,
) -> Result<Arc<Function>, OpError> {
    let Some(legalize) = legalize::find(op.name) else {
        return Err(OpError::Unsupported("it cannot be turned into a tensor program".into()));
    };
    let attrs = op.attrs(cx, attrs)?;
    let tx = Transaction::new(cx.clone());
    let mut legalizer =
        LegalizeCx { tx, op: op.schema(), attrs, args: args.to_vec(), out, vectors };
    let expected: Vec<Type> = legalizer.inputs().into_iter().chain(legalizer.outputs()).collect();
    let outputs = legalizer.outputs().len();
    legalize(&mut legalizer)?;
    legalizer.tx.make_private();
    let func = legalizer
        .tx
        .finish()
        .map_err(|error| OpError::Unsupported(format!("its tensor program is broken: {error}")))?;
    check_params(&func, &expected, outputs)?;
    Ok(func)
}

/// Checks that a legalization kept its contract.
fn check_params(func: &Function, expected: &[Type], outputs: usize) -> Result<(), OpError> {
    let body = func.view();
    let View::PrimFunc { params, outputs: written, .. } = body.view(body.root()) else {
        return Err(OpError::Unsupported("its legalization made no tensor program".into()));
    };
    let found: Vec<Option<Type>> = params.iter().map(|param| body.ty(param)).collect();
    if written == outputs && found.iter().copied().eq(expected.iter().map(|&ty| Some(ty))) {
        return Ok(());
    }
    let text = |ty: &Option<Type>| {
        ty.map_or_else(|| "an untyped value".to_owned(), |ty| body.terms().type_text(ty))
    };
    Err(OpError::Unsupported(format!(
        "its legalization made a tensor program of ({}) with {written} outputs instead of ({}) with \
         {outputs}",
        found.iter().map(text).collect::<Vec<_>>().join(", "),
        expected.iter().map(|&ty| text(&Some(ty))).collect::<Vec<_>>().join(", "),
    )))
}
