//! Files to files: what was compiled before comes out of a cache.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::options::TUNE_DB;
use super::{Dims, Observer, Options, Pipeline, Session, SessionError, Watch};
use crate::cache::{Cache, Key, KeyBuilder, Lookup};
use crate::executable::{CompileOptions, ExportOptions, LinkForm, header_path};
use crate::io::{FileError, InputFiles, Mode, Outputs, is_stream};
use crate::passes::{Step, StepOption};
use crate::registry::OptionValue;
use crate::runtime::weights;
use crate::target::Targets;

/// The names of an entry's files.
const BINARY: &str = "binary";
const HEADER: &str = "header";
const WEIGHTS: &str = "weights";

/// A file that is compiled to a library or an object.
#[derive(Clone, Copy, Debug)]
pub struct FileJob<'a> {
    /// An `.onnx` model or a module's text.
    pub model: &'a Path,
    /// Values of its dimensions.
    pub dims: &'a Dims,
    /// What code is made for: a target, or several processors.
    pub targets: &'a Targets,
    /// Where the result goes; the header is beside it.
    pub output: &'a Path,
    /// What it is.
    pub form: LinkForm,
    /// What the names in C begin with; see [`Executable::export`](crate::executable::Executable::export).
    pub prefix: Option<&'a str>,
    /// The file that the constants go into; where none is named, the result holds them.
    pub weights: Option<&'a Path>,
}

impl<'a> FileJob<'a> {
    /// How the executable of the model is written.
    pub fn export_options(&self) -> ExportOptions<'a> {
        ExportOptions { form: self.form, prefix: self.prefix, weights: self.weights }
    }
}

/// What a cache did for a job.
#[derive(Debug)]
pub enum Cached {
    /// The result is written.
    Written,
    /// It has to be compiled, and may be kept then.
    Missing(Option<CachePlace>),
}

/// Where a result can be kept.
#[derive(Debug)]
pub struct CachePlace {
    cache: Cache,
    key: Key,
}

impl Session {
    /// Compiles a file and writes a library, or an object, and its header; or takes them out of the cache of the options.
    ///
    /// # Errors
    /// What reading, the passes, the code generator or the linker refuse. That a result cannot be kept is a warning.
    pub fn compile_file(
        &self,
        job: &FileJob<'_>,
        options: &Options,
        watch: &mut Watch<'_>,
    ) -> Result<(), SessionError> {
        let place = match self.fetch(job, options, &mut *watch.observer)? {
            Cached::Written => return Ok(()),
            Cached::Missing(place) => place,
        };
        let model = self.read(job.model, job.dims)?;
        let executable = self.compile_watched(&model, job.targets, options, watch)?;
        let outputs = Outputs::sparing(model.files.clone());
        let written = executable.export_with(job.output, &job.export_options(), outputs);
        written.map_err(|error| self.no_code(error))?;
        if let Some(place) = place {
            place.keep(job, &model.files, &mut *watch.observer);
        }
        Ok(())
    }

    /// Writes the result of a job if the cache of the options has it.
    ///
    /// # Errors
    /// When the folder is no cache, or the result cannot be written.
    pub fn fetch(
        &self,
        job: &FileJob<'_>,
        options: &Options,
        observer: &mut dyn Observer,
    ) -> Result<Cached, SessionError> {
        let Some(folder) = options.cache.as_ref().filter(|_| !is_stream(job.output)) else {
            return Ok(Cached::Missing(None));
        };
        let cache = Cache::open(folder)?;
        let Some(key) = self.key(&cache, job, options)? else { return Ok(Cached::Missing(None)) };
        match cache.find(&key) {
            Lookup::Found(mut kept)
                if kept.has(BINARY)
                    && kept.has(HEADER)
                    && kept.has(WEIGHTS) == job.weights.is_some() =>
            {
                let mut write = |name, place: &Path| -> Result<(), FileError> {
                    let failed = |cause| FileError::Write { path: job.output.to_owned(), cause };
                    kept.write(name, place).map(drop).map_err(failed)
                };
                let mut outputs = Outputs::sparing(InputFiles::new([job.model.to_owned()]));
                if let Some(weights) = job.weights {
                    outputs.make(weights, Mode::Data, |place| write(WEIGHTS, place))?;
                    if let Some(digest) = weights::digest_of(outputs.last().unwrap_or(weights)) {
                        outputs.named_by_digest(&digest);
                    }
                }
                if let Some(header) = header_path(job.output) {
                    outputs.make(&header, Mode::Data, |place| write(HEADER, place))?;
                }
                outputs.make(job.output, job.form.mode(), |place| write(BINARY, place))?;
                outputs.publish()?;
                return Ok(Cached::Written);
            }
            Lookup::Damaged(why) => {
                observer.warns(&format!("what the cache had is made anew: {why}"));
            }
            Lookup::Found(_) | Lookup::Missing => {}
        }
        Ok(Cached::Missing(Some(CachePlace { cache, key })))
    }

    /// What a result follows from; none where it follows from what has no name, or more is asked for than the result.
    fn key(
        &self,
        cache: &Cache,
        job: &FileJob<'_>,
        options: &Options,
    ) -> Result<Option<Key>, SessionError> {
        // All are named, so that none that is new is forgotten.
        let Options {
            pipeline,
            opt_level,
            config,
            // It is an option of passes.
            tune_db: _,
            measures: _,
            weights,
            precision,
            explain_schedules,
            disabled,
            required,
            instruments,
            verify_each: _,
            validate,
            pass_limit,
            reproducer: _,
            cache: _,
            code: CompileOptions { function, ranges, threads: _, is_profiled, linker: _, link },
        } = options;
        let pipeline = match pipeline {
            Pipeline::Pass(_) => return Ok(None),
            Pipeline::Auto => "auto",
            Pipeline::None => "none",
            // What a pass of the program's own does has no text.
            Pipeline::Text(_) if !self.own.is_empty() => return Ok(None),
            Pipeline::Text(text) => text,
        };
        if validate.is_some() || *explain_schedules || !instruments.is_empty() || *is_profiled {
            return Ok(None);
        }
        let mut key = KeyBuilder::default();
        key.text("program", &program()?);
        key.text("registry", &format!("{:?}", self.registry.config()));
        key.text("targets", &job.targets.to_string());
        key.text("pipeline", pipeline);
        key.text("limit", &format!("{pass_limit:?} {opt_level}"));
        for (name, values) in [("config", config), ("disabled", disabled), ("required", required)] {
            key.text(name, &format!("{values:?}"));
        }
        key.text("numbers", &format!("{weights:?} {precision:?}"));
        key.text("function", &format!("{function:?}"));
        key.text("ranges", &format!("{ranges:?}"));
        let dims: BTreeMap<_, _> = job.dims.iter().collect();
        key.text("dims", &format!("{dims:?}"));
        key.text("form", &format!("{:?} {:?}", job.form, job.prefix));
        key.text("weights", &format!("{:?}", job.weights.map(Path::file_name)));
        // It stands in the library, and in the header.
        key.text("output", &format!("{:?}", job.output.file_name()));
        // Texts name the file that they were read from.
        key.text("path", &job.model.display().to_string());
        let databases = self.databases(options)?;
        if databases.iter().any(|path| !path.exists()) {
            return Ok(None);
        }
        let mut files = vec![("model", job.model)];
        files.extend(databases.iter().map(|path| ("tune_db", path.as_path())));
        key.text("link", &format!("{link:?}"));
        files.extend(link.iter().map(|path| ("link", path.as_path())));
        files.extend(self.registry.plugins.iter().map(|plugin| ("plugin", plugin.path.as_path())));
        for (name, path) in &files[1..] {
            key.text(name, &path.display().to_string());
        }
        key.files(cache, &files)?;
        Ok(Some(key.finish()))
    }
}

impl Session {
    /// The tuning databases that passes are told of.
    fn databases(&self, options: &Options) -> Result<Vec<PathBuf>, SessionError> {
        let plan = self.plan(options)?;
        let passes = plan.steps.iter().filter_map(|step| match step {
            Step::Pass(step) => Some(step),
            _ => None,
        });
        let named = passes.flat_map(|step| &step.options).filter(|option| option.name == TUNE_DB);
        let path = |option: &StepOption| match &option.value {
            OptionValue::Str(path) if !path.is_empty() => Some(PathBuf::from(path)),
            _ => None,
        };
        Ok(named.filter_map(path).collect())
    }
}

impl CachePlace {
    /// Keeps what was written for a job that has read `files`. That it cannot be kept is told, and no more.
    pub fn keep(&self, job: &FileJob<'_>, files: &InputFiles, observer: &mut dyn Observer) {
        let others: Vec<PathBuf> =
            files.paths().filter(|path| *path != job.model).map(Path::to_owned).collect();
        let Some(header) = header_path(job.output) else { return };
        let mut files = vec![(BINARY, job.output), (HEADER, &header)];
        files.extend(job.weights.map(|path| (WEIGHTS, path)));
        if let Err(error) = self.cache.keep(&self.key, &others, &files) {
            observer.warns(&format!("the result is not kept: {error}"));
        }
    }
}

/// What this program is: the files that its code and that of LLVM were loaded from.
fn program() -> Result<String, FileError> {
    let path = Path::new("/proc/self/maps");
    let failed = |cause| FileError::Read { path: path.to_owned(), cause };
    let maps = fs::read_to_string(path).map_err(failed)?;
    let own = program as fn() -> Result<String, FileError> as usize;
    let mut text = env!("CARGO_PKG_VERSION").to_owned();
    let mut last = "";
    for line in maps.lines() {
        let Some((range, rest)) = line.split_once(' ') else { continue };
        let Some(file) = rest.find('/').map(|at| &rest[at..]) else { continue };
        let bounds = range.split_once('-').and_then(|(begin, end)| {
            let number = |text| usize::from_str_radix(text, 16).ok();
            Some(number(begin)?..number(end)?)
        });
        let has_code = bounds.is_some_and(|bounds| bounds.contains(&own));
        if file != last && (has_code || file.contains("libLLVM")) {
            last = file;
            let it = fs::metadata(file).map_err(failed)?;
            let (size, time) =
                (it.size(), (it.mtime(), it.mtime_nsec(), it.ctime(), it.ctime_nsec()));
            text.push_str(&format!("\n{file} {} {} {size} {time:?}", it.dev(), it.ino()));
        }
    }
    Ok(text)
}
