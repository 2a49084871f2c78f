//! What there is not on a device.

/// An error of the code generator for NVIDIA's devices.
#[derive(Debug, thiserror::Error)]
pub(super) enum NvptxError {
    /// There is no such form.
    #[error("for this target there is PTX, and no {0}; use --emit ptx")]
    Form(&'static str),
    /// A piece of work that is no kernel.
    #[error("on a device there are kernels, and no {0}")]
    Work(&'static str),
    /// Nothing of it can be loaded.
    #[error("what is made for a device does not run in this process")]
    Load,
}
