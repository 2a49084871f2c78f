//! What a node of one operator may be, since one version.

/// An operator since one version.
#[derive(Debug)]
pub(in crate::onnx) struct Schema {
    /// Its name.
    pub name: &'static str,
    /// What it reads.
    pub inputs: Vec<Parameter>,
    /// What it makes.
    pub outputs: Vec<Parameter>,
    /// What is said of it besides.
    pub attributes: Vec<Attribute>,
}

/// An input or an output.
#[derive(Debug)]
pub(in crate::onnx) struct Parameter {
    /// What it is called.
    pub name: &'static str,
    /// How often it is there.
    pub occurs: Occurs,
    /// What stands for its type, where several are of one; else empty.
    pub variable: &'static str,
    /// The types that it may have, with a space between.
    pub types: &'static str,
}

/// How often an input or an output is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::onnx) enum Occurs {
    /// Once.
    Once,
    /// Once, or left out.
    Optional,
    /// So many times and more; of one type, or each of its own.
    Repeated { least: usize, alike: bool },
}

/// An attribute.
#[derive(Debug)]
pub(in crate::onnx) struct Attribute {
    /// What it is called.
    pub name: &'static str,
    /// Its kind, by the standard's word.
    pub kind: &'static str,
    /// Whether it must be given.
    pub is_required: bool,
}

impl Schema {
    /// The attribute of a name.
    pub(in crate::onnx) fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|attribute| attribute.name == name)
    }
}

impl Parameter {
    /// What is said of number `index` among these, of which the last one may be there several times.
    pub(in crate::onnx) fn of(parameters: &[Self], index: usize) -> Option<&Self> {
        let is_repeated = |last: &&Self| matches!(last.occurs, Occurs::Repeated { .. });
        parameters.get(index).or_else(|| parameters.last().filter(is_repeated))
    }

    /// How many there are of these: so many at least, and where there is an end, at most.
    pub(in crate::onnx) fn bounds(parameters: &[Self]) -> (usize, Option<usize>) {
        let (mut least, mut most) = (0, Some(parameters.len()));
        for (index, parameter) in parameters.iter().enumerate() {
            match parameter.occurs {
                Occurs::Once => least = index + 1,
                Occurs::Optional => {}
                Occurs::Repeated { least: 0, .. } => most = None,
                Occurs::Repeated { least: own, .. } => (least, most) = (index + own, None),
            }
        }
        (least, most)
    }

    /// Whether it may be a value of type `name`.
    pub(in crate::onnx) fn allows(&self, name: &str) -> bool {
        self.types.split(' ').any(|ty| ty == name)
    }
}
