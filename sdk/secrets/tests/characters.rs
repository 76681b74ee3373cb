//! Secrets begin and end where characters do, whatever is around them and wherever a limit is.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use tidegate_secrets::{find, scan, without_secrets};

/// What begins secrets whose end a limit can decide.
const BEGINNINGS: [&str; 10] = [
    "-----BEGIN ",
    "-----BEGIN RSA PRIVATE KEY-----",
    "Private-Lines: ",
    "cookie: a=Zk3v9QpX7LmT2w; b=",
    "Authorization: ",
    "curl -u bob:",
    "mysql -p",
    "password: \"",
    "https://bob:",
    "the password is ",
];

#[test]
fn what_is_found_is_whole_characters() {
    let mut count = 0;
    for beginning in BEGINNINGS {
        for filling in ["é", "漢", "😀", "²", "٣", "x9é"] {
            for length in [100, 118, 120, 500, 512, 2_040, 2_050, 8_190, 8_200] {
                for pad in 0..4 {
                    let text = format!("{beginning}{}{}\n", &"z7Q"[..pad], filling.repeat(length / filling.len() + 2));
                    for found in find(&text).iter().chain(&scan(text.as_bytes(), None).found) {
                        assert!(
                            text.get(found.start..found.end).is_some(),
                            "{found:?} of {beginning}{filling} {length} {pad}"
                        );
                    }
                    assert!(!without_secrets(&text).is_empty());
                    count += 1;
                }
            }
        }
    }
    assert_eq!(count, 10 * 6 * 9 * 4);
}
