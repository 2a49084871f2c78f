//! Windows over any number of spatial axes, as attributes of a node say.

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::not_among;

use super::window::{ToSame, padding_to_same};

/// How a window moves over each spatial axis.
pub(crate) struct Spatial {
    pub(crate) kernel: Vec<i64>,
    pub(crate) strides: Vec<i64>,
    pub(crate) dilations: Vec<i64>,
    /// The padding before each axis, and behind each.
    pub(crate) pads: [Vec<i64>; 2],
}

/// What comes around an axis whose extent is not known: its number, how many elements before it, and how many there are in all.
pub(crate) type Around = (usize, [Dim; 2]);

impl Spatial {
    /// What a node says of windows of extents `kernel` over `data`, the spatial extents.
    pub(crate) fn of(node: &Node<'_>, data: &[Dim], kernel: Vec<i64>) -> Result<Self, Problem> {
        match Self::with_open(node, data, kernel)? {
            (this, around) if around.is_empty() => Ok(this),
            _ => unsupported("automatic padding of a symbolic dimension"),
        }
    }

    /// The same, with the padding that depends on extents that are not known.
    pub(crate) fn with_open(
        node: &Node<'_>,
        data: &[Dim],
        kernel: Vec<i64>,
    ) -> Result<(Self, Vec<Around>), Problem> {
        let rank = data.len();
        let list = |name: &str| -> Result<Vec<i64>, Problem> {
            let list = node.ints(name)?.unwrap_or_else(|| vec![1; rank]);
            check(name, &list, rank, 1)?;
            Ok(list)
        };
        check("kernel_shape", &kernel, rank, 1)?;
        let (strides, dilations) = (list("strides")?, list("dilations")?);
        let pads = [vec![0; rank], vec![0; rank]];
        let mut this = Self { kernel, strides, dilations, pads };
        let (given, mut around) = (node.ints("pads")?, Vec::new());
        match node.text("auto_pad", "NOTSET")?.as_str() {
            "NOTSET" => {
                if let Some(given) = given {
                    check("pads", &given, 2 * rank, 0)?;
                    let (before, after) = given.split_at(rank);
                    this.pads = [before.to_vec(), after.to_vec()];
                }
            }
            "VALID" => {}
            "SAME_UPPER" => around = this.pad_to_same(node, data, false),
            "SAME_LOWER" => around = this.pad_to_same(node, data, true),
            other => {
                return not_among(
                    "auto_pad",
                    other,
                    &["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"],
                );
            }
        }
        Ok((this, around))
    }

    /// How far a window reaches along an axis.
    pub(crate) fn reach(&self, axis: usize) -> i64 {
        (self.kernel[axis] - 1) * self.dilations[axis] + 1
    }

    /// The padding that makes as many places as the extent has strides; the odd one comes last, or first when `is_lower`.
    fn pad_to_same(&mut self, node: &Node<'_>, data: &[Dim], is_lower: bool) -> Vec<Around> {
        let mut all = Vec::new();
        for (axis, &dim) in data.iter().enumerate() {
            let steps = [self.dilations[axis], self.strides[axis]];
            let kernel = node.cx().dim(self.kernel[axis]);
            match padding_to_same(node, dim, (kernel, steps), is_lower) {
                ToSame::Open(around) => all.push((axis, around)),
                ToSame::Known([before, after]) => {
                    self.pads[0][axis] = before;
                    self.pads[1][axis] = after;
                }
            }
        }
        all
    }

    /// The padding of one list: before each axis, then behind each.
    pub(crate) fn padding(&self) -> Vec<i64> {
        self.pads.concat()
    }
}

/// Refuses a list of another length, or with a number out of range.
pub(crate) fn check(name: &str, list: &[i64], count: usize, least: i64) -> Result<(), Problem> {
    if list.len() != count {
        return invalid(format!("its attribute `{name}` is {list:?}, expected {count} numbers"));
    }
    match list.iter().find(|value| !(least..=i64::from(i32::MAX)).contains(value)) {
        Some(value) => invalid(format!("its attribute `{name}` has {value}")),
        None => Ok(()),
    }
}
