#![no_main]

tenon_fuzz::fuzz!(npz, npz_entry);
