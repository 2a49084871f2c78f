#![no_main]

tenon_fuzz::fuzz!(target, word);
