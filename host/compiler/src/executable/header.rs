//! The C header of a library or an object.
//!
//! It stands alone: the structures of DLPack are in it, unless the program has included `dlpack.h`.

mod weights;
mod words;

use std::collections::HashSet;
use std::fmt::Write;
use std::path::Path;

use self::words::{KEYWORDS, USED};
use crate::backend::FrontFunction;
use crate::ir::DType;
use crate::object::link::LinkForm;
use crate::runtime::{
    signature::{Extent, Signature, TensorSpec, data_type},
    status::Failure,
    weights::WeightsInfo,
};

/// What a header is of.
pub(super) struct Header<'a> {
    pub(super) prefix: &'a str,
    /// The library or the object.
    pub(super) path: &'a Path,
    pub(super) form: LinkForm,
    /// Its functions, with what each takes and gives.
    pub(super) functions: &'a [FrontFunction],
    pub(super) signatures: &'a [Signature],
    /// The file of its constants.
    pub(super) weights: Option<&'a WeightsInfo>,
}

impl Header<'_> {
    /// Its text.
    pub(super) fn text(&self) -> String {
        let Header { prefix, functions, signatures, .. } = self;
        let upper = prefix.to_ascii_uppercase();
        let mut text = self.top();
        let _ = write!(text, "#ifndef TENON_MODEL_{upper}_H\n#define TENON_MODEL_{upper}_H\n");
        text.push_str(INCLUDES);
        if self.weights.is_some() {
            text.push_str(weights::INCLUDES);
        }
        text.push_str(DLPACK);
        text.push_str(&runtime());
        text.push_str("\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n");
        text.push_str(&INFO.replace("PREFIX", prefix));
        if self.form == LinkForm::Library {
            text.push_str(SHARED);
        }
        if let Some(weights) = self.weights {
            text.push_str(&weights::functions(prefix, weights));
        }
        for (function, signature) in functions.iter().zip(*signatures) {
            if signatures.len() > 1 {
                let _ = writeln!(text, "\n/* @{} */", comment(&signature.function));
            }
            constants(&mut text, &function.prefix.to_ascii_uppercase(), signature);
            let (workspace, size) = match signature.workspace_size {
                Some(_) => (WORKSPACE, "PREFIX_workspace_size()"),
                None => ("", "PREFIX_sizes()"),
            };
            let in_place = in_place(signature);
            let run = RUN.replace("SIZE", size).replace("IN_PLACE", &in_place);
            let run_in = match signature.arena {
                true => RUN_IN.replace("TAKEN", &taken(signature)),
                false => String::new(),
            };
            for part in [SIZES, workspace, &run, &run_in] {
                let part = part.replace("PREFIX", &function.prefix);
                text.push_str(&part.replace("INTERFACE", &function.interface));
            }
            call(&mut text, &function.prefix, signature);
        }
        text.push_str("\n#ifdef __cplusplus\n}\n#endif\n\n");
        let _ = writeln!(text, "#endif /* TENON_MODEL_{upper}_H */");
        text
    }

    /// The comment on top: how to use it, inputs, outputs.
    fn top(&self) -> String {
        let signature = &self.signatures[0];
        let file = comment(&self.path.file_name().unwrap_or_default().to_string_lossy());
        // What the processor can do in detail stands in the library's info.
        let target = signature
            .target
            .split('/')
            .map(|target| comment(target.split(",features=").next().unwrap_or_default()));
        let target = target.collect::<Vec<String>>().join(",\n   or ");
        let place = match self.form {
            LinkForm::Library => " -Wl,-rpath,'$ORIGIN'",
            LinkForm::Object => "",
        };
        let mut text = format!(
            "/* {file}: a model compiled by Tenon {} for {}\n\n   cc main.c {file}{place}\n",
            comment(&signature.tenon),
            target
        );
        for (function, signature) in self.functions.iter().zip(self.signatures) {
            let Signature { function: name, inputs, outputs, .. } = signature;
            if self.signatures.len() > 1 {
                let _ = write!(text, "\n   {}_run: @{}\n", function.prefix, comment(name));
            }
            for (title, specs) in [("inputs", inputs), ("outputs", outputs)] {
                let _ = write!(text, "\n   {title}\n");
                for spec in specs {
                    let (name, shape) = (comment(&spec.name), comment(&spec.shape_text()));
                    let _ = writeln!(text, "     {name} {}{shape}", spec.dtype);
                }
            }
        }
        text.push_str("*/\n");
        text
    }
}

const INCLUDES: &str = "
#include <stdint.h>
#include <stdlib.h>
";

/// The same structures, under the same names, as in `dlpack.h` 1.x.
const DLPACK: &str = "
/* DLPack's tensors. A program that needs more of DLPack includes its header before this one. */
#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_
typedef enum { kDLCPU = 1 } DLDeviceType;
typedef struct { DLDeviceType device_type; int32_t device_id; } DLDevice;
typedef enum { kDLInt = 0U, kDLUInt = 1U, kDLFloat = 2U, kDLBfloat = 4U, kDLBool = 6U } DLDataTypeCode;
typedef struct { uint8_t code; uint8_t bits; uint16_t lanes; } DLDataType;
typedef struct {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides; /* in elements; NULL for contiguous and row-major */
  uint64_t byte_offset;
} DLTensor;
#endif
";

/// What all models share.
fn runtime() -> String {
    let mut text = String::from(
        "
#ifndef TENON_RUNTIME_H
#define TENON_RUNTIME_H

/* Threads to run parallel loops on. parallel_for calls task on pieces that together are begin..end,
   each once, and returns when all are done: 0, or what the first failing piece returned. */
typedef int (*tenon_task)(void *data, int64_t begin, int64_t end);
struct tenon_parallel {
  void *pool;
  int32_t threads;
  int (*parallel_for)(void *pool, tenon_task task, void *data, int64_t begin, int64_t end);
};

/* Memory for functions that take some while they run, since nobody knows before how much it is. take gives as many bytes on a
   boundary of 64, or NULL: then the function ends with TENON_ERROR_LIMIT. give_back gets what take gave. Both are called on the
   thread of the caller's. A function gives back all that it has taken, however it ends, but for outputs, which it leaves to the
   caller if it ends well. */
struct tenon_arena {
  void *context;
  void *(*take)(void *context, uint64_t bytes);
  void (*give_back)(void *context, void *memory);
};

/* What a model returns: 0, or one of these, plus 256 times the number of the argument it is about:
   1 for the first input, and so on through the inputs and then the outputs. Of TENON_ERROR_EXTENTS and
   TENON_ERROR_EXPECTED it is the number of the check, 1 for the first of `checks` in the metadata. */
enum {
  TENON_OK = 0,
",
    );
    for &failure in Failure::ALL {
        let (name, code) = (failure.c_name(), failure as u8);
        let _ = writeln!(text, "  {name} = {code}, /* {} */", failure.text());
    }
    text.push_str(
        "  TENON_ERROR_MEMORY = 64 /* no memory for the workspace */
};
#define TENON_ERROR(status) ((status) & 0xff)
#define TENON_ERROR_ARGUMENT(status) ((status) >> 8)

/* A function of a library: its name in the module, and what is called. */
struct tenon_function {
  const char *name;
  int32_t (*run)(const DLTensor *inputs, DLTensor *outputs, void *workspace,
                 const struct tenon_parallel *parallel);
  int32_t (*sizes)(const DLTensor *inputs, int64_t *extents, uint64_t *workspace);
  int32_t (*run_until)(const DLTensor *inputs, DLTensor *outputs, void *workspace,
                       const struct tenon_parallel *parallel, const volatile uint8_t *cancelled);
};

/* A function that takes memory while it runs. */
typedef int32_t (*tenon_run_in)(const DLTensor *inputs, DLTensor *outputs, void *workspace,
                                const struct tenon_parallel *parallel, const volatile uint8_t *cancelled,
                                const struct tenon_arena *arena);

/* The code of a library for a processor. Whoever calls it knows that the machine can run it. */
struct tenon_processor {
  const char *target; /* what it is for */
  const struct tenon_function *functions; /* the functions of the library, made for it */
};

/* What tenon_library_info() of every library points to. */
struct tenon_library {
  uint32_t version; /* 3, 4 of a library that not every processor runs, 5 of one with a file, 6 of one in which a function takes memory
                       while it runs; `sizes` is there since version 2, `count` and `functions` since version 3 */
  uint32_t count; /* how many functions there are; 0 before version 3 */
  const char *info; /* functions with their inputs and outputs as JSON */
  /* the function that is meant where nobody names one; NULL in a library of several without a `main` */
  int32_t (*run)(const DLTensor *inputs, DLTensor *outputs, void *workspace,
                 const struct tenon_parallel *parallel);
  int32_t (*sizes)(const DLTensor *inputs, int64_t *extents, uint64_t *workspace);
  const struct tenon_function *functions; /* that one first */
  /* Since version 4: all functions above run what is best of these on this machine, and are TENON_ERROR_PROCESSOR where it can
     run none of them. The best comes first. */
  const struct tenon_processor *processors;
  uint64_t (*runnable)(void); /* a bit for each that this machine can run, the lowest of the first */
  uint64_t processor_count;
  /* Since version 5, of a library whose constants lie in a file: its name, its size, what takes it, what says where it is.
     Here `processors` may be NULL, and is of none. */
  const char *weights_file;
  uint64_t weights_bytes;
  int32_t (*set_weights)(const void *data, uint64_t bytes);
  const void *(*weights)(void);
  /* Since version 6: each function with an arena, NULL for one that takes no memory; behind these the same for each processor. */
  const tenon_run_in *run_in;
};
#endif
",
    );
    text
}

/// What is said of inputs that are updated in place.
fn in_place(signature: &Signature) -> String {
    let pairs = signature.in_place.iter().map(|[input, output]| {
        let name = comment(&signature.inputs[*input].name);
        let grows = signature.grows.iter().find(|it| it[..2] == [*input, *output]);
        let along = grows.map_or(String::new(), |it| {
            format!("\n   It becomes longer along axis {}, for which strides of both leave room.", it[2])
        });
        format!("\n   One buffer may be inputs[{input}], {name}, and outputs[{output}]: it is updated in place.{along}")
    });
    let mut text: String = pairs.collect();
    if !text.is_empty() {
        text.push_str("\n  ");
    }
    text
}

/// Shapes and types as macros.
fn constants(text: &mut String, upper: &str, signature: &Signature) {
    let _ = writeln!(text, "\n#define {upper}_NUM_INPUTS {}", signature.inputs.len());
    let _ = writeln!(text, "#define {upper}_NUM_OUTPUTS {}", signature.outputs.len());
    if let Some(most) = signature.most_workspace {
        let _ = writeln!(text, "/* Bytes of the workspace for the largest inputs. */");
        let _ = writeln!(text, "#define {upper}_MOST_WORKSPACE UINT64_C({most})");
    }
    for (kind, specs) in [("INPUT", &signature.inputs), ("OUTPUT", &signature.outputs)] {
        for (index, spec) in specs.iter().enumerate() {
            let name = format!("{upper}_{kind}{index}");
            let _ = writeln!(text, "\n#define {name}_NAME {}", c_string(&spec.name));
            let _ = writeln!(text, "#define {name}_NDIM {}", spec.shape.len());
            if let Some(extents) = spec.static_shape() {
                let shape: Vec<String> = extents.iter().map(i64::to_string).collect();
                let shape = if shape.is_empty() { "0".to_owned() } else { shape.join(", ") };
                let _ = writeln!(text, "#define {name}_SHAPE {{{shape}}}");
                let _ =
                    writeln!(text, "#define {name}_ELEMENTS {}", extents.iter().product::<i64>());
            }
            let _ = writeln!(text, "#define {name}_DTYPE {{{}}}", dtype_fields(spec));
        }
    }
}

const SIZES: &str = "
/* How large what PREFIX_run needs is, for inputs of these shapes: the extents of all outputs, one after the other, are
   written to extents, and the bytes of the workspace to workspace; either may be NULL. The elements of the inputs are not
   looked at. An extent that depends on elements is as large as it may be, or -1 where nobody knows; PREFIX_run writes what it is to
   the output's shape. */
int32_t PREFIX_sizes(const DLTensor *inputs, int64_t *extents, uint64_t *workspace);
";

const WORKSPACE: &str = "
/* Bytes of the workspace that PREFIX_run needs. */
uint64_t PREFIX_workspace_size(void);
";

const INFO: &str = "
/* Functions with their inputs and outputs as JSON. */
const char *PREFIX_info(void);
";

const SHARED: &str = "
/* The same and more under a name that all libraries share. */
const struct tenon_library *tenon_library_info(void);
";

const RUN: &str = "
/* Runs it. inputs and outputs are arrays of tensors, in the order above, contiguous and
   row-major; outputs are written, and must not overlap anything else.IN_PLACE workspace is as large as
   SIZE says and is aligned to 64; it may be NULL when that is 0. parallel may
   be NULL: then the calling thread does it all. Several threads may call this at once, with a
   workspace each. The symbol says what inputs and outputs are: with other ones than those above
   nothing links. PREFIX_run is the same function without that, for those who look it up. */
int32_t PREFIX_run(const DLTensor *inputs, DLTensor *outputs, void *workspace,
                   const struct tenon_parallel *parallel) __asm__(\"PREFIX_run_INTERFACE\");

/* The same until *cancelled is not 0, which another thread may set: then it ends before its next program with
   TENON_ERROR_CANCELLED, and outputs hold what had been written. */
int32_t PREFIX_run_until(const DLTensor *inputs, DLTensor *outputs, void *workspace,
                         const struct tenon_parallel *parallel, const volatile uint8_t *cancelled);
";

const RUN_IN: &str = "
/* The same with an arena, from which it takes memory while it runs; without one, as PREFIX_run is, it is TENON_ERROR_LIMIT.
   cancelled may be NULL.TAKEN */
int32_t PREFIX_run_in(const DLTensor *inputs, DLTensor *outputs, void *workspace,
                      const struct tenon_parallel *parallel, const volatile uint8_t *cancelled,
                      const struct tenon_arena *arena);
";

/// What is said of outputs that are taken.
fn taken(signature: &Signature) -> String {
    let each = signature.taken.iter().map(|&output| {
        let name = comment(&signature.outputs[output].name);
        format!("\n   outputs[{output}], {name}, is taken from it: data, strides and shape are written, and give_back is the caller's.")
    });
    each.collect()
}

/// A function on plain arrays that brings its own workspace. Symbols come first among its parameters; where an input has
/// an extent that is computed from symbols, or an output one that depends on elements, C has no such function.
fn call(text: &mut String, prefix: &str, signature: &Signature) {
    if !signature.found.is_empty() || signature.arena {
        return;
    }
    let mut taken: HashSet<String> = KEYWORDS.iter().chain(USED).map(|&it| it.to_owned()).collect();
    let given = signature.inputs.iter().chain(&signature.outputs);
    let symbols = given.clone().flat_map(|spec| &spec.shape).map(Extent::to_string);
    let given = given.map(|spec| spec.name.clone()).chain(symbols).map(|name| identifier(&name));
    let of_header = ["tenon_", "TENON_", "DL", "kDL", &format!("{prefix}_")];
    taken.extend(given.filter(|name| of_header.iter().any(|start| name.starts_with(start))));
    let mut params = Vec::new();
    let Some(symbols) = Symbols::of(&signature.inputs, &mut taken) else { return };
    params.extend(symbols.names.iter().map(|(_, name)| format!("int64_t {name}")));
    let [inputs, outputs] =
        [(&signature.inputs, true), (&signature.outputs, false)].map(|(specs, is_input)| {
            let names = specs.iter().map(|spec| {
                let name = fresh(&mut taken, &identifier(&spec.name));
                let constness = if is_input { "const " } else { "" };
                params.push(format!("{constness}{} *{name}", c_type(spec.dtype)));
                name
            });
            names.collect::<Vec<String>>()
        });
    let list = if params.is_empty() { "void".to_owned() } else { params.join(", ") };
    let _ = write!(
        text,
        "\n/* Runs the model once on arrays, on the calling thread: allocates the workspace and frees it. */\n\
         static inline int32_t {prefix}_call({list}) {{\n"
    );
    for (index, (name, spec)) in inputs.iter().zip(&signature.inputs).enumerate() {
        let extents: Vec<String> = spec.shape.iter().map(|extent| symbols.c_text(extent)).collect();
        tensor(text, &format!("tenon_input{index}"), name, spec, &extents);
    }
    tensors(text, "input", signature.inputs.len());
    let count: usize = signature.outputs.iter().map(|spec| spec.shape.len()).sum();
    let _ = write!(
        text,
        "  int64_t tenon_extents[{}];
  uint64_t tenon_size = 0;
  int32_t tenon_status = {prefix}_sizes(tenon_inputs, tenon_extents, &tenon_size);
  if (tenon_status) return tenon_status;
",
        count.max(1)
    );
    let mut first = 0;
    for (index, (name, spec)) in outputs.iter().zip(&signature.outputs).enumerate() {
        let extents = (first..).take(spec.shape.len()).map(|at| format!("tenon_extents[{at}]"));
        tensor(text, &format!("tenon_output{index}"), name, spec, &extents.collect::<Vec<_>>());
        first += spec.shape.len();
    }
    tensors(text, "output", signature.outputs.len());
    let _ = write!(
        text,
        "  char *tenon_block = (char *)malloc(tenon_size + 64);
  if (!tenon_block) return TENON_ERROR_MEMORY;
  char *tenon_workspace = tenon_block + (64 - (uintptr_t)tenon_block % 64);
  tenon_status = {prefix}_run(tenon_inputs, tenon_outputs, tenon_workspace, NULL);
  free(tenon_block);
  return tenon_status;
}}
"
    );
}

/// The symbols of inputs, with their names in C.
struct Symbols<'s> {
    names: Vec<(&'s str, String)>,
}

impl<'s> Symbols<'s> {
    /// `None` where an extent is no symbol but computed from some.
    fn of(inputs: &'s [TensorSpec], taken: &mut HashSet<String>) -> Option<Self> {
        let mut names: Vec<(&str, String)> = Vec::new();
        for extent in inputs.iter().flat_map(|spec| &spec.shape) {
            let Extent::Symbolic(symbol) = extent else { continue };
            if !extent.is_symbol() {
                return None;
            }
            if !names.iter().any(|(known, _)| known == symbol) {
                names.push((symbol, fresh(taken, &identifier(symbol))));
            }
        }
        Some(Symbols { names })
    }

    fn c_text(&self, extent: &Extent) -> String {
        let Extent::Symbolic(symbol) = extent else { return extent.to_string() };
        let named = self.names.iter().find(|(known, _)| known == symbol);
        named.map_or_else(String::new, |(_, name)| name.clone())
    }
}

/// The array of `count` tensors.
fn tensors(text: &mut String, kind: &str, count: usize) {
    let tensors: Vec<String> = (0..count).map(|index| format!("tenon_{kind}{index}")).collect();
    let _ = match tensors.as_slice() {
        [] => writeln!(text, "  DLTensor *tenon_{kind}s = NULL;"),
        tensors => {
            let tensors = tensors.join(", ");
            writeln!(text, "  DLTensor tenon_{kind}s[{count}] = {{{tensors}}};")
        }
    };
}

/// A `DLTensor` of the array `data`.
fn tensor(text: &mut String, name: &str, data: &str, spec: &TensorSpec, extents: &[String]) {
    let shape = match extents {
        [] => "NULL".to_owned(),
        extents => {
            let (count, extents) = (extents.len(), extents.join(", "));
            let _ = writeln!(text, "  int64_t {name}_shape[{count}] = {{{extents}}};");
            format!("{name}_shape")
        }
    };
    let _ = writeln!(
        text,
        "  DLTensor {name} = {{(void *){data}, {{kDLCPU, 0}}, {}, {{{}}}, {shape}, NULL, 0}};",
        spec.shape.len(),
        dtype_fields(spec)
    );
}

fn dtype_fields(spec: &TensorSpec) -> String {
    match data_type(spec.dtype) {
        Some(dtype) => format!("{}, {}, {}", dtype.code, dtype.bits, dtype.lanes),
        None => "0, 0, 0".to_owned(),
    }
}

/// What holds an element in C. 16-bit floats are held as their bits.
fn c_type(dtype: DType) -> &'static str {
    match dtype {
        DType::F64 => "double",
        DType::F32 => "float",
        DType::F16 | DType::BF16 | DType::U16 => "uint16_t",
        DType::I8 => "int8_t",
        DType::I16 => "int16_t",
        DType::I32 => "int32_t",
        DType::I64 => "int64_t",
        DType::U32 => "uint32_t",
        DType::U64 => "uint64_t",
        _ => "uint8_t",
    }
}

/// `name` with everything but letters, digits and underscores replaced; never empty.
pub(super) fn identifier(name: &str) -> String {
    let plain: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if plain.is_empty() { "model".to_owned() } else { plain }
}

/// A name that is not taken, and is from now on.
fn fresh(taken: &mut HashSet<String>, name: &str) -> String {
    let begins_well = !name.starts_with(|c: char| c.is_ascii_digit() || c == '_');
    let name = if begins_well { name.to_owned() } else { format!("t{name}") };
    let candidates = std::iter::once(name.clone());
    let numbered = (2u64..).map(|number| format!("{name}_{number}"));
    let free = candidates.chain(numbered).find(|name| taken.insert(name.clone()));
    free.unwrap_or(name)
}

/// Text that cannot end a comment.
pub(super) fn comment(text: &str) -> String {
    text.replace("*/", "* /").replace(['\n', '\r'], " ")
}

/// A C string literal; what is not plain ASCII in octal, so that nothing after it is swallowed.
pub(super) fn c_string(text: &str) -> String {
    let escaped: String = text
        .bytes()
        .map(|byte| match byte {
            b'"' | b'\\' | b'?' => format!("\\{}", char::from(byte)),
            0x20..0x7f => char::from(byte).to_string(),
            byte => format!("\\{byte:03o}"),
        })
        .collect();
    format!("\"{escaped}\"")
}
