#![no_main]

tenon_fuzz::fuzz!(pipeline, word);
