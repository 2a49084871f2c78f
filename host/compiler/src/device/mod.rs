//! Running on devices, through their drivers.
//!
//! A driver is looked for when a device is asked for, and never before: a program that has this part runs where there is none. What
//! runs is a [`DeviceProgram`](crate::executable::DeviceProgram); this folder knows nothing of how it was made.

mod cuda;
mod error;

pub use cuda::{Cuda, Loaded};
pub use error::DeviceError;
