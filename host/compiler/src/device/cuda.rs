//! NVIDIA's devices.
//!
//! Everything is done in order on one stream of the first device, in the context that all of the process share. Inputs are copied
//! there and results back in every run; constants and code once.

use std::sync::Arc;

use cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, DevicePtr, DriverError, LaunchConfig,
    PushKernelArg, result, sys,
};
use cudarc::nvrtc::Ptx;

use super::DeviceError;
use crate::executable::DeviceProgram;
use crate::plan::{Action, Base, Call, Callee, Copy, Entry, EntryArgument, Place, Size};
use crate::runtime::dlpack::TensorBuffer;
use crate::runtime::signature::{TensorSpec, data_type};

/// A device of NVIDIA's.
pub struct Cuda {
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
}

/// A program on a device, with its memory.
pub struct Loaded {
    stream: Arc<CudaStream>,
    entry: Entry,
    kernels: Vec<Kernel>,
    constants: Vec<CudaSlice<u8>>,
    inputs: Vec<CudaSlice<u8>>,
    outputs: Vec<CudaSlice<u8>>,
    workspace: CudaSlice<u8>,
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
        let Entry { inputs, outputs, body, .. } = &program.entry;
        let of_specs = |specs: &[TensorSpec]| {
            specs.iter().map(|spec| self.memory(bytes_of(spec))).collect::<Result<Vec<_>, _>>()
        };
        let constants = program.constants.iter().map(|constant| {
            let mut memory = self.memory(constant.data.len() as u64)?;
            upload(&self.stream, &constant.data, &mut memory)?;
            Ok(memory)
        });
        Ok(Loaded {
            stream: self.stream.clone(),
            kernels,
            constants: constants.collect::<Result<_, DeviceError>>()?,
            inputs: of_specs(inputs)?,
            outputs: of_specs(outputs)?,
            workspace: self.memory(known(body.workspace))?,
            entry: program.entry.clone(),
        })
    }

    /// So much memory, which is never none.
    fn memory(&self, bytes: u64) -> Result<CudaSlice<u8>, DeviceError> {
        let action = || format!("make {bytes} bytes of memory");
        done_with(
            action,
            self.stream.alloc_zeros(usize::try_from(bytes).unwrap_or(usize::MAX).max(1)),
        )
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
        for (memory, input) in self.inputs.iter_mut().zip(inputs) {
            upload(&self.stream, input.bytes(), memory)?;
        }
        for action in &self.entry.body.actions {
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

    fn copy(&self, copy: &Copy) -> Result<(), DeviceError> {
        let [from, to] = [copy.from, copy.to].map(|place| self.address(place));
        let (bytes, stream) = (known(copy.bytes) as usize, self.stream.cu_stream());
        // SAFETY: both places have so many bytes by the plan, in memory that lives as long as this.
        let copied = unsafe { result::memcpy_dtod_async(to, from, bytes, stream) };
        done("copy a result", copied)
    }

    fn start(&self, kernel: &Kernel, args: &[EntryArgument]) -> Result<(), DeviceError> {
        let word = |arg: &EntryArgument| match *arg {
            EntryArgument::Memory(place) => self.address(place),
            // A shorter integer is the first bytes of it.
            EntryArgument::Scalar { value, .. } => known(value),
        };
        let words: Vec<u64> = args.iter().map(word).collect();
        let mut launch = self.stream.launch_builder(&kernel.function);
        words.iter().for_each(|word| {
            launch.arg(word);
        });
        // SAFETY: the kernel was generated for these arguments, addresses of memory as large as the plan says, which
        // lives as long as this, and integers no longer than eight bytes; it writes where the plan lets it.
        let started = unsafe { launch.launch(kernel.config) };
        done_with(|| format!("start kernel `{}`", kernel.symbol), started).map(drop)
    }

    fn address(&self, place: Place) -> u64 {
        let memory = match place.base {
            Base::Input(number) => &self.inputs[number],
            Base::Output(number) => &self.outputs[number],
            Base::Constant(number) => &self.constants[number],
            // A function that takes memory is none for a device.
            Base::Workspace | Base::Taken(_) => &self.workspace,
        };
        // There is one stream, so nothing has to wait for what is done with the address.
        memory.device_ptr(&self.stream).0 + known(place.offset)
    }

    fn results(&self) -> Result<Vec<TensorBuffer>, DeviceError> {
        let mut results = Vec::with_capacity(self.outputs.len());
        for (memory, spec) in self.outputs.iter().zip(&self.entry.outputs) {
            let mut bytes = done("copy a result back", self.stream.clone_dtoh(memory))?;
            done("run the kernels", self.stream.synchronize())?;
            bytes.truncate(bytes_of(spec) as usize);
            let Some(dtype) = data_type(spec.dtype) else {
                return Err(DeviceError::Driver {
                    action: "give a result".to_owned(),
                    message: format!("{spec} has no form outside of programs"),
                });
            };
            let shape = spec.static_shape().unwrap_or_default();
            results.push(TensorBuffer::from_bytes(&bytes, &shape, dtype)?);
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

fn upload(
    stream: &Arc<CudaStream>,
    bytes: &[u8],
    memory: &mut CudaSlice<u8>,
) -> Result<(), DeviceError> {
    if bytes.is_empty() {
        return Ok(());
    }
    done("copy to the device", stream.memcpy_htod(bytes, &mut memory.slice_mut(..bytes.len())))
}

fn done<T>(action: &str, result: Result<T, DriverError>) -> Result<T, DeviceError> {
    done_with(|| action.to_owned(), result)
}

fn done_with<T>(
    action: impl FnOnce() -> String,
    result: Result<T, DriverError>,
) -> Result<T, DeviceError> {
    result.map_err(|error| DeviceError::Driver { action: action(), message: error.to_string() })
}
