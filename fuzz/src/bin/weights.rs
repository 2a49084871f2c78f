#![no_main]

tenon_fuzz::fuzz!(weights, weights_header);
