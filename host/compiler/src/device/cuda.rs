//! NVIDIA's devices.
//!
//! A device is a [`Device`]: memory, streams, and copies. A program runs in order on one stream of it, in the context that all of the
//! process share. Inputs are copied there and results back in every run; constants and code once.

use std::sync::Arc;

use cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, DevicePtr, DriverError, LaunchConfig,
    PushKernelArg, result, sys,
};
use cudarc::nvrtc::Ptx;

use super::DeviceError;
use crate::executable::DeviceProgram;
use crate::plan::{Action, Base, Call, Callee, Copy, Entry, EntryArgument, Place, Size};
use crate::runtime::device::{self, Device, Memory, Part, Stream};
use crate::runtime::dlpack::{Device as DeviceId, TensorBuffer};
use crate::runtime::signature::{TensorSpec, data_type};

/// What DLPack calls NVIDIA's devices.
const KIND: i32 = 2;

/// A device of NVIDIA's.
#[derive(Debug)]
pub struct Cuda {
    context: Arc<CudaContext>,
    /// What memory is made on.
    stream: Arc<CudaStream>,
}

/// A program on a device, with its memory.
pub struct Loaded {
    work: CudaWork,
    entry: Arc<Entry>,
    kernels: Vec<Kernel>,
    constants: Vec<Arc<dyn Memory>>,
    inputs: Vec<Arc<dyn Memory>>,
    outputs: Vec<Arc<dyn Memory>>,
    workspace: Arc<dyn Memory>,
}

/// A stream of a device.
#[derive(Debug)]
struct CudaWork {
    device: DeviceId,
    stream: Arc<CudaStream>,
    /// What memory is made on, in order: another stream waits for it before it uses what is new.
    maker: Arc<CudaStream>,
    /// What may still be worked on.
    kept: Vec<Arc<dyn Memory>>,
}

#[derive(Debug)]
struct CudaMemory {
    device: DeviceId,
    address: u64,
    bytes: usize,
    /// Gives it back.
    _slice: CudaSlice<u8>,
}

struct Kernel {
    symbol: String,
    function: CudaFunction,
    config: LaunchConfig,
}

impl Cuda {
    /// The first device.
    ///
    /// # Errors
    /// When there is no driver, or it finds no device.
    pub fn open() -> Result<Cuda, DeviceError> {
        // SAFETY: it opens the driver's library, whose code is trusted as that of the system is.
        if !unsafe { sys::is_culib_present() } {
            return Err(DeviceError::NoDriver);
        }
        done("begin", result::init())?;
        if done("count devices", CudaContext::device_count())? == 0 {
            return Err(DeviceError::NoDevice);
        }
        let context = done("open the first device", CudaContext::new(0))?;
        let stream = context.default_stream();
        Ok(Cuda { context, stream })
    }

    /// Puts a program on the device.
    pub fn load(&self, program: &DeviceProgram) -> Result<Loaded, DeviceError> {
        if program.launches.len() != program.kernels {
            return Err(DeviceError::ForProcessors);
        }
        let kernels = self.kernels(program)?;
        let Entry { inputs, outputs, body, .. } = &program.entry;
        let mut work = self.work_on(self.stream.clone());
        let memory = |bytes: u64| self.memory(usize::try_from(bytes).unwrap_or(usize::MAX));
        let of_specs = |specs: &[TensorSpec]| {
            specs.iter().map(|spec| memory(bytes_of(spec))).collect::<Result<Vec<_>, _>>()
        };
        let mut constants = Vec::with_capacity(program.constants.len());
        for constant in &program.constants {
            let place = memory(constant.data.len() as u64)?;
            work.write(&Part::all(place.clone()), &constant.data)?;
            constants.push(place);
        }
        Ok(Loaded {
            work,
            kernels,
            constants,
            inputs: of_specs(inputs)?,
            outputs: of_specs(outputs)?,
            workspace: memory(known(body.workspace))?,
            entry: Arc::new(program.entry.clone()),
        })
    }
}

impl Cuda {
    /// Puts the code on the device, of which a program that only copies has none.
    fn kernels(&self, program: &DeviceProgram) -> Result<Vec<Kernel>, DeviceError> {
        if program.launches.is_empty() {
            return Ok(Vec::new());
        }
        let code = String::from_utf8_lossy(&program.code).into_owned();
        let module = done("compile the kernels", self.context.load_module(Ptx::from_src(code)))?;
        let mut kernels = Vec::with_capacity(program.launches.len());
        for launch in &program.launches {
            let [grid, block] = [launch.shape.grid, launch.shape.block];
            let action = || format!("find kernel `{}`", launch.symbol);
            kernels.push(Kernel {
                symbol: launch.symbol.clone(),
                function: done_with(action, module.load_function(&launch.symbol))?,
                // What a block shares is part of the kernel.
                config: LaunchConfig {
                    grid_dim: grid.into(),
                    block_dim: block.into(),
                    shared_mem_bytes: 0,
                },
            });
        }
        Ok(kernels)
    }

    fn work_on(&self, stream: Arc<CudaStream>) -> CudaWork {
        CudaWork { device: self.id(), stream, maker: self.stream.clone(), kept: Vec::new() }
    }
}

impl Device for Cuda {
    fn id(&self) -> DeviceId {
        DeviceId { device_type: KIND, device_id: self.context.ordinal() as i32 }
    }

    fn memory(&self, bytes: usize) -> Result<Arc<dyn Memory>, device::DeviceError> {
        let action = || format!("make {bytes} bytes of memory");
        // Memory of no bytes would have no address.
        let slice = done_with(action, self.stream.alloc_zeros::<u8>(bytes.max(1)))?;
        let address = slice.device_ptr(&self.stream).0;
        Ok(Arc::new(CudaMemory { device: self.id(), address, bytes, _slice: slice }))
    }

    fn stream(&self) -> Result<Box<dyn Stream>, device::DeviceError> {
        let stream = done("make a stream", self.context.new_stream())?;
        Ok(Box::new(self.work_on(stream)))
    }
}

impl Memory for CudaMemory {
    fn device(&self) -> DeviceId {
        self.device
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn address(&self) -> u64 {
        self.address
    }
}

impl CudaWork {
    /// Keeps what is worked on until that is done.
    fn keep(&mut self, part: &Part) -> Result<(), device::DeviceError> {
        if self.kept.iter().any(|it| Arc::ptr_eq(it, part.memory())) {
            return Ok(());
        }
        if !Arc::ptr_eq(&self.stream, &self.maker) {
            done("wait for memory", self.stream.join(&self.maker))?;
        }
        self.kept.push(part.memory().clone());
        Ok(())
    }
}

impl Stream for CudaWork {
    fn device(&self) -> DeviceId {
        self.device
    }

    fn write(&mut self, to: &Part, bytes: &[u8]) -> Result<(), device::DeviceError> {
        to.check(self.device, bytes.len())?;
        if bytes.is_empty() {
            return Ok(());
        }
        self.keep(to)?;
        // SAFETY: the place has so many bytes, in memory of the device that is kept until this is done. The driver has copied what
        // lies in pages that it may move when it returns.
        let copied =
            unsafe { result::memcpy_htod_async(to.address(), bytes, self.stream.cu_stream()) };
        done("copy to the device", copied)
    }

    fn read(&mut self, from: &Part, bytes: &mut [u8]) -> Result<(), device::DeviceError> {
        from.check(self.device, bytes.len())?;
        if !bytes.is_empty() {
            self.keep(from)?;
            // SAFETY: the place has so many bytes, in memory of the device, and it is waited for below: as long as both live.
            let copied = unsafe {
                result::memcpy_dtoh_async(bytes, from.address(), self.stream.cu_stream())
            };
            done("copy a result back", copied)?;
        }
        self.synchronize()
    }

    fn copy(&mut self, from: &Part, to: &Part) -> Result<(), device::DeviceError> {
        from.check(self.device, to.bytes())?;
        to.check(self.device, from.bytes())?;
        if from.bytes() == 0 {
            return Ok(());
        }
        self.keep(from)?;
        self.keep(to)?;
        let (from_address, to_address) = (from.address(), to.address());
        // SAFETY: both places have so many bytes, in memory of the device that is kept until this is done.
        let copied = unsafe {
            result::memcpy_dtod_async(
                to_address,
                from_address,
                from.bytes(),
                self.stream.cu_stream(),
            )
        };
        done("copy on the device", copied)
    }

    fn synchronize(&mut self) -> Result<(), device::DeviceError> {
        done("run the kernels", self.stream.synchronize())?;
        self.kept.clear();
        Ok(())
    }
}

impl Loaded {
    /// What inputs have to be.
    pub fn inputs(&self) -> &[TensorSpec] {
        &self.entry.inputs
    }

    /// What results are.
    pub fn outputs(&self) -> &[TensorSpec] {
        &self.entry.outputs
    }

    /// Runs it on inputs that are what [`inputs`](Self::inputs) says, and waits for the results.
    pub fn run(&mut self, inputs: &[TensorBuffer]) -> Result<Vec<TensorBuffer>, DeviceError> {
        for (memory, input) in self.inputs.iter().zip(inputs) {
            let bytes = input.bytes();
            self.work.write(&Part::of(memory.clone(), 0, bytes.len())?, bytes)?;
        }
        let entry = self.entry.clone();
        for action in &entry.body.actions {
            match action {
                Action::Call(Call { callee: Callee::Kernel(kernel), args, .. }) => {
                    self.start(&self.kernels[*kernel], args)?;
                }
                Action::Copy(copy) => self.copy(copy)?,
                // No program for a device has others.
                _ => {}
            }
        }
        self.results()
    }

    fn copy(&mut self, copy: &Copy) -> Result<(), DeviceError> {
        let bytes = known(copy.bytes) as usize;
        let [from, to] = [copy.from, copy.to]
            .map(|place| Part::of(self.memory(place).clone(), known(place.offset) as usize, bytes));
        Ok(self.work.copy(&from?, &to?)?)
    }

    fn start(&self, kernel: &Kernel, args: &[EntryArgument]) -> Result<(), DeviceError> {
        let word = |arg: &EntryArgument| match *arg {
            EntryArgument::Memory(place) | EntryArgument::Taken(place) => self.address(place),
            // A shorter integer is the first bytes of it.
            EntryArgument::Scalar { value, .. } => known(value),
        };
        let words: Vec<u64> = args.iter().map(word).collect();
        let mut launch = self.work.stream.launch_builder(&kernel.function);
        words.iter().for_each(|word| {
            launch.arg(word);
        });
        // SAFETY: the kernel was generated for these arguments, addresses of memory as large as the plan says, which
        // lives as long as this, and integers no longer than eight bytes; it writes where the plan lets it.
        let started = unsafe { launch.launch(kernel.config) };
        Ok(done_with(|| format!("start kernel `{}`", kernel.symbol), started).map(drop)?)
    }

    fn memory(&self, place: Place) -> &Arc<dyn Memory> {
        match place.base {
            Base::Input(number) => &self.inputs[number],
            Base::Output(number) => &self.outputs[number],
            Base::Constant(number) => &self.constants[number],
            // A function that takes memory is none for a device.
            Base::Workspace | Base::Taken(_) => &self.workspace,
        }
    }

    fn address(&self, place: Place) -> u64 {
        // There is one stream, so nothing has to wait for what is done with the address.
        self.memory(place).address() + known(place.offset)
    }

    fn results(&mut self) -> Result<Vec<TensorBuffer>, DeviceError> {
        let mut results = Vec::with_capacity(self.outputs.len());
        for (memory, spec) in self.outputs.iter().zip(&self.entry.outputs) {
            let Some(dtype) = data_type(spec.dtype) else {
                return Err(DeviceError::NoForm(spec.to_string()));
            };
            let shape = spec.static_shape().unwrap_or_default();
            let mut result = TensorBuffer::zeros(&shape, dtype)?;
            let bytes = result.bytes_mut();
            self.work.read(&Part::of(memory.clone(), 0, bytes.len())?, bytes)?;
            results.push(result);
        }
        Ok(results)
    }
}

/// The number that a size is: a program for a device has no others.
fn known(size: Size) -> u64 {
    size.known().unwrap_or(0) as u64
}

fn bytes_of(spec: &TensorSpec) -> u64 {
    spec.bytes().unwrap_or(0)
}

fn done<T>(action: &str, result: Result<T, DriverError>) -> Result<T, device::DeviceError> {
    done_with(|| action.to_owned(), result)
}

fn done_with<T>(
    action: impl FnOnce() -> String,
    result: Result<T, DriverError>,
) -> Result<T, device::DeviceError> {
    let refused = |error: DriverError| device::DeviceError::Driver {
        action: action(),
        message: error.to_string(),
    };
    result.map_err(refused)
}
