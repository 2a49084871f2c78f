//! The attribute macros of `tenon-plugin-api`.
