#![no_main]

tenon_fuzz::fuzz!(wire, field);
