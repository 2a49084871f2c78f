//! What a compiled function takes and gives: the metadata of a library.
//!
//! ```json
//! { "tenon": "1.0.0", "target": "x86_64-…", "workspace_size": 4096,
//!   "inputs": [{ "name": "x", "dtype": "f32", "shape": [1, 3, 224, 224] }], "outputs": […] }
//! ```

use serde::{Deserialize, Serialize};

use super::dlpack::DataType;
use crate::ir::DType;

/// Inputs, outputs and memory of a compiled function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// The version of Tenon that compiled it.
    pub tenon: String,
    /// The processor that it was compiled for.
    pub target: String,
    /// Bytes of the workspace, which must be aligned to 64.
    pub workspace_size: u64,
    pub inputs: Vec<TensorSpec>,
    pub outputs: Vec<TensorSpec>,
}

/// Name, element type and shape of an argument.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TensorSpec {
    pub name: String,
    #[serde(with = "dtype_name")]
    pub dtype: DType,
    pub shape: Vec<i64>,
}

impl TensorSpec {
    /// Number of elements.
    pub fn len(&self) -> u64 {
        self.shape.iter().map(|&extent| extent as u64).product()
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of its elements.
    pub fn bytes(&self) -> u64 {
        self.dtype.bytes(self.len()).unwrap_or(0)
    }
}

impl std::fmt::Display for TensorSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}`: {}{:?}", self.name, self.dtype, self.shape)
    }
}

/// The dtype as DLPack says it; `None` for one that DLPack cannot say.
pub fn data_type(dtype: DType) -> Option<DataType> {
    let code = match dtype {
        DType::BOOL => DataType::BOOL,
        DType::BF16 => DataType::BFLOAT,
        DType::F16 | DType::F32 | DType::F64 => DataType::FLOAT,
        _ if dtype.is_signed() => DataType::INT,
        _ if dtype.is_int() => DataType::UINT,
        _ => return None,
    };
    Some(DataType::new(code, dtype.bits() as u8))
}

mod dtype_name {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use crate::ir::DType;

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
        let x = TensorSpec { name: "x".to_owned(), dtype: DType::BF16, shape: vec![2, 3] };
        let signature = Signature {
            tenon: "1.0.0".to_owned(),
            target: "here".to_owned(),
            workspace_size: 64,
            inputs: vec![x.clone()],
            outputs: vec![],
        };
        let text = serde_json::to_string(&signature).unwrap();
        assert!(text.contains(r#""dtype":"bf16","shape":[2,3]"#), "{text}");
        assert_eq!(serde_json::from_str::<Signature>(&text).unwrap(), signature);
        assert_eq!((x.len(), x.bytes(), x.to_string().as_str()), (6, 12, "`x`: bf16[2, 3]"));
    }
}
