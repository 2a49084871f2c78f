//! The attributes of a node, by kind. One that no rule has looked at is not supported.

use crate::abi::import::Attribute;
use crate::ir::DType;

use super::{Node, Problem, Value, invalid};

/// ONNX's kinds of attributes, by their numbers.
const KINDS: [&str; 15] = [
    "Nothing",
    "Float",
    "Int",
    "String",
    "Tensor",
    "Graph",
    "Floats",
    "Ints",
    "Strings",
    "Tensors",
    "Graphs",
    "SparseTensor",
    "SparseTensors",
    "Type",
    "Types",
];

impl Node<'_> {
    /// Whether attribute `name` is given.
    pub fn has(&self, name: &str) -> bool {
        self.services.attribute(name).is_some()
    }

    /// Takes note of an attribute that makes no difference.
    pub fn ignore(&self, name: &str) {
        self.services.attribute(name);
    }

    /// An integer attribute.
    ///
    /// # Errors
    /// Here and below: when it is of another kind.
    pub fn int(&self, name: &str) -> Result<Option<i64>, Problem> {
        match self.services.attribute(name) {
            None => Ok(None),
            Some(Attribute::Int(value)) => Ok(Some(value)),
            Some(other) => wrong_kind(name, "an integer", &other),
        }
    }

    /// An integer attribute with its default.
    pub fn int_or(&self, name: &str, default: i64) -> Result<i64, Problem> {
        Ok(self.int(name)?.unwrap_or(default))
    }

    /// An integer attribute that is 0 or 1, with its default.
    pub fn flag(&self, name: &str, default: bool) -> Result<bool, Problem> {
        Ok(self.int(name)?.map_or(default, |value| value != 0))
    }

    /// A list of integers.
    pub fn ints(&self, name: &str) -> Result<Option<Vec<i64>>, Problem> {
        match self.services.attribute(name) {
            None => Ok(None),
            Some(Attribute::Ints(values)) => Ok(Some(values.to_vec())),
            Some(other) => wrong_kind(name, "a list of integers", &other),
        }
    }

    /// A float attribute.
    pub fn float(&self, name: &str) -> Result<Option<f32>, Problem> {
        match self.services.attribute(name) {
            None => Ok(None),
            Some(Attribute::Float(value)) => Ok(Some(value)),
            Some(other) => wrong_kind(name, "a float", &other),
        }
    }

    /// A float attribute with its default.
    pub fn float_or(&self, name: &str, default: f32) -> Result<f64, Problem> {
        Ok(f64::from(self.float(name)?.unwrap_or(default)))
    }

    /// A list of floats.
    pub fn floats(&self, name: &str) -> Result<Option<Vec<f32>>, Problem> {
        match self.services.attribute(name) {
            None => Ok(None),
            Some(Attribute::Floats(values)) => Ok(Some(values.to_vec())),
            Some(other) => wrong_kind(name, "a list of floats", &other),
        }
    }

    /// A text attribute with its default.
    pub fn text(&self, name: &str, default: &'static str) -> Result<String, Problem> {
        match self.services.attribute(name) {
            None => Ok(default.to_owned()),
            Some(Attribute::Text(bytes)) => Ok(String::from_utf8_lossy(bytes).into_owned()),
            Some(other) => wrong_kind(name, "a string", &other),
        }
    }

    /// A list of texts; empty where it is not given.
    pub fn texts(&self, name: &str) -> Result<Vec<String>, Problem> {
        match self.services.attribute(name) {
            None => Ok(Vec::new()),
            Some(Attribute::Texts(bytes)) => {
                let texts = bytes.split_inclusive(|&byte| byte == 0);
                let text = |text: &[u8]| String::from_utf8_lossy(&text[..text.len() - 1]).into();
                Ok(texts.map(text).collect())
            }
            Some(other) => wrong_kind(name, "a list of strings", &other),
        }
    }

    /// A tensor attribute, as a constant.
    ///
    /// # Errors
    /// When it is of another kind, or the tensor cannot be read.
    pub fn tensor(&mut self, name: &str) -> Result<Option<Value>, Problem> {
        match self.services.attribute(name) {
            None => Ok(None),
            Some(Attribute::Tensor) => self.services.attribute_tensor(name).map(Some),
            Some(other) => wrong_kind(name, "a tensor", &other),
        }
    }

    /// The type of elements that an integer attribute names by ONNX's number.
    ///
    /// # Errors
    /// When it is no integer, or there is no such type of elements.
    pub fn element_type(&self, name: &str) -> Result<Option<DType>, Problem> {
        let Some(code) = self.int(name)? else { return Ok(None) };
        self.services.element_type(u32::try_from(code).unwrap_or(u32::MAX)).map(Some)
    }
}

fn wrong_kind<T>(name: &str, expected: &str, found: &Attribute<'_>) -> Result<T, Problem> {
    let kind = match found {
        Attribute::Float(_) => 1,
        Attribute::Int(_) => 2,
        Attribute::Text(_) => 3,
        Attribute::Tensor => 4,
        Attribute::Floats(_) => 6,
        Attribute::Ints(_) => 7,
        Attribute::Texts(_) => 8,
        Attribute::Other(kind) => *kind as usize,
    };
    let kind = KINDS.get(kind).unwrap_or(&"value of another kind");
    invalid(format!("its attribute `{name}` is {expected}, not a {kind}"))
}
