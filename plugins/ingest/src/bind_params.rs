//! Makes constants of parameters.
//!
//! ```ir
//! fn @main(%x: f32[n], %w: f32[n]) {         fn @main(%x: f32[2]) {
//!   %a: f32[n] = multiply(%x, %w)      =>      %a: f32[2] = multiply(%x, const(f32[2], [1, 3]))
//!   ret %a                                     ret %a
//! }                                          }
//! ```
//!
//! That is with `params = ["w=[1, 3]"]`. A value is a number, which every element gets; a list of as many numbers
//! as there are elements; or `@weights`, a function of the module without parameters, or a field of it,
//! `@weights.0`, which is a constant. So the values of a model can come in a file beside the module. Symbols in
//! the type of the parameter become what its value has in their place, everywhere in the function.

use tenon_plugin_api::prelude::*;

use crate::specialize::{Bound, Value, specialize};

/// Makes constants of parameters.
#[pass(
    name = "relax.BindParams",
    aliases = ["relax.transform.BindParams", "raf.pass_.BindParam"],
    phase = "ingest",
    idempotent = false
)]
fn bind_params(mut module: Module, cx: &PassContext, options: Options) -> Result<Module> {
    let Options { params: values, function: name } = &options;
    if values.is_empty() {
        return Ok(module);
    }
    let symbol = cx.symbol(name);
    let func = module.get(symbol).filter(|func| !func.is_prim());
    let Some(func) = func else {
        return Err(PassError::new(format!("there is no graph function `@{name}`")));
    };
    let body = func.view();
    let View::Function { params, .. } = body.view(body.root()) else { return Ok(module) };
    let names: Vec<&str> =
        params.iter().map(|param| cx.terms().str(Symbol(body.raw_node(param).data))).collect();
    let mut dims = Substitution::new();
    let mut bound: Vec<Bound> = Vec::new();
    for text in values {
        let (wanted, value) =
            text.split_once('=').map_or((text.as_str(), ""), |(a, b)| (a.trim(), b.trim()));
        let Some(param) = names.iter().position(|&name| name == wanted) else {
            let known = names.join(", ");
            return Err(PassError::new(format!(
                "@{name} has no parameter `{wanted}`; it has {known}"
            )));
        };
        let ty =
            body.ty(params.at(param)).ok_or_else(|| PassError::new("a parameter has no type"))?;
        let (value, given) = match value.strip_prefix('@') {
            Some(path) => shared(&module, path, cx)?,
            None => made(value, ty, cx)?,
        };
        let types = || [ty, given].map(|ty| cx.terms().type_text(ty));
        if !dims.match_type(cx, ty, given) {
            let [ty, given] = types();
            return Err(PassError::new(format!("`{wanted}` is {ty}, but its value is {given}")));
        }
        bound.push(Bound { param, value });
    }
    if CallGraph::of(&module).callees_first().any(|caller| names_it(&module, caller, symbol)) {
        let message = format!("other functions call @{name}, with the parameters that it has now");
        return Err(PassError::new(message));
    }
    module.insert(symbol, &specialize(&func, &bound, &mut dims, cx)?);
    Ok(module)
}

#[derive(Options)]
struct Options {
    /// values by names of parameters: `w=0.5`, `w=[1, 2]`, `w=@weights.0`
    #[option(default = [])]
    params: Vec<String>,
    /// the function whose parameters they are
    #[option(default = "main")]
    function: String,
}

fn names_it(module: &Module, caller: Symbol, name: Symbol) -> bool {
    module.get(caller).is_some_and(|func| func.view().globals().any(|(_, named)| named == name))
}

/// The constant that `weights.0`, a function and fields, is.
fn shared(module: &Module, path: &str, cx: &PassContext) -> Result<(Value, Type)> {
    let wrong =
        || PassError::new(format!("`@{path}` is no constant of a function without parameters"));
    let mut parts = path.split('.');
    let func = parts.next().and_then(|name| module.get(cx.symbol(name))).ok_or_else(wrong)?;
    let mut rw = func.edit();
    let mut expr = func.result().filter(|_| func.param_types().is_empty()).ok_or_else(wrong)?;
    loop {
        expr = rw.definition(expr);
        expr = match rw.view(expr) {
            View::Let(bindings) => bindings.result(),
            View::Tuple(fields) => {
                let index: usize =
                    parts.next().and_then(|part| part.parse().ok()).ok_or_else(wrong)?;
                fields.get(index).ok_or_else(wrong)?
            }
            View::Constant(constant) if parts.next().is_none() => {
                return Ok((Value::Shared(func, constant.index), constant.ty));
            }
            _ => return Err(wrong()),
        };
    }
}

/// The constant that a number, or a list of numbers in brackets, is to a parameter of type `ty`.
fn made(text: &str, ty: Type, cx: &PassContext) -> Result<(Value, Type)> {
    let wrong = |what: &str| PassError::new(format!("the value `{text}` {what}"));
    let list = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let items: Vec<&str> = match list {
        Some(list) => list.split(',').map(str::trim).collect(),
        None => vec![text],
    };
    let terms = cx.terms();
    let (dtype, dims) = terms.tensor(ty).ok_or_else(|| wrong("is for what is no tensor"))?;
    // The length of a list says what the only symbol of a vector is.
    let ty = match (dims, list) {
        (&[dim], Some(_)) if terms.dim_value(dim).is_none() => {
            cx.static_tensor_type(dtype, &[items.len() as i64])
        }
        _ => ty,
    };
    let (_, shape) = terms
        .static_tensor(ty)
        .ok_or_else(|| wrong("does not say how large it is; bind its dimensions first"))?;
    let count = shape.iter().product::<i64>() as usize;
    if list.is_some() && items.len() != count {
        return Err(wrong(&format!("has {} elements, and {count} are needed", items.len())));
    }
    let mut elements = Vec::new();
    for item in items {
        let bytes = element(dtype, item);
        elements.push(bytes.ok_or_else(|| wrong(&format!("holds `{item}`, which is no {dtype}")))?);
    }
    let bytes = match list {
        Some(_) => elements.concat(),
        None => elements[0].repeat(count),
    };
    Ok((Value::Made(ty, bytes), ty))
}

/// The bytes of an element; `None` when the text is none, or the dtype none that can be written here.
fn element(dtype: DType, text: &str) -> Option<Vec<u8>> {
    Some(match dtype {
        DType::F64 => text.parse::<f64>().ok()?.to_le_bytes().to_vec(),
        DType::F32 => text.parse::<f32>().ok()?.to_le_bytes().to_vec(),
        DType::I64 => text.parse::<i64>().ok()?.to_le_bytes().to_vec(),
        DType::I32 => text.parse::<i32>().ok()?.to_le_bytes().to_vec(),
        DType::I16 => text.parse::<i16>().ok()?.to_le_bytes().to_vec(),
        DType::I8 => text.parse::<i8>().ok()?.to_le_bytes().to_vec(),
        DType::U64 => text.parse::<u64>().ok()?.to_le_bytes().to_vec(),
        DType::U32 => text.parse::<u32>().ok()?.to_le_bytes().to_vec(),
        DType::U16 => text.parse::<u16>().ok()?.to_le_bytes().to_vec(),
        DType::U8 => text.parse::<u8>().ok()?.to_le_bytes().to_vec(),
        DType::BOOL => vec![text.parse::<bool>().ok()? as u8],
        _ => return None,
    })
}
