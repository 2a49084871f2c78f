//! Files: what the host reads and writes besides programs.
//!
//! Reading maps the file where its bytes can be used as they stand ([`Mapping`], [`Weights`]) and
//! copies where they must be converted (`.npy`, `.npz`). A header is never believed: every size
//! that a file states is compared with what the file holds before memory is asked for.
//! Writing goes through [`Outputs`]: a reader sees the old files or the whole new ones, and none of the
//! [`InputFiles`] is replaced.

mod digest;
mod dtype;
mod error;
mod inputs;
mod mapping;
mod npy;
mod npz;
mod outputs;
mod regular;
mod weights;

pub use dtype::{from_safetensors, to_safetensors};
pub use error::FileError;
pub use inputs::InputFiles;
pub use mapping::{MappedSlice, Mapping};
pub use npy::{Array, ArrayView, NpyProblem, NpyType, read_npy, write_npy};
pub use npz::{read_npz, write_npz, write_npz_among};
pub use outputs::{Outputs, wait_for_writes, write_atomically};
pub use weights::{Weight, WeightView, Weights, WeightsProblem, write_weights};

pub use digest::{Hashing, sha256};
pub use error::quoted;
pub use outputs::Mode;
pub(crate) use outputs::aside_of;
pub use outputs::is_stream;
pub use regular::{open_regular, read_at_most, read_text};
