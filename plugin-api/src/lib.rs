//! All that the author of a Tenon plugin sees.
