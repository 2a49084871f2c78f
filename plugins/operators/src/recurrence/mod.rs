//! Networks that read a sequence step by step, and carry a state from one step to the next.
//!
//! What a step takes from the data alone is a product of all of them at once, and no part of these operators.

mod activation;
mod bytes;
pub mod gru_steps;
pub mod lstm_steps;
mod onnx;
mod programs;
pub mod quantized_lstm_steps;
pub mod rnn_steps;
mod sequence;
