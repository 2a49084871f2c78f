#![no_main]

tenon_fuzz::fuzz!(manifest, word);
