#![no_main]

tenon_fuzz::fuzz!(npy, npy_header);
