#![no_main]

use tenon_operators as _;

tenon_fuzz::fuzz!(onnx, field);
