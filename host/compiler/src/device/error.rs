//! Why something does not run on a device.

use crate::runtime::dlpack::TensorError;

/// An error of a device, by who can act on it.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The machine has no driver.
    #[error("there is no driver for NVIDIA's devices here: no `libcuda.so` is found")]
    NoDriver,
    /// The driver has no device.
    #[error("the driver for NVIDIA's devices finds none")]
    NoDevice,
    /// The device refuses.
    #[error(transparent)]
    Device(#[from] crate::runtime::device::DeviceError),
    /// A result that nothing outside of programs can have.
    #[error("{0} has no form outside of programs")]
    NoForm(String),
    /// A program calls objects of a vendor's, which are for processors.
    #[error("some of its programs were compiled for processors, by the code generators of vendors")]
    ForProcessors,
    /// There is no memory for results.
    #[error("no memory: {0}")]
    Memory(#[from] TensorError),
}
