#![no_main]

tenon_fuzz::fuzz!(signature, word);
