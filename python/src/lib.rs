//! Tenon in Python: the classes that the package `tenon` is over.
//!
//! Each is a handle on what `tenon_compiler` has, immutable or guarded, so that threads may share it. What takes time lets go of the
//! interpreter. All that Python's users see beside these classes is written in Python, in `src-py/tenon`.

mod arrays;
mod dlpack;
mod edit;
mod errors;
mod executable;
mod extensions;
mod given;
mod instruments;
mod module;
mod passes;
mod session;
mod state;
mod terms;
mod worker;

use pyo3::prelude::*;

/// What the package `tenon` is over; its names are not for use from elsewhere.
#[pymodule]
mod _core {
    #[pymodule_export]
    use super::arrays::Array;
    #[pymodule_export]
    use super::edit::Edit;
    #[pymodule_export]
    use super::executable::Executable;
    #[pymodule_export]
    use super::instruments::NativeInstrument;
    #[pymodule_export]
    use super::module::{Function, Module};
    #[pymodule_export]
    use super::passes::Pass;
    #[pymodule_export]
    use super::session::Session;
    #[pymodule_export]
    use super::state::{Flag, State};
    #[pymodule_export]
    use super::worker::serve;
    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
