#![no_main]

tenon_fuzz::fuzz!(plugin, word);
