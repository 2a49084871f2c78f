//! Operators that say where a value lies.

pub mod to_vdevice;
