//! Modules in files: the text, and the weights in a safetensors file beside it.

use std::collections::HashMap;
use std::error::Error;
use std::io::Write;
use std::path::{Component, Path};
use std::sync::Arc;

use super::{LoadWeight, WeightsPolicy, parse_module, print_module};
use crate::check::check;
use crate::diagnostics::{Diagnostic, Diagnostics, Source};
use crate::infer::infer_module;
use crate::io::{
    FileError, WeightView, Weights, from_safetensors, to_safetensors, write_atomically,
    write_weights,
};
use crate::ir::{Bytes, Constant, Context, Cx, Module, Symbol};

/// Reads a module; the weights that it names lie in or below the text's own folder, and are mapped.
pub fn read_module(cx: &Cx, path: &Path) -> Result<Module, Diagnostics> {
    parse_file(cx, path).map(|(module, _)| module)
}

/// Reads a module, infers all its types, and checks that it is well formed.
pub fn read_checked_module(cx: &Cx, path: &Path) -> Result<Module, Diagnostics> {
    let (module, source) = parse_file(cx, path)?;
    let module = infer_module(&module).map_err(|errors| {
        Diagnostics(errors.iter().map(|(_, error)| error.to_diagnostic(&source)).collect())
    })?;
    let violations = check(&module);
    match violations.is_empty() {
        true => Ok(module),
        false => Err(Diagnostics(violations.iter().map(|each| each.in_text(&source)).collect())),
    }
}

fn parse_file(cx: &Cx, path: &Path) -> Result<(Module, Arc<Source>), Diagnostics> {
    let failed = |message: String| Diagnostics::from(Diagnostic::error(message));
    let bytes = std::fs::read(path)
        .map_err(|cause| failed(FileError::Read { path: path.to_owned(), cause }.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        failed(format!("`{}` is no text: byte {valid} is not UTF-8", path.display()))
    })?;
    let source = Source::new(path.display().to_string(), text);
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut weights = WeightsFolder { cx, folder, open: HashMap::new() };
    Ok((parse_module(cx, &source, &mut weights)?, source))
}

/// Writes a module as [`write_module_below`] does, with nothing above it.
pub fn write_module(module: &Module, path: &Path, inline_limit: u64) -> Result<(), FileError> {
    write_module_below("", module, path, inline_limit)
}

/// Writes a module below some lines of comments: the text to `path`, and constants of more than `inline_limit` elements to a file of
/// the same name that ends in `.safetensors`. Both are replaced in one step each, weights first.
pub fn write_module_below(
    comments: &str,
    module: &Module,
    path: &Path,
    inline_limit: u64,
) -> Result<(), FileError> {
    let weights_path = path.with_extension("safetensors");
    let file = weights_path.file_name().unwrap_or_default().to_string_lossy();
    let mut policy = WeightsPolicy::external(file, inline_limit);
    let text = print_module(module, &mut policy);
    if policy.has_elided_terms() {
        let cause = "a type or an attribute is too long to be written as text";
        let cause = std::io::Error::new(std::io::ErrorKind::InvalidData, cause);
        return Err(FileError::Write { path: path.to_owned(), cause });
    }
    if !policy.collected().is_empty() {
        write_constants(module, &weights_path, &policy)?;
    }
    write_atomically(path, |file| {
        let failed = |cause| FileError::Write { path: path.to_owned(), cause };
        file.write_all(comments.as_bytes()).map_err(failed)?;
        file.write_all(text.as_bytes()).map_err(failed)
    })
}

fn write_constants(module: &Module, path: &Path, policy: &WeightsPolicy) -> Result<(), FileError> {
    let terms = module.cx().terms();
    let mut shapes = Vec::new();
    for (key, constant) in policy.collected() {
        let known = terms.static_tensor(constant.ty).and_then(|(dtype, dims)| {
            let dims = dims.into_iter().map(usize::try_from).collect::<Result<Vec<_>, _>>();
            Some((to_safetensors(dtype)?, dims.ok()?))
        });
        let Some(known) = known else {
            let ty = super::print_type(module.cx(), constant.ty);
            let cause = format!("weight `{key}` of type {ty} has no place in a weights file");
            let cause = std::io::Error::new(std::io::ErrorKind::InvalidData, cause);
            return Err(FileError::Write { path: path.to_owned(), cause });
        };
        shapes.push(known);
    }
    let tensors: Vec<(&str, WeightView<'_>)> = policy
        .collected()
        .iter()
        .zip(&shapes)
        .map(|((key, constant), (dtype, shape))| {
            (key.as_str(), WeightView { dtype: *dtype, shape, data: &constant.data })
        })
        .collect();
    write_weights(path, &tensors, HashMap::new())
}

/// Weights files in a folder, opened when they are first asked for.
struct WeightsFolder<'a> {
    cx: &'a Cx,
    folder: &'a Path,
    open: HashMap<String, Weights>,
}

impl LoadWeight for WeightsFolder<'_> {
    fn load(&mut self, file: Option<&str>, key: &str) -> Result<Constant, Box<dyn Error>> {
        let file = file.ok_or("the text names no weights file; write `weights \"file\"` on top")?;
        let is_below = |part| matches!(part, Component::Normal(_) | Component::CurDir);
        if !Path::new(file).components().all(is_below) {
            return Err(format!("`{file}` does not lie below the folder of the text").into());
        }
        if !self.open.contains_key(file) {
            let weights = Weights::open(&self.folder.join(file))?;
            self.open.insert(file.to_owned(), weights);
        }
        let weight = self.open[file].get(key)?;
        let dtype = from_safetensors(weight.dtype)
            .ok_or_else(|| format!("elements of type {} are not known", weight.dtype))?;
        let shape: Vec<i64> = weight.shape.iter().map(|&extent| extent as i64).collect();
        let ty = self.cx.static_tensor_type(dtype, &shape);
        Ok(Constant { ty, name: Symbol(0), data: Bytes::new(weight.data.clone()) })
    }
}
