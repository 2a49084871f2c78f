//! A module as what runs on a device.

use std::sync::Arc;

use crate::backend::{Emit, Launch};
use crate::ir::{Constant, Module};
use crate::plan::{Action, Callee, Entry, default_function};
use crate::target::Target;

use super::compile::{CompileOptions, Job, of};
use super::error::CompileError;

/// Kernels, and what is done with them.
#[derive(Debug)]
pub struct DeviceProgram {
    /// The kernels, as the driver of the device takes them.
    pub code: Vec<u8>,
    /// How each kernel is started, by its number.
    pub launches: Vec<Launch>,
    /// How many kernels are called. Those of a vendor's are started by nothing here.
    pub kernels: usize,
    /// Inputs, outputs and the calls between them.
    pub entry: Entry,
    /// By their numbers.
    pub constants: Vec<Arc<Constant>>,
}

impl DeviceProgram {
    /// Compiles the function `options.function` of `module`, by default `main` or the only one, and all that it calls.
    pub fn compile(
        module: &Module,
        target: &Target,
        options: &CompileOptions,
    ) -> Result<DeviceProgram, CompileError> {
        let function = match &options.function {
            Some(name) => name.clone(),
            None => default_function(module)?,
        };
        let options = &CompileOptions { function: Some(function), ..options.clone() };
        let job = Job::new(module, target, options)?;
        let body = &job.code.entries[0].body;
        let is_written = |action: &Action| matches!(action, Action::Write(_));
        if !body.steps.is_empty() || body.actions.iter().any(is_written) {
            return Err(CompileError::DeviceSizes);
        }
        let is_plain = |action: &Action| match action {
            Action::Call(call) => matches!(call.callee, Callee::Kernel(_)),
            action => matches!(action, Action::Copy(_)),
        };
        if !body.actions.iter().all(is_plain) {
            return Err(CompileError::DeviceChoice);
        }
        let units = job.emit(target, options, Emit::Assembly)?;
        let mut launches = Vec::with_capacity(job.kernels.len());
        for unit in &job.kernels {
            let launch = of(target).launch(target, &unit.kernel());
            launches.extend(launch.map_err(|error| unit.named(error))?);
        }
        let Job { mut code, constants, .. } = job;
        let (kernels, entry) = (code.kernels.len(), code.entries.remove(0));
        let code = units.into_iter().flat_map(|unit| unit.bytes).collect();
        Ok(DeviceProgram { code, launches, kernels, entry, constants })
    }
}
