//! Private keys in blocks that are encoded in Base64 once more, as the command `base64` and files of deployments have them.

use tidegate_secrets::PRIVATE_KEY;

use crate::search::Span;

/// `-----BEGIN ` in Base64, up to the last character that does not depend on what follows.
const BEGINNING: &str = "LS0tLS1CRUdJTi";

/// The number of characters that contain the label of a block: `-----BEGIN ENCRYPTED PRIVATE KEY-----`.
const LABEL: usize = 56;

/// Returns the private keys of a text, each over all of its lines.
pub(crate) fn spans(text: &str) -> Vec<Span> {
    let (mut spans, mut done) = (Vec::new(), 0);
    for (start, _) in text.match_indices(BEGINNING) {
        if start < done {
            continue;
        }
        let end = start + length(&text[start..]);
        let label: Vec<u8> = text[start..end].bytes().filter(|byte| is_base64(*byte)).take(LABEL).collect();
        if decoded(&label).windows(11).any(|part| part == b"PRIVATE KEY") {
            spans.push(Span { kind: PRIVATE_KEY, start, end });
            done = end;
        }
    }
    spans
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// Returns the length of the lines of Base64 at the start of a text. The last one can be short.
fn length(text: &str) -> usize {
    let (mut end, mut at) = (0, 0);
    for line in text.split_inclusive('\n') {
        let inner = line.trim();
        let own = line.len() - line.trim_start().len();
        let run = inner.bytes().position(|byte| !is_base64(byte)).unwrap_or(inner.len());
        if run == 0 {
            break;
        }
        end = at + own + run;
        at += line.len();
        if run < inner.len() || inner.ends_with('=') {
            break;
        }
    }
    end
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
