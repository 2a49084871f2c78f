//! Modules in files: the text, and the weights in a safetensors file beside it.

use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::io::Write;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use crate::check::check;
use crate::diagnostics::{Diagnostic, Diagnostics, Source};
use crate::infer::infer_written;
use crate::io::{
    FileError, Outputs, WeightView, Weights, from_safetensors, is_stream, read_at_most,
    to_safetensors, write_weights,
};
use crate::ir::text::{
    LONGEST_TEXT, LoadWeight, ModuleText, NoWeights, Places, WeightsFile, WeightsPolicy, parse_as,
};
use crate::ir::{Constant, Context, Cx, Module, Symbol};

/// How often a text is read anew that others replace, with its weights, while it is read.
const MOST_ATTEMPTS: usize = 16;

/// A text that was read.
struct Read {
    module: Module,
    source: Arc<Source>,
    /// The weights files that it names.
    weights: Vec<PathBuf>,
}

/// Reads a module; the weights that it names lie in or below the text's own folder, and are mapped. What nodes came from is
/// what the text says of it, and not the text.
pub fn read_module(cx: &Cx, path: &Path) -> Result<Module, Diagnostics> {
    parse_file(cx, path, Places::Forgotten).map(|read| read.module)
}

/// Reads a module, infers all its types, and checks that it is well formed. The second result are the files that
/// its weights lie in.
pub fn read_checked_module(cx: &Cx, path: &Path) -> Result<(Module, Vec<PathBuf>), Diagnostics> {
    let Read { module, source, weights } = parse_file(cx, path, Places::Named)?;
    Ok((checked(&module, &source)?, weights))
}

/// The same of a text in memory that has all its constants inline.
pub fn parse_checked_module(cx: &Cx, source: &Arc<Source>) -> Result<Module, Diagnostics> {
    checked(&parse_as(cx, source, Places::Named, &mut NoWeights)?, source)
}

/// A module with all its types, which is well formed.
fn checked(module: &Module, source: &Arc<Source>) -> Result<Module, Diagnostics> {
    let module = infer_written(module).map_err(|errors| {
        Diagnostics(errors.iter().map(|(_, error)| error.to_diagnostic(source)).collect())
    })?;
    let violations = check(&module);
    match violations.is_empty() {
        true => Ok(module),
        false => Err(Diagnostics(violations.iter().map(|each| each.in_text(source)).collect())),
    }
}

fn parse_file(cx: &Cx, path: &Path, places: Places) -> Result<Read, Diagnostics> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut source = read_source(path)?;
    for _ in 1..MOST_ATTEMPTS {
        let mut weights =
            WeightsFolder { cx, folder, open: HashMap::new(), refused: HashSet::new() };
        let parsed = parse_as(cx, &source, places, &mut weights);
        // A text and weights that do not fit may be of two writers: then the text is another one by now. What
        // is no file cannot be read twice.
        if !weights.refused.is_empty() && path.is_file() {
            let now = read_source(path)?;
            if now.text != source.text {
                source = now;
                continue;
            }
        }
        let weights = weights.open.into_keys().map(|file| folder.join(file)).collect();
        return parsed.map(|module| Read { module, source, weights });
    }
    let message = format!("`{}` is replaced again and again while it is read", path.display());
    Err(Diagnostic::error(message).into())
}

fn read_source(path: &Path) -> Result<Arc<Source>, Diagnostics> {
    let failed = |message: String| Diagnostics::from(Diagnostic::error(message));
    let bytes = read_at_most(path, LONGEST_TEXT).map_err(|error| failed(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        failed(format!("`{}` is no text: byte {valid} is not UTF-8", path.display()))
    })?;
    Ok(Source::new(path.display().to_string(), text))
}

/// Where the weights lie that a text at `path` does not hold itself.
pub fn weights_path(path: &Path) -> PathBuf {
    path.with_extension("safetensors")
}

/// What is written of a module into a text.
#[derive(Clone, Copy, Debug)]
pub struct TextForm {
    /// Constants of up to this many elements stand in the text.
    pub inline_limit: u64,
    /// Whether it is written what nodes came from.
    pub has_sources: bool,
}

impl TextForm {
    /// What the program writes: small constants stand in the text, and it is not written what nodes came from.
    pub const IN_FILES: TextForm = TextForm { inline_limit: 64, has_sources: false };

    /// One without what nodes came from.
    pub fn new(inline_limit: u64) -> Self {
        Self { inline_limit, has_sources: false }
    }

    /// The same with what nodes came from.
    pub fn with_sources(self) -> Self {
        Self { has_sources: true, ..self }
    }
}

/// Writes a module as [`write_module_below`] does, with nothing above it and nothing beside it.
pub fn write_module(module: &Module, path: &Path, form: TextForm) -> Result<(), FileError> {
    write_module_below("", module, path, form, Outputs::default())
}

/// Writes a module below some lines of comments: the text to `path`, and constants that are too large for it to a file of
/// the same name that ends in `.safetensors`. A text that goes to a device or a pipe has nothing beside it, and so
/// all elements in it. All of `outputs` is published.
pub fn write_module_below(
    comments: &str,
    module: &Module,
    path: &Path,
    form: TextForm,
    mut outputs: Outputs,
) -> Result<(), FileError> {
    let weights_path = weights_path(path);
    let file = weights_path.file_name().unwrap_or_default().to_string_lossy();
    let mut policy = match is_stream(path) {
        true => WeightsPolicy::inline(),
        false => WeightsPolicy::external(file.clone(), form.inline_limit),
    }
    .with_sources(form.has_sources);
    let text = ModuleText::new(module, &mut policy);
    if policy.has_elided_terms() {
        let cause = "a type or an attribute is too long to be written as text";
        let cause = std::io::Error::new(std::io::ErrorKind::InvalidData, cause);
        return Err(FileError::Write { path: path.to_owned(), cause });
    }
    let weights = match policy.collected().is_empty() {
        true => None,
        false => {
            let digest = write_constants(&mut outputs, module, &weights_path, &policy)?;
            Some(WeightsFile { name: file.into_owned(), sha256: Some(digest) })
        }
    };
    let text = text.join(weights.as_ref());
    outputs.write(path, |file| {
        let failed = |cause| FileError::Write { path: path.to_owned(), cause };
        file.write_all(comments.as_bytes()).map_err(failed)?;
        file.write_all(text.as_bytes()).map_err(failed)
    })?;
    outputs.publish()
}

/// Writes the constants that stand outside of the text, and tells the digest of their file.
fn write_constants(
    outputs: &mut Outputs,
    module: &Module,
    path: &Path,
    policy: &WeightsPolicy,
) -> Result<String, FileError> {
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
    write_weights(outputs, path, &tensors, HashMap::new())
}

/// Weights files in a folder, opened when they are first asked for.
struct WeightsFolder<'a> {
    cx: &'a Cx,
    folder: &'a Path,
    open: HashMap<String, Weights>,
    /// Those that were not as the text says. Reading one again for each of its weights would take long.
    refused: HashSet<String>,
}

impl LoadWeight for WeightsFolder<'_> {
    fn load(&mut self, file: Option<&WeightsFile>, key: &str) -> Result<Constant, Box<dyn Error>> {
        let file = file.ok_or("the text names no weights file; write `weights \"file\"` on top")?;
        if self.refused.contains(&file.name) {
            return Err(format!("`{}` is not used, as was said", file.name).into());
        }
        let weights = match self.open.contains_key(&file.name) {
            true => &self.open[&file.name],
            false => {
                let opened = self.open(file);
                let opened = opened.inspect_err(|_| _ = self.refused.insert(file.name.clone()))?;
                self.open.entry(file.name.clone()).or_insert(opened)
            }
        };
        let weight = weights.get(key)?;
        let dtype = from_safetensors(weight.dtype)
            .ok_or_else(|| format!("elements of type {} are not known", weight.dtype))?;
        let shape: Vec<i64> = weight.shape.iter().map(|&extent| extent as i64).collect();
        let ty = self.cx.static_tensor_type(dtype, &shape);
        Ok(Constant { ty, name: Symbol(0), data: weight.data.clone().into() })
    }
}

impl WeightsFolder<'_> {
    fn open(&self, file: &WeightsFile) -> Result<Weights, Box<dyn Error>> {
        let is_below = |part| matches!(part, Component::Normal(_) | Component::CurDir);
        if !Path::new(&file.name).components().all(is_below) {
            let name = &file.name;
            return Err(format!("`{name}` does not lie below the folder of the text").into());
        }
        let path = self.folder.join(&file.name);
        Ok(match &file.sha256 {
            Some(digest) => Weights::open_exact(&path, digest)?,
            None => Weights::open(&path)?,
        })
    }
}
