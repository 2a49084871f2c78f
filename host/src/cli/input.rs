//! Reading and writing modules: ONNX files and the text form.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::output::Failure;
use crate::diagnostics::{Diagnostic, Diagnostics, Source};
use crate::infer::{InferError, infer_module};
use crate::ir::{Bytes, Constant, Context, Cx, Module, Symbol};
use crate::onnx::import::{ImportOptions, import};
use crate::text::{WeightsPolicy, parse_module, print_module};
use crate::{io, text};

/// Constants of up to this many elements stand in a text that is written to a file.
const INLINE_LIMIT: u64 = 64;

/// Values for symbolic dimensions.
pub(super) type Dims = BTreeMap<String, i64>;

/// Parses `-D NAME=VALUE`.
pub(super) fn parse_dim(text: &str) -> Result<(String, i64), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE, such as batch=1")?;
    match value.trim().parse() {
        Ok(value) if value > 0 => Ok((name.trim().to_owned(), value)),
        _ => Err(format!("`{value}` is not a positive integer")),
    }
}

/// Reads a model: an `.onnx` file, or a module's text. All types are inferred.
pub(super) fn read_model(path: &Path, dims: Dims) -> Result<Module, Failure> {
    if path.extension().is_some_and(|extension| extension == "onnx") {
        return Ok(import(path, &ImportOptions { dims, ..ImportOptions::default() })?);
    }
    if let Some(name) = dims.keys().next() {
        return Err(Failure::new(format!(
            "-D {name}: dimensions are bound while an ONNX model is imported, and {} is a text",
            path.display()
        )));
    }
    let bytes = std::fs::read(path)
        .map_err(|error| Failure::new(format!("{}: cannot be read: {error}", path.display())))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        Failure::new(format!(
            "{}: neither an .onnx file nor text: byte {} is not UTF-8",
            path.display(),
            error.utf8_error().valid_up_to()
        ))
    })?;
    let cx = Cx::new();
    let source = Source::new(path.display().to_string(), text);
    let folder = path.parent().map(Path::to_owned).unwrap_or_default();
    let mut weights = WeightsFolder { cx: cx.clone(), folder, open: BTreeMap::new() };
    let module = parse_module(&cx, &source, &mut weights).map_err(Failure::from_diagnostics)?;
    infer_module(&module).map_err(|errors| infer_failure(&source, &errors))
}

/// Inference errors, each underlined where its node stands in the text.
fn infer_failure(source: &Arc<Source>, errors: &[(Symbol, InferError)]) -> Failure {
    let diagnostics = errors
        .iter()
        .map(|(_, error)| {
            let diagnostic = Diagnostic::error(error.problem.to_string()).in_source(source);
            match error.span.checked_sub(1) {
                Some(at) => diagnostic.label(word_at(&source.text, at as usize), ""),
                None => diagnostic,
            }
        })
        .collect();
    Failure::from_diagnostics(Diagnostics(diagnostics))
}

/// The bytes of the word that starts at `at`.
fn word_at(text: &str, at: usize) -> std::ops::Range<usize> {
    let rest = text.get(at..).unwrap_or("");
    let len = rest
        .find(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | ',' | '{'))
        .unwrap_or(rest.len());
    at..at + len.max(1).min(rest.len())
}

/// The weights files beside a text.
struct WeightsFolder {
    cx: Cx,
    folder: PathBuf,
    open: BTreeMap<String, io::Weights>,
}

impl text::LoadWeight for WeightsFolder {
    fn load(
        &mut self,
        file: Option<&str>,
        key: &str,
    ) -> Result<Constant, Box<dyn std::error::Error>> {
        let file = file.ok_or("the text names no weights file; write `weights \"file\"` on top")?;
        if !self.open.contains_key(file) {
            self.open.insert(file.to_owned(), io::Weights::open(&self.folder.join(file))?);
        }
        let weight = self.open[file].get(key)?;
        let dtype = io::from_safetensors(weight.dtype)
            .ok_or_else(|| format!("its element type {:?} is not supported", weight.dtype))?;
        let shape: Vec<i64> = weight.shape.iter().map(|&extent| extent as i64).collect();
        Ok(Constant {
            ty: self.cx.static_tensor_type(dtype, &shape),
            name: self.cx.symbol(key),
            data: Bytes::new(weight.data.clone()),
        })
    }
}

/// Writes a module as text, its large constants into a safetensors file beside it.
pub(super) fn write_module(module: &Module, path: &Path) -> Result<(), Failure> {
    let weights_path = path.with_extension("safetensors");
    let name = weights_path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut policy = WeightsPolicy::external(name, INLINE_LIMIT);
    let text = print_module(module, &mut policy);
    if !policy.collected().is_empty() {
        write_weights(module.cx(), &weights_path, policy.collected())?;
    }
    io::write_atomically(path, |out| {
        std::io::Write::write_all(out, text.as_bytes())
            .map_err(|cause| io::FileError::Write { path: path.to_owned(), cause })
    })?;
    Ok(())
}

fn write_weights(
    cx: &Cx,
    path: &Path,
    constants: &[(String, Arc<Constant>)],
) -> Result<(), Failure> {
    let mut entries = Vec::with_capacity(constants.len());
    for (key, constant) in constants {
        let terms = cx.terms();
        let (dtype, shape) = terms.static_tensor(constant.ty).expect("a constant's type is static");
        let element = io::to_safetensors(dtype)
            .ok_or_else(|| Failure::new(format!("safetensors has no element type for {dtype}")))?;
        let shape: Vec<usize> = shape.iter().map(|&extent| extent as usize).collect();
        entries.push((key.as_str(), element, shape, constant));
    }
    let views: Vec<(&str, io::WeightView<'_>)> = entries
        .iter()
        .map(|(key, dtype, shape, constant)| {
            (*key, io::WeightView { dtype: *dtype, shape, data: &constant.data })
        })
        .collect();
    io::write_weights(path, &views, Default::default())?;
    Ok(())
}
