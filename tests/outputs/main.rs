//! What the program leaves behind: its outputs are whole and of one run, whatever ends it, and never in the place of
//! an input or a device. An object that it makes can be linked. Other
//! programs do the same through a session.

mod arrays;
mod atomic;
mod cache;
mod embedding;
mod externals;
mod functions;
mod house;
mod objects;
mod once;
mod places;
mod processors;
mod python;
mod ranges;
mod saved;
mod state;
mod weights;
mod weights_file;
