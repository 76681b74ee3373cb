//! A bench to be written.

fn main() {}
