//! Elements of buffers: where they lie, reading and writing.
//!
//! A buffer is row-major; one index alone counts its elements, whatever its axes. Vector indices become one scalar offset and a stride as far as they can:
//!
//! ```text
//! A[i, ramp(16*j, 1, 16)]     one load of 16 elements side by side
//! A[ramp(0, 1, 16), 3]        stride of the first axis: 16 loads (2: two and a shuffle)
//! A[i, broadcast(j, 16)]      one load of one element, for every lane
//! A[B[ramp(0, 1, 16)]]        16 loads; one of all and a shuffle, where it is known how close they are
//! ```
//!
//! Offsets cannot overflow: a program may only use indices that lie within the buffer.

use inkwell::{
    types::BasicTypeEnum,
    values::{BasicValueEnum, InstructionOpcode as Op, IntValue, PointerValue, VectorValue},
};

use super::{
    arithmetic::{as_ramp, common_lanes},
    assembler::Assembler,
    error::{Problem, Result},
    value::{Class, Form, Value, with_lanes},
};
use tenon_ir::{BodyView, DType, Dim, Expr, View};

/// Element type and extents of a buffer.
#[derive(Clone, Debug)]
pub(crate) struct BufferLayout {
    pub name: String,
    pub dtype: DType,
    pub shape: Vec<Extent>,
}

/// The extent of an axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Extent {
    Known(i64),
    /// By its text in messages, and what it is computed from when the program is called.
    Symbolic(Dim),
}

impl Extent {
    pub(crate) fn known(self) -> Option<i64> {
        match self {
            Extent::Known(extent) => Some(extent),
            Extent::Symbolic(_) => None,
        }
    }
}

impl BufferLayout {
    pub(crate) fn of(body: BodyView<'_>, buffer: Expr) -> Result<BufferLayout> {
        let View::Buffer { name, .. } = body.view(buffer) else {
            let kind = body.kind(buffer).name();
            return Problem::malformed(format!("a {kind} stands where a buffer is expected"));
        };
        let terms = body.terms();
        let name = terms.str(name).to_owned();
        let Some(ty) = body.ty(buffer) else {
            return Problem::malformed(format!("buffer `{name}` has no type"));
        };
        let Some((dtype, dims)) = terms.tensor(ty) else {
            let ty = terms.type_text(ty);
            return Problem::malformed(format!("buffer `{name}` is a {ty}"));
        };
        let extent = |&dim: &Dim| terms.dim_value(dim).map_or(Extent::Symbolic(dim), Extent::Known);
        Ok(BufferLayout { name, dtype, shape: dims.iter().map(extent).collect() })
    }

    /// Whether all extents are known.
    pub(crate) fn is_static(&self) -> bool {
        self.shape.iter().all(|extent| extent.known().is_some())
    }

    /// Number of elements of a buffer whose extents are known.
    pub(crate) fn len(&self) -> Result<u64> {
        let Some(shape) =
            self.shape.iter().map(|extent| extent.known()).collect::<Option<Vec<_>>>()
        else {
            let what = format!("buffer `{}` of unknown size", self.name);
            return Problem::unsupported(what, "its place must be known here");
        };
        let count = shape
            .iter()
            .try_fold(1u64, |count, &extent| count.checked_mul(u64::try_from(extent).ok()?));
        count.filter(|&count| count < 1 << 48).map_or_else(
            || Problem::malformed(format!("buffer `{}` cannot be so large", self.name)),
            Ok,
        )
    }

    /// Its size in memory, where its extents are known.
    pub(crate) fn bytes(&self) -> Result<u64> {
        Ok(self.len()? * u64::from(Class::of(self.dtype)?.bytes()))
    }
}

/// A buffer and where it is.
#[derive(Debug)]
pub(super) struct Buffer<'cx> {
    pub(super) pointer: PointerValue<'cx>,
    pub(super) layout: BufferLayout,
    pub(super) is_writable: bool,
}

/// Elements of a buffer, as many as there are lanes.
enum Place<'cx> {
    /// One element, for all lanes.
    One(IntValue<'cx>),
    /// Lane `i` is the element at `base + i * stride`; the stride is not 0.
    Strided { base: IntValue<'cx>, stride: i64, lanes: u16 },
    /// Each lane has its own offset.
    Scattered { offsets: VectorValue<'cx>, lanes: u16 },
}

impl<'cx> Assembler<'cx, '_> {
    /// `buffer[indices]`.
    pub(super) fn read(&self, buffer: &Buffer<'cx>, indices: &[Value<'cx>]) -> Result<Value<'cx>> {
        let dtype = buffer.layout.dtype;
        let class = Class::of(dtype)?;
        let value = |lanes, form| Value { dtype, lanes, form, range: None };
        let place = self.place(buffer, indices)?;
        if let Place::Strided { base, stride, lanes } = place
            && let Some(mask) = self.mask_over(lanes)
        {
            let offset = |lane| self.moved(base, i64::from(lane) * stride);
            let vector = match stride {
                1 => self.read_masked(buffer, class, base, mask)?,
                2 if lanes % 2 == 0 => self.read_every_other(buffer, class, base, mask)?,
                _ => self.gather_masked(buffer, class, mask, offset)?,
            };
            return Ok(value(lanes, Form::Vector(vector)));
        }
        match place {
            Place::One(offset) => {
                let scalar = self.read_elements(buffer, class, offset, 1)?;
                Ok(value(common_lanes(indices)?, Form::Uniform(scalar)))
            }
            Place::Strided { base, stride: 1, lanes } => {
                Ok(value(lanes, Form::Vector(self.read_elements(buffer, class, base, lanes)?)))
            }
            Place::Strided { base, stride: -1, lanes } => {
                let last = self.moved(base, 1 - i64::from(lanes))?;
                let vector = self.read_elements(buffer, class, last, lanes)?.into_vector_value();
                let reversed = self.shuffle(vector, vector, (0..u64::from(lanes)).rev())?;
                Ok(value(lanes, Form::Vector(reversed.into())))
            }
            Place::Strided { base, stride: 2, lanes } => {
                // The second load starts at the last element that the first one has, so that
                // nothing behind the last lane is touched.
                let n = u64::from(lanes);
                let middle = self.moved(base, i64::from(lanes) - 1)?;
                let low = self.read_elements(buffer, class, base, lanes)?.into_vector_value();
                let high = self.read_elements(buffer, class, middle, lanes)?.into_vector_value();
                let lane = |i: u64| if 2 * i < n { 2 * i } else { n + 2 * i - (n - 1) };
                let even = self.shuffle(low, high, (0..n).map(lane))?;
                Ok(value(lanes, Form::Vector(even.into())))
            }
            Place::Strided { base, stride, lanes } => {
                let offset = |lane: u16| self.moved(base, i64::from(lane) * stride);
                Ok(value(lanes, Form::Vector(self.gather(buffer, class, lanes, offset)?)))
            }
            Place::Scattered { offsets, lanes } => {
                let offset = |lane| Ok(self.lane(offsets, lane)?.into_int_value());
                let vector = match self.mask_over(lanes) {
                    Some(mask) => self.gather_masked(buffer, class, mask, offset)?,
                    None => match self.read_window(buffer, class, offsets)? {
                        Some(vector) => vector,
                        None => self.gather(buffer, class, lanes, offset)?,
                    },
                };
                Ok(value(lanes, Form::Vector(vector)))
            }
        }
    }

    /// `buffer[indices] = value`.
    pub(super) fn write(
        &self,
        buffer: &Buffer<'cx>,
        value: Value<'cx>,
        indices: &[Value<'cx>],
    ) -> Result<()> {
        let name = &buffer.layout.name;
        if !buffer.is_writable {
            return Problem::malformed(format!("`{name}` is written, but it is an input"));
        }
        if value.dtype != buffer.layout.dtype {
            let (found, expected) = (value.dtype, buffer.layout.dtype);
            return Problem::malformed(format!("{found} is stored into `{name}` of {expected}"));
        }
        let class = Class::of(value.dtype)?;
        match self.place(buffer, indices)? {
            Place::One(offset) => match value.form {
                Form::Uniform(scalar) => self.write_elements(buffer, class, offset, scalar),
                Form::Ramp { .. } | Form::Vector(_) => {
                    Problem::malformed(format!("a vector is stored into one element of `{name}`"))
                }
            },
            Place::Strided { base, stride: 1, lanes } => {
                let vector = self.lanes_to_store(value, lanes)?;
                match self.mask_over(lanes) {
                    Some(mask) => self.write_masked(buffer, class, base, vector, mask),
                    None => self.write_elements(buffer, class, base, vector),
                }
            }
            Place::Strided { base, stride, lanes } => {
                let vector = self.lanes_to_store(value, lanes)?.into_vector_value();
                for lane in 0..lanes {
                    self.in_lane(self.mask_over(lanes), lane, || {
                        let offset = self.moved(base, i64::from(lane) * stride)?;
                        self.write_elements(buffer, class, offset, self.lane(vector, lane)?)
                    })?;
                }
                Ok(())
            }
            Place::Scattered { offsets, lanes } => {
                let vector = self.lanes_to_store(value, lanes)?.into_vector_value();
                for lane in 0..lanes {
                    self.in_lane(self.mask_over(lanes), lane, || {
                        let offset = self.lane(offsets, lane)?.into_int_value();
                        self.write_elements(buffer, class, offset, self.lane(vector, lane)?)
                    })?;
                }
                Ok(())
            }
        }
    }

    /// Where an element of a buffer lies.
    pub(super) fn address(
        &self,
        buffer: &Buffer<'cx>,
        indices: &[Value<'cx>],
    ) -> Result<PointerValue<'cx>> {
        match self.place(buffer, indices)? {
            Place::One(offset) => {
                let element = Class::of(buffer.layout.dtype)?.memory(self.cx);
                self.element(buffer.pointer, element, offset)
            }
            Place::Strided { .. } | Place::Scattered { .. } => {
                Problem::malformed(format!("several elements of `{}` at once", buffer.layout.name))
            }
        }
    }

    fn lanes_to_store(&self, value: Value<'cx>, lanes: u16) -> Result<BasicValueEnum<'cx>> {
        if value.lanes != 1 && value.lanes != lanes {
            let found = value.lanes;
            return Problem::malformed(format!("{found} lanes are stored into {lanes} elements"));
        }
        self.whole(value, lanes)
    }

    /// Adds the indices up, each times the elements that a step of its axis is.
    fn place(&self, buffer: &Buffer<'cx>, indices: &[Value<'cx>]) -> Result<Place<'cx>> {
        // One index counts the elements of the whole buffer, however many axes it has. What lies before the first
        // axis is never stepped over, so its extent does not matter.
        let whole = [Extent::Known(1)];
        let shape = if indices.len() == 1 { &whole[..] } else { &buffer.layout.shape };
        if indices.len() != shape.len() {
            let (name, given, rank) = (&buffer.layout.name, indices.len(), shape.len());
            return Problem::malformed(format!(
                "`{name}` has {rank} axes, and {given} indices are given"
            ));
        }
        let lanes = common_lanes(indices)?;
        let mut base: Option<IntValue<'cx>> = None;
        let mut stride = 0i64;
        let mut vector: Option<BasicValueEnum<'cx>> = None;
        let mut step = 1i64;
        for (axis, (index, &extent)) in indices.iter().zip(shape).enumerate().rev() {
            let index = self.as_index(*index)?;
            match as_ramp(index) {
                Some((start, by)) => {
                    base = Some(self.plus_multiple(base, start, step)?);
                    stride = stride.saturating_add(by.saturating_mul(step));
                }
                None => {
                    let offsets = self.whole(index, lanes)?;
                    let scaled = match step {
                        1 => offsets,
                        step => {
                            self.exact_int_op(Op::Mul, offsets, self.int_like(offsets, step)?)?
                        }
                    };
                    vector = Some(match vector {
                        Some(sum) => self.exact_int_op(Op::Add, sum, scaled)?,
                        None => scaled,
                    });
                }
            }
            step = match extent {
                Extent::Known(extent) => step.saturating_mul(extent),
                Extent::Symbolic(_) if axis == 0 => step,
                Extent::Symbolic(_) => {
                    let what =
                        format!("buffer `{}` with axes of unknown extents", buffer.layout.name);
                    return Err(Problem::Left { what, fact: "flat_buffers" });
                }
            };
        }
        let base = base.unwrap_or_else(|| self.index(0));
        let Some(vector) = vector else {
            return Ok(match stride {
                0 => Place::One(base),
                stride => Place::Strided { base, stride, lanes },
            });
        };
        let rest =
            Value { dtype: DType::I64, lanes, form: Form::Ramp { base, stride }, range: None };
        let offsets = self.exact_int_op(Op::Add, vector, self.whole(rest, lanes)?)?;
        Ok(Place::Scattered { offsets: offsets.into_vector_value(), lanes })
    }

    /// `sum + index * step`.
    fn plus_multiple(
        &self,
        sum: Option<IntValue<'cx>>,
        index: IntValue<'cx>,
        step: i64,
    ) -> Result<IntValue<'cx>> {
        let is_zero = index.get_sign_extended_constant() == Some(0);
        let product = match step {
            _ if is_zero => index,
            1 => index,
            step => {
                self.exact_int_op(Op::Mul, index.into(), self.index(step).into())?.into_int_value()
            }
        };
        match sum {
            None => Ok(product),
            Some(sum) if is_zero => Ok(sum),
            Some(sum) => {
                Ok(self.exact_int_op(Op::Add, sum.into(), product.into())?.into_int_value())
            }
        }
    }

    fn as_index(&self, index: Value<'cx>) -> Result<Value<'cx>> {
        match Class::of(index.dtype)? {
            Class::Signed(_) | Class::Unsigned(_) => self.cast(index, DType::I64),
            _ => Problem::malformed(format!("an index is {}", index.dtype)),
        }
    }

    pub(super) fn moved(&self, offset: IntValue<'cx>, by: i64) -> Result<IntValue<'cx>> {
        if by == 0 {
            return Ok(offset);
        }
        Ok(self.exact_int_op(Op::Add, offset.into(), self.index(by).into())?.into_int_value())
    }

    pub(super) fn gather(
        &self,
        buffer: &Buffer<'cx>,
        class: Class,
        lanes: u16,
        offset: impl Fn(u16) -> Result<IntValue<'cx>>,
    ) -> Result<BasicValueEnum<'cx>> {
        let BasicTypeEnum::VectorType(ty) = with_lanes(class.register(self.cx), lanes) else {
            return Problem::malformed("a vector of one lane");
        };
        let mut vector = ty.get_poison();
        for lane in 0..lanes {
            let element = self.read_elements(buffer, class, offset(lane)?, 1)?;
            let place = self.cx.i32_type().const_int(u64::from(lane), false);
            vector = self.builder.build_insert_element(vector, element, place, "")?;
        }
        Ok(vector.into())
    }

    /// `lanes` elements side by side, in registers.
    pub(super) fn read_elements(
        &self,
        buffer: &Buffer<'cx>,
        class: Class,
        offset: IntValue<'cx>,
        lanes: u16,
    ) -> Result<BasicValueEnum<'cx>> {
        let element = class.memory(self.cx);
        let place = self.element(buffer.pointer, element, offset)?;
        let value = self.load(with_lanes(element, lanes), place, class.bytes())?;
        if class == Class::Bool { self.is_not_zero(value) } else { Ok(value) }
    }

    pub(super) fn write_elements(
        &self,
        buffer: &Buffer<'cx>,
        class: Class,
        offset: IntValue<'cx>,
        value: BasicValueEnum<'cx>,
    ) -> Result<()> {
        let element = class.memory(self.cx);
        let place = self.element(buffer.pointer, element, offset)?;
        self.store(place, self.to_memory(class, value)?, class.bytes())
    }

    /// A value as it lies in memory.
    pub(super) fn to_memory(
        &self,
        class: Class,
        value: BasicValueEnum<'cx>,
    ) -> Result<BasicValueEnum<'cx>> {
        match class {
            Class::Bool => self.convert(Op::ZExt, value, class.memory(self.cx)),
            _ => Ok(value),
        }
    }
}
