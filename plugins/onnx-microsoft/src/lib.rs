//! Import of the operators of `com.microsoft`, the domain of ONNX Runtime's own, as exporters and its optimizer write them.
//!
//! Each is put together from Tenon's operators; whoever leaves this library out has no `com.microsoft`, and all else.

mod activations;
mod attention;
mod embedding;
mod grouped_attention;
mod heads;
mod normalizations;
mod packed_weights;
mod products;
mod quantized;
mod quantized_lstm;
mod quantized_rows;
mod rotary_embedding;
mod steps;

tenon_plugin_api::plugin! {
    id = "tenon.onnx.microsoft",
    summary = "Import of the operators of ONNX Runtime's own domain",
    license = "Apache-2.0 OR MIT"
}
