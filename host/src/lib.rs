//! The Tenon host.
