//! Private keys in blocks that are encoded in Base64 once more, as the command `base64` and files of deployments have them.

use tidegate_secrets::PRIVATE_KEY;

use crate::search::Span;

/// `-----BEGIN ` in Base64, up to the last character that does not depend on what follows.
const BEGINNING: &str = "LS0tLS1CRUdJTi";

/// The number of characters that contain the label of a block: `-----BEGIN ENCRYPTED PRIVATE KEY-----`.
const LABEL: usize = 56;

/// Returns the private keys of a text, each over all of its lines. The time is linear in the length of the text, which a model or a tool can
/// choose: of a block that is no private key, only the label is read.
pub(crate) fn spans(text: &str) -> Vec<Span> {
    let (mut spans, mut done) = (Vec::new(), 0);
    for (start, _) in text.match_indices(BEGINNING) {
        let block = text.as_bytes().get(start..).unwrap_or_default();
        if start < done || !is_private_key(block) {
            continue;
        }
        done = start + length(block);
        spans.push(Span { kind: PRIVATE_KEY, start, end: done });
    }
    spans
}

/// Returns whether the label of a block is that of a private key.
fn is_private_key(block: &[u8]) -> bool {
    let lines = block.iter().copied().take_while(|byte| is_base64(*byte) || byte.is_ascii_whitespace());
    let label: Vec<u8> = lines.filter(|byte| is_base64(*byte)).take(LABEL).collect();
    decoded(&label).windows(11).any(|part| part == b"PRIVATE KEY")
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// Returns the length of the lines of Base64 at the start of a text. The last one can be short.
fn length(text: &[u8]) -> usize {
    let run = |at: usize, is_part: fn(u8) -> bool| {
        text.iter().skip(at).position(|byte| !is_part(*byte)).map_or(text.len(), |length| at + length)
    };
    let is_blank = |byte: u8| matches!(byte, b' ' | b'\t' | b'\r');
    let (mut end, mut at) = (0, 0);
    loop {
        let first = run(at, is_blank);
        let last = run(first, is_base64);
        if last == first {
            return end;
        }
        (end, at) = (last, run(last, is_blank));
        if text.get(last - 1) == Some(&b'=') || text.get(at) != Some(&b'\n') {
            return end;
        }
        at += 1;
    }
}

fn decoded(text: &[u8]) -> Vec<u8> {
    let value = |byte: &u8| match byte {
        b'A'..=b'Z' => u32::from(byte - b'A'),
        b'a'..=b'z' => u32::from(byte - b'a') + 26,
        b'0'..=b'9' => u32::from(byte - b'0') + 52,
        b'+' => 62,
        _ => 63,
    };
    let four = |four: &[u8]| {
        let bits = four.iter().fold(0, |bits, byte| (bits << 6) | value(byte));
        bits.to_be_bytes().into_iter().skip(1)
    };
    text.chunks_exact(4).flat_map(four).collect()
}
