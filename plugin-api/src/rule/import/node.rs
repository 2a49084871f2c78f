//! A node of a model as its rule sees it.

use crate::abi::host::Host;
use crate::abi::import::Importing;
use crate::ir::{Context, Dim, Expr, Terms};
use crate::pass::PassError;
use crate::rule::{Question, Reply};

use super::{Few, Known, Problem, invalid, unsupported};

/// No tensor has more dimensions. What works on all pairs of axes stays cheap by this.
pub const LARGEST_RANK: usize = 64;

/// A value of the function that is built from the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Value(pub(crate) u32);

/// A node that is imported: what it reads, what it says, and what is built for it.
pub struct Node<'a> {
    pub(super) services: Importing,
    inputs: &'a [Expr],
    key: &'static str,
}

impl<'a> Node<'a> {
    pub(super) fn new(question: &Question<'a>) -> Result<Self, PassError> {
        let services = Importing::new(&question.host)?;
        Ok(Self { services, inputs: question.nodes, key: question.key() })
    }

    /// The key that the rule is asked for.
    pub fn key(&self) -> &'static str {
        self.key
    }

    /// The version of the operators of its domain that the node is written in.
    pub fn version(&self) -> u64 {
        self.services.version()
    }

    /// Where types, dimensions and attributes are made.
    pub fn cx(&self) -> &Host {
        self.services.host()
    }

    /// The terms made so far.
    pub fn terms(&self) -> Terms<'_> {
        self.services.host().terms()
    }

    /// How many inputs it has, those that are left out counted.
    pub fn input_count(&self) -> usize {
        self.inputs.len()
    }

    /// How many outputs it has, those without a name counted.
    pub fn output_count(&self) -> usize {
        self.services.output_count()
    }

    /// How many axes the model says that output `index` has, which need not be true, or 0 for as few as there can be; `None`
    /// where it says nothing. To be asked where elements or lengths that only a call knows decide of it.
    pub fn output_rank(&self, index: usize) -> Option<usize> {
        self.services.output_rank(index)
    }

    /// Checks the number of inputs.
    ///
    /// # Errors
    /// When it is not within these bounds.
    pub fn check_arity(&self, min: usize, max: usize) -> Result<(), Problem> {
        match self.inputs.len() {
            count if (min..=max).contains(&count) => Ok(()),
            count => invalid(format!("it has {count} inputs, expected {min} to {max}")),
        }
    }

    /// Input `index`, which must be given.
    ///
    /// # Errors
    /// When it is left out.
    pub fn input(&self, index: usize) -> Result<Value, Problem> {
        match self.optional(index) {
            Some(value) => Ok(value),
            None => invalid(format!("its input {} is missing", index + 1)),
        }
    }

    /// Input `index`, if it is given.
    pub fn optional(&self, index: usize) -> Option<Value> {
        let given = self.inputs.get(index).filter(|&&input| input != Reply::NONE);
        given.map(|input| Value(input.0))
    }

    /// All inputs, none of which may be left out.
    ///
    /// # Errors
    /// When one is.
    pub fn all_inputs(&self) -> Result<Vec<Value>, Problem> {
        (0..self.inputs.len()).map(|index| self.input(index)).collect()
    }

    /// All inputs, when the elements of all of them are known as dimensions; `None` as well when there is none.
    pub fn known_inputs(&self) -> Option<Vec<Known>> {
        let of = |index| self.elements(self.optional(index)?);
        let all: Vec<Known> = (0..self.inputs.len()).map(of).collect::<Option<_>>()?;
        (!all.is_empty()).then_some(all)
    }

    /// The integers that input `index` is, when it is given.
    ///
    /// # Errors
    /// When they are not known.
    pub fn optional_ints(&self, index: usize) -> Result<Option<Vec<i64>>, Problem> {
        let Some(value) = self.optional(index) else { return Ok(None) };
        let numbers = self.elements(value).and_then(|known| known.numbers(self.terms()));
        match numbers {
            Some(numbers) => Ok(Some(numbers)),
            None => self.not_constant(index),
        }
    }

    /// The axes that input `index` is, when it is given: as they stand there, negative ones too.
    ///
    /// # Errors
    /// When they are not known. The importer may then try all axes that there are.
    pub fn optional_axes(&self, index: usize) -> Result<Option<Vec<i64>>, Problem> {
        match self.optional_ints(index) {
            Err(Problem::NotConstant { .. }) => self.not_chosen(index),
            known => known,
        }
    }

    /// The integers that input `index` is.
    ///
    /// # Errors
    /// When it is left out, or they are not known.
    pub fn input_ints(&self, index: usize) -> Result<Vec<i64>, Problem> {
        self.input(index)?;
        Ok(self.optional_ints(index)?.unwrap_or_default())
    }

    /// The dimensions that input `index` is.
    ///
    /// # Errors
    /// When it is left out, or they are not known.
    pub fn input_dims(&self, index: usize) -> Result<Vec<Dim>, Problem> {
        match self.elements(self.input(index)?) {
            Some(known) => Ok(known.elements),
            None => self.not_constant(index),
        }
    }

    /// Says that input `index` is needed when the model is imported.
    pub fn not_constant<T>(&self, index: usize) -> Result<T, Problem> {
        let text = format!("input {} must be a constant here", index + 1);
        Err(Problem::NotConstant { input: Some(index), text })
    }

    /// Says that input `index`, which is made of axes or truth values, is needed when the model is imported.
    pub fn not_chosen<T>(&self, index: usize) -> Result<T, Problem> {
        let text = format!("input {} must be a constant here", index + 1);
        Err(Problem::Choice { input: index, of: Few::Axes, text })
    }

    /// Says that input `index`, whose elements are extents of results, is needed when the model is imported.
    pub fn not_extents<T>(&self, index: usize) -> Result<T, Problem> {
        let text = format!("input {} must be a constant here", index + 1);
        Err(Problem::Choice { input: index, of: Few::Extents, text })
    }

    /// An axis of a tensor of `rank` dimensions, counted from the end when negative.
    ///
    /// # Errors
    /// When there is no such axis.
    pub fn axis(&self, axis: i64, rank: usize) -> Result<usize, Problem> {
        let bound = rank as i64;
        match axis {
            axis if (0..bound).contains(&axis) => Ok(axis as usize),
            axis if (-bound..0).contains(&axis) => Ok((axis + bound) as usize),
            _ if rank == 0 => {
                invalid(format!("it has axis {axis}, of a tensor without dimensions"))
            }
            _ => invalid(format!(
                "it has axis {axis}, of a tensor of {rank} dimensions: {} to {} are allowed",
                -bound,
                bound - 1
            )),
        }
    }

    /// Axes of a tensor of `rank` dimensions, each at most once.
    ///
    /// # Errors
    /// When there is no such axis, one is named twice, or there are too many dimensions.
    pub fn axes(&self, axes: &[i64], rank: usize) -> Result<Vec<usize>, Problem> {
        if rank > LARGEST_RANK {
            return unsupported(format!("{rank} dimensions"));
        }
        let mut is_named = vec![false; rank];
        let mut found = Vec::with_capacity(axes.len().min(rank));
        for &axis in axes {
            let axis = self.axis(axis, rank)?;
            if std::mem::replace(&mut is_named[axis], true) {
                return invalid(format!("axis {axis} is named twice"));
            }
            found.push(axis);
        }
        Ok(found)
    }
}
