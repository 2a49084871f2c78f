//! The tensor program of a call: what it has for buffers, and whether what was made is one.

use std::collections::HashMap;

use rustc_hash::{FxBuildHasher, FxHashSet};

use tenon_plugin_api::program::{OP_NAME, OP_PATTERN};

use super::{OpEffect, OpError, OpPattern, OpSchema};
use crate::{
    AttrValue, BuildPrim, Context, Cx, Dim, DimView, Function, Transaction, Type, Unbound, View,
    flatten_type,
};

/// The facet whose rules know programs.
pub const COMPUTE: &str = "compute";

/// Whether somebody knows a tensor program of the operator called `name`.
pub fn has_program(cx: &Cx, name: &str) -> bool {
    // Where it is not clear which rule comes first, there are several.
    cx.operators().rules(COMPUTE, name, 0).map_or(true, |rules| !rules.is_empty())
}

/// Whether a call of the operator called `name` can be a view of its first argument: its result may stand for memory of
/// its arguments, where a program would write new memory. So it is called until memory is planned.
pub fn is_view(cx: &Cx, name: &str) -> bool {
    let shares = cx.operators().find(name).is_some_and(|op| op.effect == OpEffect::Shares);
    shares && has_program(cx, name)
}

/// The types of the buffers of a program.
pub struct Buffers {
    /// Of the tensors that are read: the arguments with tuples flattened; shapes, numbers and other arguments that are no
    /// tensors are left out.
    pub inputs: Vec<Type>,
    /// Of the tensors that are written: the result, flattened if it is a tuple.
    pub outputs: Vec<Type>,
}

impl Buffers {
    /// Those of a call with these types. A dimension that is neither an integer nor a symbol has a symbol of its own in the
    /// program, which finds its symbols in the shapes of its buffers.
    pub fn of_call(cx: &Cx, op: &OpSchema, args: &[Type], out: Type) -> Result<Self, OpError> {
        let terms = cx.terms();
        let mut inputs = flatten_type(terms, args);
        if matches!(op.pattern, OpPattern::Elementwise | OpPattern::Broadcast) {
            inputs.iter_mut().for_each(|input| *input = aligned(cx, *input, out));
        }
        let types = [inputs.clone(), flatten_type(terms, &[out])].concat();
        if let Some(&ty) = types.iter().find(|&&ty| terms.tensor(ty).is_none()) {
            let text = terms.type_text(ty);
            return Err(OpError::Unsupported(format!(
                "a tensor of known rank is expected, not {text}"
            )));
        }
        let dims_of = |&ty: &Type| terms.tensor(ty).map_or(&[][..], |(_, dims)| dims);
        let is_symbol = |dim: Dim| matches!(terms.dim(dim), DimView::Symbol(_));
        let symbols: FxHashSet<Dim> =
            types.iter().flat_map(dims_of).copied().filter(|&dim| is_symbol(dim)).collect();
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
        let mut types: Vec<Type> = generalized.collect();
        let outputs = types.split_off(inputs.len());
        Ok(Self { inputs: types, outputs })
    }

    /// Whether there is no element to write.
    pub fn is_nothing_written(&self, cx: &Cx) -> bool {
        let terms = cx.terms();
        let has_none = |&ty: &Type| {
            terms
                .tensor(ty)
                .is_some_and(|(_, dims)| dims.iter().any(|&dim| terms.dim_value(dim) == Some(0)))
        };
        self.outputs.iter().all(has_none)
    }

    /// The program that does nothing.
    pub fn nothing(&self, cx: &Cx, op: &OpSchema) -> Transaction {
        let mut tx = Transaction::new(cx.clone());
        let all = self.inputs.iter().chain(&self.outputs).enumerate();
        let params: Vec<_> = all.map(|(at, &ty)| tx.buffer(&format!("b{at}"), ty, "")).collect();
        let body = tx.seq(&[]);
        let attrs = cx.attrs(&[
            (OP_PATTERN, AttrValue::Int(op.pattern as i64)),
            (OP_NAME, AttrValue::Str(op.name.into())),
        ]);
        let root = tx.prim_func(&params, self.outputs.len() as u32, body, attrs);
        tx.set_root(root);
        tx
    }

    /// Checks that a function is a program over these buffers.
    pub fn check(&self, func: &Function) -> Result<(), OpError> {
        let body = func.view();
        let View::PrimFunc { params, outputs, .. } = body.view(body.root()) else {
            return Err(OpError::Unsupported("its rule made no tensor program".into()));
        };
        let found: Vec<Option<Type>> = params.iter().map(|param| body.ty(param)).collect();
        let expected: Vec<Type> = self.inputs.iter().chain(&self.outputs).copied().collect();
        if outputs == self.outputs.len()
            && found.iter().copied().eq(expected.iter().map(|&ty| Some(ty)))
        {
            return Ok(());
        }
        let text = |ty: &Option<Type>| {
            ty.map_or_else(|| "an untyped value".to_owned(), |ty| body.terms().type_text(ty))
        };
        let all = |types: &[Option<Type>]| types.iter().map(text).collect::<Vec<_>>().join(", ");
        Err(OpError::Unsupported(format!(
            "its rule made a tensor program of ({}) with {outputs} outputs instead of ({}) with {}",
            all(&found),
            all(&expected.iter().copied().map(Some).collect::<Vec<_>>()),
            self.outputs.len()
        )))
    }
}

/// The type of an input of an operator that repeats elements along axes, with the result's dimension in the place of one that is
/// `min` of it and of a number above 1: it is 1 only where the result's is, so it is not repeated. The call is refused where it
/// turns out to be less.
fn aligned(cx: &Cx, input: Type, out: Type) -> Type {
    let terms = cx.terms();
    let (Some((dtype, dims)), Some((_, of_out))) = (terms.tensor(input), terms.tensor(out)) else {
        return input;
    };
    let is_more = |dim: Dim| terms.dim_value(dim).is_some_and(|value| value > 1);
    let is_cut = |dim: Dim, whole: Dim| match terms.dim(dim) {
        DimView::Min(a, b) => (a == whole && is_more(b)) || (b == whole && is_more(a)),
        _ => false,
    };
    let mut dims = dims.to_vec();
    for (dim, &whole) in dims.iter_mut().rev().zip(of_out.iter().rev()) {
        if is_cut(*dim, whole) {
            *dim = whole;
        }
    }
    cx.tensor_type(dtype, &dims)
}

/// Why no rule has a program for a call with these types.
pub fn no_program(cx: &Cx, name: &str, args: &[Type], out: Type) -> OpError {
    let found = cx.operators().missing_rule(COMPUTE, name);
    if !found.is_empty() {
        return OpError::Unsupported(format!(
            "it cannot be turned into a tensor program: {}",
            found.join("; ")
        ));
    }
    if !has_program(cx, name) {
        return OpError::Unsupported("it cannot be turned into a tensor program".into());
    }
    let terms = cx.terms();
    let tensors = [flatten_type(terms, args), flatten_type(terms, &[out])].concat();
    let dims_of = |&ty: &Type| terms.tensor(ty).map_or(&[][..], |(_, dims)| dims);
    OpError::Unsupported(match Unbound::in_dims(terms, tensors.iter().flat_map(dims_of).copied()) {
        Some(unbound) => format!(
            "{}, and the operator needs to know {}: {}",
            unbound.problem(),
            unbound.them(),
            unbound.remedy()
        ),
        None => "no rule of the facet `compute` has a program for these types".into(),
    })
}
