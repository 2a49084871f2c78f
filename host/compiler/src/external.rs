//! Tensor programs whose code is not ours: it came from a code generator, as an object.
//!
//! ```ir
//! private prim @f(%x: f32[8], out %y: f32[8]) {
//!   eval extern "f"(const(u8[1024], …), %x, %y)
//! }
//! ```
//!
//! The constant is the object, and the string the symbol that it defines, a function like those that the
//! compiler makes of tensor programs: pointers to the buffers, scratch memory, threads, a status.

use std::sync::Arc;

use object::{Object, ObjectKind, ObjectSymbol};
use tenon_plugin_api::ir::{Attrs, BuildPrim, Context};
use thiserror::Error;

use crate::border::Run;
use crate::ir::{
    Build, Bytes, Constant, Cx, DType, Expr, Function, Kind, Module, NodeSpec, Symbol, Terms,
    Transaction, TransactionError, Type, TypeView, View, flatten_type,
};
use crate::services::ServiceError;

/// Why a vendor's code cannot be made a program of the module.
#[derive(Debug, Error)]
pub(crate) enum ExternalError {
    #[error("there is no function `{0}`")]
    NoFunction(String),
    #[error("`{0}` is no graph function")]
    NoGraphFunction(String),
    #[error("a parameter of `{0}` has no type")]
    UntypedParameter(String),
    #[error("`{0}` has no type of its result")]
    UntypedResult(String),
    #[error("code generators take tensors of known size, and `{function}` has a {ty}")]
    UnknownSize { function: String, ty: String },
    #[error("what code generator `{generator}` made is no object: {problem}")]
    NoObject { generator: String, problem: ObjectProblem },
    #[error(
        "the object of code generator `{generator}` defines no function `{missing}`, only {defined:?}"
    )]
    Undefined { generator: String, missing: String, defined: Vec<String> },
    #[error(transparent)]
    Transaction(#[from] TransactionError),
}

/// What is wrong with an object.
#[derive(Debug, Error)]
pub(crate) enum ObjectProblem {
    #[error(transparent)]
    Unreadable(#[from] object::Error),
    #[error("it is {0:?}, not relocatable")]
    Kind(ObjectKind),
}

/// The code of a program that has its own.
pub(crate) struct ExternalCode<'a> {
    /// The function in the object.
    pub(crate) symbol: &'a str,
    /// A relocatable object, as bytes.
    pub(crate) object: &'a Arc<Constant>,
}

impl<'a> ExternalCode<'a> {
    /// The code of `program`; `None` when it is a tensor program like any other.
    pub(crate) fn of(program: &'a Function) -> Option<Self> {
        let body = program.view();
        let View::PrimFunc { params, body: stmt, .. } = body.view(body.root()) else { return None };
        let View::Evaluate { value } = body.view(stmt) else { return None };
        let View::Call { callee, args, .. } = body.view(value) else { return None };
        let View::Extern { name } = body.view(callee) else { return None };
        let View::Constant(object) = body.view(args.get(0)?) else { return None };
        let object = &program.constants()[object.index as usize];
        let passes_on = args.skip(1).iter().eq(params.iter());
        passes_on.then(|| Self { symbol: body.terms().str(name), object })
    }
}

/// Has a code generator compile functions of a module, and makes the tensor programs that call its code.
pub(crate) fn generate(
    run: &Arc<Run>,
    generator: &str,
    module: &Module,
    names: &[Symbol],
) -> Result<Vec<Arc<Function>>, ServiceError> {
    let cx = &run.cx;
    let functions: Vec<(Symbol, Interface)> = names
        .iter()
        .map(|&name| Ok((name, Interface::of(module, name)?)))
        .collect::<Result<_, ExternalError>>()?;
    let bytes = run.generators()?.generate(generator, run, module, names)?;
    let defined = defined_functions(&bytes)
        .map_err(|problem| ExternalError::NoObject { generator: generator.to_owned(), problem })?;
    let missing = names.iter().map(|&name| cx.terms().str(name));
    if let Some(missing) = missing.into_iter().find(|name| !defined.iter().any(|it| it == name)) {
        let (generator, missing) = (generator.to_owned(), missing.to_owned());
        return Err(ExternalError::Undefined { generator, missing, defined }.into());
    }
    let ty = cx.static_tensor_type(DType::U8, &[bytes.len() as i64]);
    let name = cx.symbol(&format!("{generator}.o"));
    let object = Arc::new(Constant { ty, name, data: Bytes::new(bytes) });
    let program = |(name, interface): &(Symbol, Interface)| program(cx, *name, interface, &object);
    functions.iter().map(|function| Ok(program(function)?)).collect()
}

/// What a function takes and gives, as tensors of known size.
struct Interface {
    params: Vec<(Symbol, Type)>,
    results: Vec<Type>,
}

impl Interface {
    fn of(module: &Module, name: Symbol) -> Result<Self, ExternalError> {
        let text = module.cx().terms().str(name);
        let Some(function) = module.get(name) else {
            return Err(ExternalError::NoFunction(text.to_owned()));
        };
        let body = function.view();
        let View::Function { params, result, .. } = body.view(body.root()) else {
            return Err(ExternalError::NoGraphFunction(text.to_owned()));
        };
        let terms = body.terms();
        let params = params
            .iter()
            .map(|param| match (body.view(param), body.ty(param)) {
                (View::Var { name }, Some(ty)) => Ok((name, known(terms, ty, text)?)),
                _ => Err(ExternalError::UntypedParameter(text.to_owned())),
            })
            .collect::<Result<_, ExternalError>>()?;
        let result = result.ok_or_else(|| ExternalError::UntypedResult(text.to_owned()))?;
        let results = match terms.ty(result) {
            TypeView::Tuple(fields) => fields.to_vec(),
            _ => vec![result],
        };
        results.iter().try_for_each(|&ty| known(terms, ty, text).map(drop))?;
        Ok(Self { params, results })
    }
}

/// Whether a function takes and gives no tensors of unknown size, of which no code generator makes code.
pub(crate) fn has_known_sizes(function: &Function) -> bool {
    let body = function.view();
    let View::Function { params, result, .. } = body.view(body.root()) else { return false };
    let params = params.iter().filter_map(|param| body.ty(param));
    let types: Vec<Type> = params.chain(result).collect();
    let terms = body.terms();
    flatten_type(terms, &types).iter().all(|&ty| terms.static_tensor(ty).is_some())
}

/// A tensor type of known size.
fn known(terms: Terms<'_>, ty: Type, function: &str) -> Result<Type, ExternalError> {
    match terms.static_tensor(ty) {
        Some(_) => Ok(ty),
        None => {
            let (function, ty) = (function.to_owned(), terms.type_text(ty));
            Err(ExternalError::UnknownSize { function, ty })
        }
    }
}

/// The functions that an object defines for others.
fn defined_functions(bytes: &[u8]) -> Result<Vec<String>, ObjectProblem> {
    let file = object::File::parse(bytes)?;
    if file.kind() != ObjectKind::Relocatable {
        return Err(ObjectProblem::Kind(file.kind()));
    }
    let defined = file.symbols().filter(|symbol| symbol.is_global() && symbol.is_definition());
    let names = defined.filter_map(|symbol| symbol.name().ok()).map(str::to_owned);
    Ok(names.collect())
}

fn program(
    cx: &Cx,
    name: Symbol,
    interface: &Interface,
    object: &Arc<Constant>,
) -> Result<Arc<Function>, ExternalError> {
    let mut tx = Transaction::new(cx.clone());
    let terms = cx.terms();
    let mut params: Vec<Expr> =
        interface.params.iter().map(|&(name, ty)| tx.buffer(terms.str(name), ty, "")).collect();
    for (index, &ty) in interface.results.iter().enumerate() {
        params.push(tx.buffer(&format!("result{index}"), ty, ""));
    }
    let callee = tx.named(Kind::EXTERN, name);
    let object = tx.shared_constant(Arc::clone(object));
    let args: Vec<Expr> = [object].into_iter().chain(params.iter().copied()).collect();
    let call = tx.call(callee, &args, Attrs::NONE, None);
    let body = tx.push(NodeSpec::new(Kind::EVALUATE), &[call]);
    let root = tx.prim_func(&params, interface.results.len() as u32, body, Attrs::NONE);
    let root = tx.private(root);
    tx.set_root(root);
    Ok(tx.publish()?)
}
