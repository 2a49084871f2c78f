#![no_main]

tenon_fuzz::fuzz!(registry, word);
