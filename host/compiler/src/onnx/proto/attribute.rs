//! The attributes of a node.

use crate::{
    io::quoted,
    onnx::{
        proto::{GraphProto, TensorProto},
        wire::{Reader, WireError},
    },
};

/// A named attribute.
#[derive(Clone, Debug)]
pub struct AttributeProto<'a> {
    pub name: &'a str,
    pub value: AttributeValue<'a>,
}

/// The value of an attribute.
#[derive(Clone, Debug)]
pub enum AttributeValue<'a> {
    Float(f32),
    Int(i64),
    /// Text by convention, but any bytes are allowed.
    String(&'a [u8]),
    Tensor(Box<TensorProto<'a>>),
    Graph(Box<GraphAttribute<'a>>),
    Floats(Vec<f32>),
    Ints(Vec<i64>),
    Strings(Vec<&'a [u8]>),
    Tensors(Vec<TensorProto<'a>>),
    Graphs(Vec<GraphAttribute<'a>>),
    /// In the body of a function: what the call gives for the function's attribute of this name.
    Reference(&'a str, AttributeKind),
    /// A kind whose content is not kept.
    Unsupported(AttributeKind),
}

/// The kinds of attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AttributeKind {
    Float,
    Int,
    String,
    Tensor,
    Graph,
    Floats,
    Ints,
    Strings,
    Tensors,
    Graphs,
    SparseTensor,
    SparseTensors,
    Type,
    Types,
}

/// A graph inside an attribute, as in `If` and `Loop`. Decoded when asked for.
#[derive(Clone, Copy, Debug)]
pub struct GraphAttribute<'a>(Reader<'a>);

impl<'a> GraphAttribute<'a> {
    /// Decodes this graph, not the graphs inside it.
    pub fn decode(&self) -> Result<GraphProto<'a>, WireError> {
        let mut graph = GraphProto::default();
        graph.merge(self.0)?;
        Ok(graph)
    }
}

impl<'a> AttributeProto<'a> {
    pub(super) fn decode(mut reader: Reader<'a>) -> Result<Self, WireError> {
        let mut parts = Parts::default();
        while let Some(field) = reader.next_field()? {
            if let Some(kind) = AttributeKind::of_field(field.number) {
                parts.present |= kind.bit();
            }
            match field.number {
                1 => parts.name = field.string()?,
                2 => parts.float = field.float()?,
                3 => parts.int = field.int64()?,
                4 => parts.string = field.bytes()?,
                5 => parts.tensor = Some(TensorProto::decode(field.message("TensorProto")?)?),
                6 => parts.graph = Some(GraphAttribute(field.message("GraphProto")?)),
                7 => field.floats_into(&mut parts.floats)?,
                8 => field.int64s_into(&mut parts.ints)?,
                9 => parts.strings.push(field.bytes()?),
                10 => parts.tensors.push(TensorProto::decode(field.message("TensorProto")?)?),
                11 => parts.graphs.push(GraphAttribute(field.message("GraphProto")?)),
                20 => parts.code = field.int32()?,
                21 => parts.reference = field.string()?,
                _ => {}
            }
        }
        parts.finish(&reader)
    }

    /// The kind of its value.
    pub fn kind(&self) -> AttributeKind {
        self.value.kind()
    }
}

/// Everything an attribute message may hold, before its kind is known.
#[derive(Default)]
struct Parts<'a> {
    name: &'a str,
    reference: &'a str,
    code: i32,
    /// The kinds of which there was a field.
    present: u16,
    float: f32,
    int: i64,
    string: &'a [u8],
    tensor: Option<TensorProto<'a>>,
    graph: Option<GraphAttribute<'a>>,
    floats: Vec<f32>,
    ints: Vec<i64>,
    strings: Vec<&'a [u8]>,
    tensors: Vec<TensorProto<'a>>,
    graphs: Vec<GraphAttribute<'a>>,
}

impl<'a> Parts<'a> {
    fn finish(self, reader: &Reader<'a>) -> Result<AttributeProto<'a>, WireError> {
        let name = self.name;
        if name.is_empty() {
            return Err(reader.error("has no name"));
        }
        let kind = self.kind(reader)?;
        if !self.reference.is_empty() {
            let value = AttributeValue::Reference(self.reference, kind);
            return Ok(AttributeProto { name, value });
        }
        // A single number or text that is absent has its default: some writers leave out zeros.
        let absent =
            || reader.error(format!("{} says that it has a {kind:?}, but has none", quoted(name)));
        let value = match kind {
            AttributeKind::Float => AttributeValue::Float(self.float),
            AttributeKind::Int => AttributeValue::Int(self.int),
            AttributeKind::String => AttributeValue::String(self.string),
            AttributeKind::Tensor => {
                AttributeValue::Tensor(Box::new(self.tensor.ok_or_else(absent)?))
            }
            AttributeKind::Graph => AttributeValue::Graph(Box::new(self.graph.ok_or_else(absent)?)),
            AttributeKind::Floats => AttributeValue::Floats(self.floats),
            AttributeKind::Ints => AttributeValue::Ints(self.ints),
            AttributeKind::Strings => AttributeValue::Strings(self.strings),
            AttributeKind::Tensors => AttributeValue::Tensors(self.tensors),
            AttributeKind::Graphs => AttributeValue::Graphs(self.graphs),
            AttributeKind::SparseTensor
            | AttributeKind::SparseTensors
            | AttributeKind::Type
            | AttributeKind::Types => AttributeValue::Unsupported(kind),
        };
        Ok(AttributeProto { name, value })
    }

    /// The kind that the attribute states, or in files older than that field, shows.
    fn kind(&self, reader: &Reader<'a>) -> Result<AttributeKind, WireError> {
        let name = || quoted(self.name);
        if self.code == 0 {
            let shown = AttributeKind::ALL.iter().find(|kind| kind.bit() == self.present);
            return shown.copied().ok_or_else(|| {
                reader.error(format!("{} has no type and not exactly one value", name()))
            });
        }
        let kind = AttributeKind::from_code(self.code).ok_or_else(|| {
            reader.error(format!("{} has the unknown type {}", name(), self.code))
        })?;
        match AttributeKind::ALL.iter().find(|other| self.present & other.bit() & !kind.bit() != 0)
        {
            None => Ok(kind),
            Some(other) => {
                Err(reader.error(format!("{} says {kind:?}, but has a {other:?}", name())))
            }
        }
    }
}

impl AttributeKind {
    /// In the order of their codes.
    const ALL: [Self; 14] = [
        Self::Float,
        Self::Int,
        Self::String,
        Self::Tensor,
        Self::Graph,
        Self::Floats,
        Self::Ints,
        Self::Strings,
        Self::Tensors,
        Self::Graphs,
        Self::SparseTensor,
        Self::SparseTensors,
        Self::Type,
        Self::Types,
    ];

    /// From the code in the attribute's `type` field, which is not that of the value's field.
    fn from_code(code: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() as i32 == code)
    }

    /// What the standard's list of operators calls it: `int`, `sparse_tensor`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Float => "float",
            Self::Int => "int",
            Self::String => "string",
            Self::Tensor => "tensor",
            Self::Graph => "graph",
            Self::Floats => "floats",
            Self::Ints => "ints",
            Self::Strings => "strings",
            Self::Tensors => "tensors",
            Self::Graphs => "graphs",
            Self::SparseTensor => "sparse_tensor",
            Self::SparseTensors => "sparse_tensors",
            Self::Type => "type",
            Self::Types => "types",
        }
    }

    /// Its code in the attribute's `type` field: they are listed in that order.
    pub fn code(self) -> u32 {
        self as u32 + 1
    }

    fn of_field(number: u32) -> Option<Self> {
        Some(match number {
            2 => Self::Float,
            3 => Self::Int,
            4 => Self::String,
            5 => Self::Tensor,
            6 => Self::Graph,
            7 => Self::Floats,
            8 => Self::Ints,
            9 => Self::Strings,
            10 => Self::Tensors,
            11 => Self::Graphs,
            14 => Self::Type,
            15 => Self::Types,
            22 => Self::SparseTensor,
            23 => Self::SparseTensors,
            _ => return None,
        })
    }

    fn bit(self) -> u16 {
        1 << self as u16
    }
}

impl AttributeValue<'_> {
    /// Its kind.
    pub fn kind(&self) -> AttributeKind {
        match self {
            Self::Float(_) => AttributeKind::Float,
            Self::Int(_) => AttributeKind::Int,
            Self::String(_) => AttributeKind::String,
            Self::Tensor(_) => AttributeKind::Tensor,
            Self::Graph(_) => AttributeKind::Graph,
            Self::Floats(_) => AttributeKind::Floats,
            Self::Ints(_) => AttributeKind::Ints,
            Self::Strings(_) => AttributeKind::Strings,
            Self::Tensors(_) => AttributeKind::Tensors,
            Self::Graphs(_) => AttributeKind::Graphs,
            Self::Reference(_, kind) | Self::Unsupported(kind) => *kind,
        }
    }
}
