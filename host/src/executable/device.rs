//! A module as what runs on a device.

use std::sync::Arc;

use crate::backend::{Emit, Launch};
use crate::ir::{Constant, Module};
use crate::plan::{Action, Callee, Entry};
use crate::target::Target;

use super::compile::{CompileOptions, Job, of};
use super::error::CompileError;

/// Kernels, and what is done with them.
#[derive(Debug)]
pub struct DeviceProgram {
    /// The kernels, as the driver of the device takes them.
    pub code: Vec<u8>,
    /// How each kernel is started, in the order of [`Entry::kernels`].
    pub launches: Vec<Launch>,
    /// Inputs, outputs and the calls between them.
    pub entry: Entry,
    /// In the order of [`Entry::constants`].
    pub constants: Vec<Arc<Constant>>,
}

impl DeviceProgram {
    /// Compiles the function `options.entry` of `module` and all that it calls.
    pub fn compile(
        module: &Module,
        target: &Target,
        options: &CompileOptions,
    ) -> Result<DeviceProgram, CompileError> {
        let job = Job::new(module, target, options)?;
        let is_written = |action: &Action| matches!(action, Action::Write(_));
        if !job.entry.body.steps.is_empty() || job.entry.body.actions.iter().any(is_written) {
            return Err(CompileError::DeviceSizes);
        }
        let is_plain = |action: &Action| match action {
            Action::Call(call) => matches!(call.callee, Callee::Kernel(_)),
            action => matches!(action, Action::Copy(_)),
        };
        if !job.entry.body.actions.iter().all(is_plain) {
            return Err(CompileError::DeviceChoice);
        }
        let units = job.emit(target, options, Emit::Assembly)?;
        let mut launches = Vec::with_capacity(job.kernels.len());
        for unit in &job.kernels {
            let launch = of(target).launch(target, &unit.kernel());
            launches.extend(launch.map_err(|error| unit.named(error))?);
        }
        let code = units.into_iter().flat_map(|unit| unit.bytes).collect();
        let Job { entry, constants, .. } = job;
        Ok(DeviceProgram { code, launches, entry, constants })
    }
}
