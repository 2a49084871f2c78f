//! The memory of a tensor program while it runs.

use half::{bf16, f16};

use crate::budget::{Budget, Charge};
use crate::value::{Place, Storage};
use crate::{Tensor, Value};
use tenon_ir::{Bytes, Context, Cx, DType, Dim, DimBindings, Type, substitute};

use super::code::{Access, Reg};
use super::shadow::{Mistake, Shadow};
use super::{Buffer, Index, ProgramError};

/// Where buffers lie. Storages are borrowed from their owners while the program runs.
#[derive(Debug, Default)]
pub(super) struct Memory {
    blocks: Vec<Block>,
    views: Vec<View>,
    /// While a device runs: who touched what.
    shadow: Option<Shadow>,
    /// While a thread runs: the buffers that are its own, with what they are to others.
    own: Option<Vec<(u32, View)>>,
    /// Blocks of threads that have ended.
    free: Vec<usize>,
}

/// Why an element is not accessed.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) lane: usize,
    /// None where it lies outside, or is read only.
    pub(super) mistake: Option<Mistake>,
}

impl Fault {
    fn outside(lane: usize) -> Self {
        Self { lane, mistake: None }
    }
}

#[derive(Debug)]
enum Block {
    /// Contents that are read only.
    Shared(Bytes),
    /// Memory of the program's own.
    Own(Vec<u8>, #[expect(dead_code, reason = "it is there to be dropped")] Charge),
    /// Memory that was taken from a storage and goes back to it.
    Borrowed(Storage, Vec<u8>),
    /// Nothing any more.
    Gone,
}

/// A buffer: which part of which block, and its shape.
#[derive(Debug, Default)]
pub(super) struct View {
    block: usize,
    offset: usize,
    dims: Vec<i64>,
    strides: Vec<i64>,
    count: i64,
    is_placed: bool,
}

impl Drop for Memory {
    /// Gives storages their memory back.
    fn drop(&mut self) {
        for block in &mut self.blocks {
            if let Block::Borrowed(storage, bytes) = block {
                *storage.lock() = std::mem::take(bytes);
            }
        }
    }
}

impl Memory {
    /// Memory for these buffers, none of which has its place yet.
    pub(super) fn new(count: usize) -> Self {
        let mut views = Vec::new();
        views.resize_with(count, View::default);
        Self { blocks: Vec::new(), views, shadow: None, own: None, free: Vec::new() }
    }

    /// Gives a buffer the contents of a tensor.
    pub(super) fn place_value(&mut self, number: u32, value: &Value) -> bool {
        match value {
            Value::Tensor(tensor) => self.place_tensor(number, tensor),
            Value::Place(place) => self.place_storage(number, place),
            _ => return false,
        }
        true
    }

    pub(super) fn place_tensor(&mut self, number: u32, tensor: &Tensor) {
        self.blocks.push(Block::Shared(tensor.bytes().clone()));
        self.place(number, self.blocks.len() - 1, 0, tensor.shape());
    }

    fn place_storage(&mut self, number: u32, place: &Place) {
        let is_same = |block: &Block| matches!(block, Block::Borrowed(storage, _) if storage.is(&place.storage));
        let block = self.blocks.iter().position(is_same).unwrap_or_else(|| {
            let bytes = std::mem::take(&mut *place.storage.lock());
            self.blocks.push(Block::Borrowed(place.storage.clone(), bytes));
            self.blocks.len() - 1
        });
        self.place(number, block, place.offset, &place.shape);
    }

    fn place(&mut self, number: u32, block: usize, offset: usize, shape: &[usize]) {
        let dims: Vec<i64> = shape.iter().map(|&dim| dim as i64).collect();
        let mut strides = vec![1; dims.len()];
        for axis in (1..dims.len()).rev() {
            strides[axis - 1] = strides[axis] * dims[axis];
        }
        let count = dims.iter().product();
        self.views[number as usize] = View { block, offset, dims, strides, count, is_placed: true };
    }

    /// Makes a buffer that the program allocates, or makes it anew.
    pub(super) fn alloc(
        &mut self,
        cx: &Cx,
        number: u32,
        buffer: &Buffer,
        dims: &DimBindings,
        budget: &Budget,
    ) -> Result<(), ProgramError> {
        if let Some(own) = &mut self.own
            && !own.iter().any(|(owned, _)| *owned == number)
        {
            own.push((number, std::mem::take(&mut self.views[number as usize])));
        }
        let view = &self.views[number as usize];
        if view.is_placed
            && let Some(Block::Own(bytes, _)) = self.blocks.get_mut(view.block)
        {
            bytes.fill(budget.fill());
            self.forget(number, buffer);
            return Ok(());
        }
        let bad = || ProgramError::BadBuffer(cx.terms().str(buffer.name).to_owned());
        let (size, shape) = size_of(cx, buffer.ty, dims).ok_or_else(bad)?;
        let (bytes, charge) = budget.alloc(size)?;
        let made = Block::Own(bytes, charge);
        let block = match self.free.pop() {
            Some(free) => {
                self.blocks[free] = made;
                free
            }
            None => {
                self.blocks.push(made);
                self.blocks.len() - 1
            }
        };
        self.place(number, block, 0, &shape);
        self.forget(number, buffer);
        Ok(())
    }

    /// A buffer is new: nobody has touched it.
    fn forget(&mut self, number: u32, buffer: &Buffer) {
        let (block, is_private) = (self.views[number as usize].block, self.own.is_some());
        if let Some(shadow) = &mut self.shadow {
            shadow.forget(block, is_private, buffer.is_shared);
        }
    }

    /// A device begins to run.
    pub(super) fn launch(&mut self) {
        self.shadow = Some(Shadow::new());
    }

    /// A block of threads begins.
    pub(super) fn next_block(&mut self) {
        self.shadow.iter_mut().for_each(Shadow::next_block);
    }

    /// All threads of a block have waited for each other.
    pub(super) fn next_epoch(&mut self) {
        self.shadow.iter_mut().for_each(Shadow::next_epoch);
    }

    /// A thread goes on, with the buffers that are its own.
    pub(super) fn enter(&mut self, thread: u32, own: Vec<(u32, View)>) {
        self.shadow.iter_mut().for_each(|shadow| shadow.be(thread));
        let own = self.exchange(own);
        self.own = Some(own);
    }

    /// A thread stops: the buffers that are its own.
    pub(super) fn leave(&mut self) -> Vec<(u32, View)> {
        let others = self.own.take().unwrap_or_default();
        self.exchange(others)
    }

    /// A thread is done with its buffers.
    pub(super) fn release(&mut self, own: Vec<(u32, View)>) {
        for (_, view) in own {
            self.blocks[view.block] = Block::Gone;
            self.free.push(view.block);
        }
    }

    /// Says what buffers are; what they were.
    fn exchange(&mut self, mut views: Vec<(u32, View)>) -> Vec<(u32, View)> {
        for (number, view) in &mut views {
            std::mem::swap(view, &mut self.views[*number as usize]);
        }
        views
    }

    /// Remembers an access to an element that lies inside.
    #[inline]
    fn touch(
        &mut self,
        access: Access,
        element: usize,
        size: usize,
        is_store: bool,
    ) -> Result<(), Mistake> {
        let Some(shadow) = &mut self.shadow else { return Ok(()) };
        let view = &self.views[access.buffer as usize];
        shadow.touch(view.block, view.offset + element * size, size, is_store)
    }

    /// The shape of a buffer.
    pub(super) fn shape(&self, number: u32) -> &[i64] {
        &self.views[number as usize].dims
    }

    /// The number of the element at scalar indices; `None` outside.
    #[inline]
    fn element(&self, access: Access, indices: &[Index], ints: &[i64]) -> Option<usize> {
        let view = &self.views[access.buffer as usize];
        if indices.len() != view.dims.len() {
            let index = ints[indices.first()?.reg as usize];
            return (0..view.count).contains(&index).then_some(index as usize);
        }
        let mut element = 0;
        for (axis, index) in indices.iter().enumerate() {
            let value = ints[index.reg as usize];
            if !(0..view.dims[axis]).contains(&value) {
                return None;
            }
            element += value * view.strides[axis];
        }
        Some(element as usize)
    }

    /// The number of the element of one lane.
    fn lane(&self, access: Access, indices: &[Index], ints: &[i64], lane: usize) -> Option<usize> {
        let view = &self.views[access.buffer as usize];
        let at = |index: &Index| ints[index.reg as usize + if index.is_vector { lane } else { 0 }];
        if indices.len() != view.dims.len() {
            let index = at(indices.first()?);
            return (0..view.count).contains(&index).then_some(index as usize);
        }
        let mut element = 0;
        for (axis, index) in indices.iter().enumerate() {
            let value = at(index);
            if !(0..view.dims[axis]).contains(&value) {
                return None;
            }
            element += value * view.strides[axis];
        }
        Some(element as usize)
    }

    fn bytes(&self, access: Access, element: usize, size: usize) -> Option<&[u8]> {
        let view = &self.views[access.buffer as usize];
        let bytes: &[u8] = match self.blocks.get(view.block)? {
            Block::Shared(bytes) => bytes,
            Block::Own(bytes, _) | Block::Borrowed(_, bytes) => bytes,
            Block::Gone => return None,
        };
        let start = view.offset + element * size;
        bytes.get(start..start + size)
    }

    /// Reads into registers; the lane that does not do, if one does not.
    pub(super) fn load(
        &mut self,
        access: Access,
        indices: &[Index],
        dst: Reg,
        ints: &mut [i64],
        floats: &mut [f64],
    ) -> Result<(), Fault> {
        let size = access.dtype.bits() as usize / 8;
        let view = &self.views[access.buffer as usize];
        // The side of a `select` that is not taken, where there is no nearest place to read.
        let is_empty = view.is_placed && view.count == 0;
        for lane in 0..access.lanes as usize {
            if is_empty || is_left_out(access, ints, lane) {
                match access.dtype.is_float() {
                    true => floats[dst as usize + lane] = 0.0,
                    false => ints[dst as usize + lane] = 0,
                }
                continue;
            }
            let element = match access.lanes {
                1 => self.element(access, indices, ints),
                _ => self.lane(access, indices, ints, lane),
            };
            let element = element.ok_or(Fault::outside(lane))?;
            self.touch(access, element, size, false)
                .map_err(|mistake| Fault { lane, mistake: Some(mistake) })?;
            let bytes = self.bytes(access, element, size).ok_or(Fault::outside(lane))?;
            let at = dst as usize + lane;
            match access.dtype {
                DType::F32 => floats[at] = f32::from_le_bytes(array(bytes)) as f64,
                DType::F64 => floats[at] = f64::from_le_bytes(array(bytes)),
                DType::F16 => floats[at] = f16::from_le_bytes(array(bytes)).to_f64(),
                DType::BF16 => floats[at] = bf16::from_le_bytes(array(bytes)).to_f64(),
                DType::I8 => ints[at] = i8::from_le_bytes(array(bytes)) as i64,
                DType::I16 => ints[at] = i16::from_le_bytes(array(bytes)) as i64,
                DType::I32 => ints[at] = i32::from_le_bytes(array(bytes)) as i64,
                DType::U8 => ints[at] = bytes[0] as i64,
                DType::BOOL => ints[at] = (bytes[0] != 0) as i64,
                DType::U16 => ints[at] = u16::from_le_bytes(array(bytes)) as i64,
                DType::U32 => ints[at] = u32::from_le_bytes(array(bytes)) as i64,
                DType::I64 | DType::U64 => ints[at] = i64::from_le_bytes(array(bytes)),
                _ => return Err(Fault::outside(lane)),
            }
        }
        Ok(())
    }

    /// Writes from registers; the lane that does not do, if one does not.
    pub(super) fn store(
        &mut self,
        access: Access,
        indices: &[Index],
        src: Reg,
        ints: &[i64],
        floats: &[f64],
    ) -> Result<(), Fault> {
        let size = access.dtype.bits() as usize / 8;
        for lane in (0..access.lanes as usize).filter(|&lane| !is_left_out(access, ints, lane)) {
            let outside = || Fault::outside(lane);
            let element = self.lane(access, indices, ints, lane).ok_or_else(outside)?;
            self.touch(access, element, size, true)
                .map_err(|mistake| Fault { lane, mistake: Some(mistake) })?;
            let view = &self.views[access.buffer as usize];
            let start = view.offset + element * size;
            let Some(Block::Own(bytes, _) | Block::Borrowed(_, bytes)) =
                self.blocks.get_mut(view.block)
            else {
                return Err(outside());
            };
            let bytes = bytes.get_mut(start..start + size).ok_or_else(outside)?;
            let at = src as usize + lane;
            match access.dtype {
                DType::F32 => bytes.copy_from_slice(&(floats[at] as f32).to_le_bytes()),
                DType::F64 => bytes.copy_from_slice(&floats[at].to_le_bytes()),
                DType::F16 => bytes.copy_from_slice(&f16::from_f64(floats[at]).to_le_bytes()),
                DType::BF16 => bytes.copy_from_slice(&bf16::from_f64(floats[at]).to_le_bytes()),
                // The register holds the value of the type, whose bytes are the first ones.
                _ => bytes.copy_from_slice(&ints[at].to_le_bytes()[..size]),
            }
        }
        Ok(())
    }

    /// Whether a buffer is read only.
    pub(super) fn is_shared(&self, number: u32) -> bool {
        let view = &self.views[number as usize];
        matches!(self.blocks.get(view.block), Some(Block::Shared(_)))
    }
}

/// Whether a condition around an access is false for a lane.
#[inline]
fn is_left_out(access: Access, ints: &[i64], lane: usize) -> bool {
    access.mask.is_some_and(|mask| ints[mask as usize + lane] == 0)
}

/// Bytes as an array of their number.
#[inline]
fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().unwrap_or([0; N])
}

/// Bytes and shape of a buffer whose symbols are bound.
pub(super) fn size_of(cx: &Cx, ty: Type, dims: &DimBindings) -> Option<(usize, Vec<usize>)> {
    let ty = Type(substitute(cx, ty.into(), dims).0);
    let (dtype, shape) = cx.terms().static_tensor(ty)?;
    let shape: Option<Vec<usize>> = shape.iter().map(|&dim| usize::try_from(dim).ok()).collect();
    let shape = shape?;
    let count = shape.iter().try_fold(1u64, |count, &dim| count.checked_mul(dim as u64))?;
    let bytes = dtype.bytes(count).filter(|&bytes| bytes <= isize::MAX as u64)?;
    (dtype.bits() >= 8).then_some((bytes as usize, shape))
}

/// The value of a dimension whose symbols are bound.
pub(super) fn extent(cx: &Cx, dim: Dim, dims: &DimBindings) -> Result<i64, ProgramError> {
    let dim = Dim(substitute(cx, dim.into(), dims).0);
    let unknown = || ProgramError::UnknownDim(cx.terms().dim_text(dim));
    cx.terms().dim_value(dim).ok_or_else(unknown)
}
