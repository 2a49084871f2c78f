//! What a compiled function takes and gives: the metadata of a library.
//!
//! ```json
//! { "tenon": "1.0.0", "function": "main", "target": "x86_64-…", "workspace_size": 4096,
//!   "inputs": [{ "name": "x", "dtype": "f32", "shape": [1, 3, 224, 224] }], "outputs": […] }
//! ```
//!
//! An extent that each call may choose is a text, `"n"` or `"2*n + 1"`. Where there is one, the size of the workspace is
//! null, and the function that tells sizes says it for inputs of given shapes. `"found": [[0, 1]]` says that the extent of axis 1 of
//! output 0 depends on elements: a caller is told how large it is at most, and what it is when the call has been made.
//! `"ranges": { "n": [1, 512] }` are those that it was compiled for, and `"most_workspace"` is what the workspace is at most then.
//! An extent of an output in the list `"taken": [0]` may be anything: the function takes the memory for it. `"arena": true` says that
//! it takes memory while it runs.
//! `"in_place": [[3, 0]]` says that one buffer may be given as input 3 and as output 0, and is updated then. With
//! `"grows": [[3, 0, 2]]` it becomes longer along axis 2. `"checks": ["`n` must be `m`, for …"]` are the conditions whose numbers,
//! from 1 on, a status of `TENON_ERROR_EXTENTS` or `TENON_ERROR_EXPECTED` has in its upper bits.
//!
//! A library of several functions has all of them in a list besides, and where none of them is meant when nobody names one,
//! nothing but the list:
//!
//! ```json
//! { "tenon": "1.0.0", "function": "main", …, "functions": [{ "function": "main", … }, { "function": "decode", … }] }
//! ```
//!
//! `"processors": [{ "target": "x86_64-…", "features": ["avx2", …] }]` are those that it has code for, where not every one runs it.
//! `"weights": { "file": "m.weights", "bytes": 4096, "digest": "…" }` is the file beside it that has the constants, where it has not.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::dlpack::DataType;
use super::weights::WeightsInfo;
use tenon_plugin_api::ir::DType;

/// Inputs, outputs and memory of a compiled function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// The version of Tenon that compiled it.
    pub tenon: String,
    /// The name of the function in its module.
    #[serde(default)]
    pub function: String,
    /// What its names in C begin with; empty where it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub symbol: String,
    /// What it was compiled for; several processors with a `/` between, the best first. Of a library that is open, what runs.
    pub target: String,
    /// Bytes of the workspace, which must be aligned to 64; `None` where they depend on the shapes of the inputs.
    pub workspace_size: Option<u64>,
    /// What they are at most, where they depend on shapes of which ranges are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_workspace: Option<u64>,
    /// Ranges of symbols that calls must keep; null where there is no end.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ranges: BTreeMap<String, (i64, Option<i64>)>,
    pub inputs: Vec<TensorSpec>,
    pub outputs: Vec<TensorSpec>,
    /// The extents that a call finds, each by its output and axis.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub found: Vec<[usize; 2]>,
    /// Whether it takes memory while it runs, from an arena of the caller's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub arena: bool,
    /// The outputs whose memory it takes there, since nobody knows before how large they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken: Vec<usize>,
    /// Inputs that a call updates in place if it is given the same buffer as the output beside each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_place: Vec<[usize; 2]>,
    /// Of these the ones that become longer: the input, the output, the axis along which strides may leave room.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grows: Vec<[usize; 3]>,
    /// What calls are checked for beyond their arguments, a text each: a status says by the number which one failed. All functions
    /// of a library have the same, which is written once.
    #[serde(skip)]
    pub checks: Arc<[String]>,
}

/// What a library says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryInfo {
    /// Its functions, at least one.
    pub functions: Vec<Signature>,
    /// Whether the first of them is the one that is meant where nobody names one.
    pub has_default: bool,
    /// The processors that it has code for, the best first; none where any of the architecture runs it.
    pub processors: Vec<ProcessorInfo>,
    /// The file beside it that has its constants, where it has not.
    pub weights: Option<WeightsInfo>,
}

/// A processor that a library has code for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessorInfo {
    /// Its target.
    pub target: String,
    /// What it has to have, by the names that compilers have for it.
    pub features: Vec<String>,
}

/// How it is written.
#[derive(Serialize, Deserialize)]
struct Written<S> {
    #[serde(flatten)]
    default: Option<S>,
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    functions: Vec<S>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    processors: Vec<ProcessorInfo>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    weights: Option<WeightsInfo>,
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    checks: Vec<String>,
}

impl LibraryInfo {
    /// What calls are checked for, a text each: those of each of its functions.
    pub fn checks(&self) -> &[String] {
        self.functions.first().map_or(&[], |first| &first.checks)
    }

    /// It as JSON.
    pub fn to_json(&self) -> serde_json::Result<String> {
        let default = self.functions.first().filter(|_| self.has_default);
        let is_alone = self.has_default && self.functions.len() == 1;
        let functions = if is_alone { Vec::new() } else { self.functions.iter().collect() };
        let processors = self.processors.clone();
        let weights = self.weights.clone();
        let checks = self.checks().to_vec();
        serde_json::to_string(&Written { default, functions, processors, weights, checks })
    }

    /// What is written there.
    pub fn from_json(text: &[u8]) -> serde_json::Result<LibraryInfo> {
        let Written { default, mut functions, processors, weights, checks } =
            serde_json::from_slice::<Written<Signature>>(text)?;
        let mut has_default = default.is_some();
        if functions.is_empty() {
            // What is wrong with it says the error.
            functions.push(serde_json::from_slice(text)?);
            has_default = true;
        }
        let checks: Arc<[String]> = checks.into();
        functions.iter_mut().for_each(|function| function.checks = Arc::clone(&checks));
        Ok(LibraryInfo { functions, has_default, processors, weights })
    }
}

/// Name, element type and shape of an argument.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TensorSpec {
    pub name: String,
    #[serde(with = "dtype_name")]
    pub dtype: DType,
    pub shape: Vec<Extent>,
}

/// The extent of an axis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Extent {
    Known(i64),
    /// A symbol, or an expression of symbols, as the IR writes it. The same symbol means the same extent in all tensors of
    /// a call.
    Symbolic(String),
}

impl Extent {
    /// The number, where it is one.
    pub fn known(&self) -> Option<i64> {
        match self {
            Extent::Known(extent) => Some(*extent),
            Extent::Symbolic(_) => None,
        }
    }
}

impl Extent {
    /// Whether it is a symbol alone.
    pub fn is_symbol(&self) -> bool {
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        matches!(self, Extent::Symbolic(text) if !text.starts_with(|c: char| c.is_ascii_digit())
            && text.chars().all(is_part))
    }
}

impl std::fmt::Display for Extent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Extent::Known(extent) => write!(f, "{extent}"),
            Extent::Symbolic(text) => f.write_str(text),
        }
    }
}

impl TensorSpec {
    /// Whether all extents are known.
    pub fn is_static(&self) -> bool {
        self.shape.iter().all(|extent| extent.known().is_some())
    }

    /// The extents, where all are known.
    pub fn static_shape(&self) -> Option<Vec<i64>> {
        self.shape.iter().map(Extent::known).collect()
    }

    /// Bytes of the elements, where all extents are known.
    pub fn bytes(&self) -> Option<u64> {
        let count = self.static_shape()?.iter().map(|&extent| extent as u64).product();
        self.dtype.bytes(count)
    }

    /// The extents as a list.
    pub fn shape_text(&self) -> String {
        let extents: Vec<String> = self.shape.iter().map(Extent::to_string).collect();
        format!("[{}]", extents.join(", "))
    }

    /// Whether a shape may be that of the tensor, as far as known extents say.
    pub fn takes(&self, shape: &[i64]) -> bool {
        let fits = |(expected, &found): (&Extent, &i64)| {
            expected.known().is_none_or(|expected| expected == found)
        };
        self.shape.len() == shape.len() && self.shape.iter().zip(shape).all(fits)
    }
}

impl std::fmt::Display for TensorSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}`: {}{}", self.name, self.dtype, self.shape_text())
    }
}

/// The dtype as DLPack says it; `None` for one that DLPack cannot say.
pub fn data_type(dtype: DType) -> Option<DataType> {
    let code = match dtype {
        DType::BOOL => DataType::BOOL,
        DType::BF16 => DataType::BFLOAT,
        DType::F16 | DType::F32 | DType::F64 => DataType::FLOAT,
        DType::F8E4M3 => DataType::FLOAT8_E4M3FN,
        DType::F8E4M3FNUZ => DataType::FLOAT8_E4M3FNUZ,
        DType::F8E5M2 => DataType::FLOAT8_E5M2,
        DType::F8E5M2FNUZ => DataType::FLOAT8_E5M2FNUZ,
        DType::F8E8M0 => DataType::FLOAT8_E8M0FNU,
        DType::F4E2M1 => DataType::FLOAT4_E2M1FN,
        _ if dtype.is_signed() => DataType::INT,
        _ if dtype.is_int() => DataType::UINT,
        _ => return None,
    };
    Some(DataType::new(code, dtype.bits() as u8))
}

mod dtype_name {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use tenon_plugin_api::ir::DType;

    pub(super) fn serialize<S: Serializer>(dtype: &DType, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(dtype)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<DType, D::Error> {
        let name = String::deserialize(from)?;
        DType::from_name(&name).ok_or_else(|| D::Error::custom(format!("no dtype `{name}`")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_back() {
        let shape = vec![Extent::Known(2), Extent::Symbolic("2*n".to_owned())];
        let x = TensorSpec { name: "x".to_owned(), dtype: DType::BF16, shape };
        let signature = Signature {
            tenon: "1.0.0".to_owned(),
            function: "main".to_owned(),
            symbol: String::new(),
            target: "here".to_owned(),
            workspace_size: None,
            most_workspace: None,
            ranges: BTreeMap::new(),
            inputs: vec![x.clone()],
            outputs: vec![],
            found: vec![],
            checks: Arc::default(),
            arena: false,
            taken: vec![],
            in_place: vec![],
            grows: vec![],
        };
        let text = serde_json::to_string(&signature).unwrap();
        assert!(text.contains(r#""dtype":"bf16","shape":[2,"2*n"]"#), "{text}");
        assert_eq!(serde_json::from_str::<Signature>(&text).unwrap(), signature);
        let checks: Arc<[String]> = ["`n` must be `m`, for y".to_owned()].into();
        let signature = Signature { checks, ..signature };
        let other = Signature { function: "other".to_owned(), ..signature.clone() };
        for (functions, has_default) in [
            (vec![signature.clone()], true),
            (vec![signature.clone(), other.clone()], true),
            (vec![signature, other], false),
        ] {
            let features = vec!["avx2".to_owned()];
            let processors = vec![ProcessorInfo { target: "here".to_owned(), features }];
            let (file, digest) = ("m.weights".to_owned(), "00".repeat(32));
            let weights = Some(WeightsInfo { file, bytes: 4096, digest });
            let info = LibraryInfo { functions, has_default, processors, weights };
            let text = info.to_json().unwrap();
            assert_eq!(text.contains("\"functions\""), info.functions.len() > 1, "{text}");
            assert_eq!(text.matches("must be").count(), 1, "{text}");
            assert_eq!(info.checks(), ["`n` must be `m`, for y"]);
            assert_eq!(LibraryInfo::from_json(text.as_bytes()).unwrap(), info);
        }
        let broken = LibraryInfo::from_json(br#"{"tenon":"1.0.0"}"#).unwrap_err();
        assert!(broken.to_string().contains("missing field"), "{broken}");
        assert_eq!((x.static_shape(), x.to_string().as_str()), (None, "`x`: bf16[2, 2*n]"));
        assert!(x.takes(&[2, 7]) && !x.takes(&[3, 7]) && !x.takes(&[2]));
    }
}
