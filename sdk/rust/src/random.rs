//! Power `random`: random numbers from the system's generator for cryptographic use. Always granted. In a guest,
//! `std::hash::RandomState` always has the same keys.

use crate::host;

/// The most bytes that one call of the host gives.
const CHUNK: usize = 4096;

/// Fills `bytes` with random bytes.
pub fn fill(bytes: &mut [u8]) {
    for chunk in bytes.chunks_mut(CHUNK) {
        let length = u32::try_from(chunk.len()).unwrap_or(u32::MAX);
        chunk.copy_from_slice(&host::random_bytes(length));
    }
}

/// Returns a random number.
pub fn number() -> u64 {
    let mut bytes = [0; 8];
    fill(&mut bytes);
    u64::from_le_bytes(bytes)
}
