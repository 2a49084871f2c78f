#![no_main]

tenon_fuzz::fuzz!(trace, word);
