//! Digests by which conversations and their texts are recognised.

use sha2::{Digest as _, Sha256};

/// Returns a digest of parts of any length that differs for different parts.
pub(crate) fn digest(parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    hasher.finalize().into()
}

/// Returns the first half of a digest as text: long enough that two of an owner are not equal by chance.
pub(crate) fn short(digest: &[u8; 32]) -> String {
    digest[..12].iter().fold(String::with_capacity(24), |mut text, byte| {
        let _infallible = std::fmt::Write::write_fmt(&mut text, format_args!("{byte:02x}"));
        text
    })
}
