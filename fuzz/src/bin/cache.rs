#![no_main]

tenon_fuzz::fuzz!(cache, word);
