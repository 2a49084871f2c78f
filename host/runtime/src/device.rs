//! Devices as values: memory, copies, and streams of work.
//!
//! ```
//! use tenon_runtime::device::{Cpu, Device, Part};
//!
//! let device = Cpu::new();
//! let mut stream = device.stream()?;
//! let memory = device.memory(16)?;
//! stream.write(&Part::of(memory.clone(), 4, 8)?, &[7; 8])?;
//! let mut bytes = [0; 8];
//! stream.read(&Part::of(memory, 4, 8)?, &mut bytes)?;
//! assert_eq!(bytes, [7; 8]);
//! # Ok::<(), tenon_runtime::device::DeviceError>(())
//! ```
//!
//! The processor is one, NVIDIA's devices are others (`tenon_compiler::device`), and a vendor's is a value of a type of its own. Who
//! runs code on a device starts it on a stream of that; how, is the device's.
//!
//! What is given to a stream is done in the order in which it is given, and may be done later; work of different streams has no order but
//! by [`Stream::synchronize`]. Memory lives as long as a handle on it, and a stream keeps what it works on.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::dlpack::{DataType, Device as DeviceId, TensorBuffer, TensorError};

/// Bytes on whose boundary memory begins, of whatever device.
pub const ALIGN: usize = 64;

/// Why a device does not do what it is asked.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum DeviceError {
    /// There is not so much memory.
    #[error("there is no memory for {bytes} bytes")]
    Memory { bytes: usize, source: TensorError },
    /// A part that memory does not have.
    #[error("bytes {at} to {end} are no part of memory of {bytes} bytes")]
    Range { at: usize, end: usize, bytes: usize },
    /// Bytes that are not as many as there is place for.
    #[error("{given} bytes are copied to or from a place of {expected}")]
    Length { given: usize, expected: usize },
    /// Memory of another device than the stream's.
    #[error("a stream of {stream} is given memory of {memory}")]
    OtherDevice { stream: String, memory: String },
    /// The driver refuses.
    #[error("the driver could not {action}: {message}")]
    Driver { action: String, message: String },
}

/// What has memory and does work. Handles may be shared by threads.
pub trait Device: fmt::Debug + Send + Sync {
    /// What DLPack calls it.
    fn id(&self) -> DeviceId;

    /// Memory of so many bytes, on a boundary of [`ALIGN`]; what is in it is not said.
    ///
    /// # Errors
    /// When there is not so much.
    fn memory(&self, bytes: usize) -> Result<Arc<dyn Memory>, DeviceError>;

    /// A stream of work, one of many.
    ///
    /// # Errors
    /// When the device makes no more.
    fn stream(&self) -> Result<Box<dyn Stream>, DeviceError>;
}

/// Memory of a device, given back when the last handle is dropped.
pub trait Memory: Any + fmt::Debug + Send + Sync {
    /// The device.
    fn device(&self) -> DeviceId;

    /// How large it is.
    fn bytes(&self) -> usize;

    /// Where it begins, as the device's code sees it, and as the `data` of a `DLTensor` has it.
    fn address(&self) -> u64;
}

/// Work of a device that is done in order.
pub trait Stream: fmt::Debug + Send {
    /// The device.
    fn device(&self) -> DeviceId;

    /// Copies bytes to the device. They may be changed when it returns.
    ///
    /// # Errors
    /// When they are not as many as the place has, it is another device's, or the driver refuses.
    fn write(&mut self, to: &Part, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Copies bytes from the device, and waits for them and for all that the stream was given before.
    ///
    /// # Errors
    /// As those of [`Stream::write`], and what work before failed with.
    fn read(&mut self, from: &Part, bytes: &mut [u8]) -> Result<(), DeviceError>;

    /// Copies within the device. The places have the same size and no byte in common, or are the same.
    ///
    /// # Errors
    /// As those of [`Stream::write`].
    fn copy(&mut self, from: &Part, to: &Part) -> Result<(), DeviceError>;

    /// Waits for all that it was given.
    ///
    /// # Errors
    /// What some of it failed with.
    fn synchronize(&mut self) -> Result<(), DeviceError>;
}

/// A part of memory, of so many bytes from one on.
#[derive(Clone, Debug)]
pub struct Part {
    memory: Arc<dyn Memory>,
    at: usize,
    bytes: usize,
}

impl Part {
    /// # Errors
    /// When the memory ends before.
    pub fn of(memory: Arc<dyn Memory>, at: usize, bytes: usize) -> Result<Part, DeviceError> {
        let end = at.checked_add(bytes).filter(|&end| end <= memory.bytes());
        match end {
            Some(_) => Ok(Part { memory, at, bytes }),
            None => {
                let end = at.saturating_add(bytes);
                Err(DeviceError::Range { at, end, bytes: memory.bytes() })
            }
        }
    }

    /// All of it.
    pub fn all(memory: Arc<dyn Memory>) -> Part {
        let bytes = memory.bytes();
        Part { memory, at: 0, bytes }
    }

    /// What it is a part of.
    pub fn memory(&self) -> &Arc<dyn Memory> {
        &self.memory
    }

    /// How large it is.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How far behind the first byte of the memory it begins.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Where it begins, as the device's code sees it.
    pub fn address(&self) -> u64 {
        self.memory.address() + self.at as u64
    }

    /// Refuses bytes that are not as many, and a stream of another device.
    ///
    /// # Errors
    /// In these two cases.
    pub fn check(&self, stream: DeviceId, bytes: usize) -> Result<(), DeviceError> {
        if bytes != self.bytes {
            return Err(DeviceError::Length { given: bytes, expected: self.bytes });
        }
        if stream != self.memory.device() {
            let [stream, memory] = [stream, self.memory.device()].map(name_of);
            return Err(DeviceError::OtherDevice { stream, memory });
        }
        Ok(())
    }
}

/// Copies from one device to another over memory of the processor's, and waits until it is done.
///
/// # Errors
/// When the sizes differ, a stream is of another device than its memory, or a driver refuses.
pub fn transfer(
    from: (&mut dyn Stream, &Part),
    to: (&mut dyn Stream, &Part),
) -> Result<(), DeviceError> {
    to.1.check(to.0.device(), from.1.bytes())?;
    let mut bytes = Vec::new();
    let missing = bytes.try_reserve_exact(from.1.bytes()).is_err();
    if missing {
        let shape = vec![i64::try_from(from.1.bytes()).unwrap_or(i64::MAX)];
        let source = TensorError::Memory { shape, bytes: from.1.bytes() };
        return Err(DeviceError::Memory { bytes: from.1.bytes(), source });
    }
    bytes.resize(from.1.bytes(), 0);
    from.0.read(from.1, &mut bytes)?;
    to.0.write(to.1, &bytes)?;
    to.0.synchronize()
}

/// A device in messages: DLPack's number of its kind, and which one of these.
fn name_of(DeviceId { device_type, device_id }: DeviceId) -> String {
    match device_type {
        1 => "the processor".to_owned(),
        2 => format!("CUDA device {device_id}"),
        kind => format!("device {device_id} of kind {kind}"),
    }
}

/// The processor. Its streams do everything at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu;

impl Cpu {
    /// The only one.
    pub fn new() -> Cpu {
        Cpu
    }
}

impl Device for Cpu {
    fn id(&self) -> DeviceId {
        DeviceId::CPU
    }

    fn memory(&self, bytes: usize) -> Result<Arc<dyn Memory>, DeviceError> {
        let shape = [i64::try_from(bytes).unwrap_or(i64::MAX)];
        let mut buffer = TensorBuffer::zeros(&shape, DataType::U8)
            .map_err(|source| DeviceError::Memory { bytes, source })?;
        let address = buffer.bytes_mut().as_mut_ptr().expose_provenance() as u64;
        Ok(Arc::new(CpuMemory { address, bytes, buffer: Mutex::new(buffer) }))
    }

    fn stream(&self) -> Result<Box<dyn Stream>, DeviceError> {
        Ok(Box::new(CpuStream))
    }
}

/// Memory of the processor. Who has its address may write it while no stream does.
struct CpuMemory {
    address: u64,
    bytes: usize,
    buffer: Mutex<TensorBuffer>,
}

impl fmt::Debug for CpuMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CpuMemory").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Memory for CpuMemory {
    fn device(&self) -> DeviceId {
        DeviceId::CPU
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn address(&self) -> u64 {
        self.address
    }
}

#[derive(Debug)]
struct CpuStream;

impl CpuStream {
    /// The memory of a part that has so many bytes.
    fn memory<'p>(&self, part: &'p Part, bytes: usize) -> Result<&'p CpuMemory, DeviceError> {
        part.check(DeviceId::CPU, bytes)?;
        let memory: &dyn Any = &**part.memory();
        // Another one that says that it is the processor's.
        let foreign = || DeviceError::OtherDevice {
            stream: name_of(DeviceId::CPU),
            memory: "somebody else".to_owned(),
        };
        memory.downcast_ref().ok_or_else(foreign)
    }
}

impl CpuMemory {
    /// Does something with the bytes of a part.
    fn with<T>(&self, part: &Part, act: impl FnOnce(&mut [u8]) -> T) -> T {
        let mut buffer = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        act(&mut buffer.bytes_mut()[part.at()..part.at() + part.bytes()])
    }
}

impl Stream for CpuStream {
    fn device(&self) -> DeviceId {
        DeviceId::CPU
    }

    fn write(&mut self, to: &Part, bytes: &[u8]) -> Result<(), DeviceError> {
        self.memory(to, bytes.len())?.with(to, |place| place.copy_from_slice(bytes));
        Ok(())
    }

    fn read(&mut self, from: &Part, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.memory(from, bytes.len())?.with(from, |place| bytes.copy_from_slice(place));
        Ok(())
    }

    fn copy(&mut self, from: &Part, to: &Part) -> Result<(), DeviceError> {
        let (source, target) = (self.memory(from, to.bytes())?, self.memory(to, from.bytes())?);
        if source.address == target.address {
            let mut buffer = source.buffer.lock().unwrap_or_else(PoisonError::into_inner);
            buffer.bytes_mut().copy_within(from.at()..from.at() + from.bytes(), to.at());
            return Ok(());
        }
        // One after the other, so that two that copy crosswise wait for nothing.
        let bytes = source.with(from, |place| place.to_vec());
        target.with(to, |place| place.copy_from_slice(&bytes));
        Ok(())
    }

    fn synchronize(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(memory: &Arc<dyn Memory>, at: usize, bytes: usize) -> Part {
        Part::of(memory.clone(), at, bytes).unwrap()
    }

    fn read(stream: &mut dyn Stream, part: &Part) -> Vec<u8> {
        let mut bytes = vec![0; part.bytes()];
        stream.read(part, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn bytes_go_there_and_back() {
        let device = Cpu::new();
        let mut stream = device.stream().unwrap();
        let [a, b] = [8, 8].map(|bytes| device.memory(bytes).unwrap());
        assert!(a.address().is_multiple_of(ALIGN as u64) && a.device() == device.id());
        stream.write(&Part::all(a.clone()), &[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
        stream.copy(&part(&a, 1, 3), &part(&b, 4, 3)).unwrap();
        stream.copy(&part(&a, 0, 4), &part(&a, 4, 4)).unwrap();
        stream.synchronize().unwrap();
        assert_eq!(read(&mut *stream, &part(&b, 4, 3)), [2, 3, 4]);
        assert_eq!(read(&mut *stream, &Part::all(a)), [1, 2, 3, 4, 1, 2, 3, 4]);
        let mut other = device.stream().unwrap();
        let c = Part::all(device.memory(3).unwrap());
        transfer((&mut *stream, &part(&b, 4, 3)), (&mut *other, &c)).unwrap();
        assert_eq!(read(&mut *other, &c), [2, 3, 4]);
    }

    #[test]
    fn nothing_is_as_good_as_something() {
        let device = Cpu::new();
        let mut stream = device.stream().unwrap();
        let nothing = Part::all(device.memory(0).unwrap());
        stream.write(&nothing, &[]).unwrap();
        stream.copy(&nothing, &nothing).unwrap();
        assert!(read(&mut *stream, &nothing).is_empty());
    }

    /// Memory of a device that there is not.
    #[derive(Debug)]
    struct Elsewhere;

    impl Memory for Elsewhere {
        fn device(&self) -> DeviceId {
            DeviceId { device_type: 2, device_id: 1 }
        }

        fn bytes(&self) -> usize {
            4
        }

        fn address(&self) -> u64 {
            0
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let device = Cpu::new();
        let mut stream = device.stream().unwrap();
        let memory = device.memory(4).unwrap();
        for (at, bytes) in [(2, 3), (5, 0), (usize::MAX, 1)] {
            let error = Part::of(memory.clone(), at, bytes).unwrap_err();
            assert!(error.to_string().contains("are no part of memory of 4 bytes"), "{error}");
        }
        let error = stream.write(&Part::all(memory), &[0; 3]).unwrap_err();
        assert_eq!(error.to_string(), "3 bytes are copied to or from a place of 4");
        let error = stream.write(&Part::all(Arc::new(Elsewhere)), &[0; 4]).unwrap_err();
        let told = "a stream of the processor is given memory of CUDA device 1";
        assert_eq!(error.to_string(), told);
        let error = device.memory(usize::MAX).unwrap_err();
        assert!(matches!(error, DeviceError::Memory { bytes: usize::MAX, .. }), "{error}");
    }
}
