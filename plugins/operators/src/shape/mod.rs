//! Operators that change the shape and keep the elements, and those on shapes themselves.

pub mod arange;
pub mod broadcast_to;
pub mod expand_dims;
pub mod eye;
pub mod full;
pub mod layout_transform;
pub mod reshape;
mod same_elements;
pub mod shape_of;
pub mod shape_to_tensor;
mod simplify;
pub mod squeeze;
pub mod tensor_to_shape;
pub mod transpose;
