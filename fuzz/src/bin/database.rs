#![no_main]

tenon_fuzz::fuzz!(database, word);
