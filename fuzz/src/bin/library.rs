#![no_main]

tenon_fuzz::fuzz!(library, word);
