//! What was measured of schedules, and the file that keeps it.
//!
//! A database is a file of lines. Each stands alone: it names the program, the target and what was found, so files merge by being
//! joined, several writers may append to one, and what a write left half done is one line that nobody reads. Lines are found by their
//! first bytes, and parsed when they are asked for.
//!
//! ```text
//! {"v":1,"program":"5f0c…","anchor":"91ab…","sizes":"07d2…","target":"c2…","found":"best","op":"matmul","ms":0.91,…}
//! {"v":1,"program":"5f0c…","anchor":"91ab…","sizes":"07d2…","target":"c2…","found":"tried","schedule":"3e11…","ms":1.02}
//! {"v":1,"program":"5f0c…","anchor":"91ab…","sizes":"07d2…","target":"c2…","found":"failed","schedule":"77a0…","why":"…"}
//! ```
//!
//! `docs/tuning.md` says who writes and who reads it.

#![deny(missing_docs)]

mod database;
mod digest;
mod record;

pub use database::{Appender, Database, Fit};
pub use digest::{DIGEST_LEN, digest};
pub use record::{Best, Found, Keys, Line};
