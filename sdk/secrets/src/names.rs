//! Names whose value is a secret: of variables, keys of files, headers, flags, and words of prose.

use crate::words::{GLUED, JOINED_TO_VENDORS, MENTIONS, OTHERS, PASSWORDS, QUALIFIERS, TOKENS, VENDORS, WEAK, Words};

/// How much a name tells about its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strength {
    /// The value can be a key: what looks random is one.
    Weak,
    /// The value is a key or a token, which machines make.
    Token,
    /// The value is a password, which people choose: it can be anything that is no ordinary word.
    Password,
}

use Strength::{Password, Token, Weak};

/// By the last letter of a name or a qualifier: the letters before it, one bit each. Most words of a text are none by this alone.
const TAILS: [u32; 26] = tails();

const fn tails() -> [u32; 26] {
    let lists: [Words; 5] = [PASSWORDS, TOKENS, WEAK, GLUED, QUALIFIERS];
    let mut table = [0; 26];
    let mut at = 0;
    while at < lists.len() {
        table = with_tails(table, lists[at].text().as_bytes());
        at += 1;
    }
    table
}

const fn with_tails(mut table: [u32; 26], words: &[u8]) -> [u32; 26] {
    let mut end = 2;
    while end <= words.len() {
        let (before, last) = (words[end - 2], words[end - 1]);
        let is_end = end == words.len() || words[end] == b' ';
        if is_end && last.is_ascii_lowercase() && before.is_ascii_lowercase() {
            table[(last - b'a') as usize] |= 1 << (before - b'a');
        }
        end += 1;
    }
    table
}

/// Whether a name, or what may be behind one, can end with these letters.
pub(crate) fn may_end(word: &[u8]) -> bool {
    let [.., before, last] = word else { return false };
    let (before, last) = (before.to_ascii_lowercase(), last.to_ascii_lowercase());
    if !last.is_ascii_lowercase() || !before.is_ascii_lowercase() {
        return true;
    }
    TAILS[usize::from(last - b'a')] & 1 << (before - b'a') != 0
}

/// The longest name that is looked at.
pub(crate) const LONGEST_NAME: usize = 64;

/// What a name says about its value; `None`: nothing. Case does not count, and neither does how its words are joined.
#[must_use]
pub fn strength(name: &str) -> Option<Strength> {
    Name::of(name.as_bytes()).strength()
}

/// Whether a name has to do with secrets, in any of its words: what is known of its meaning is less than what [`strength`] needs, so that a
/// mistyped one counts too.
#[must_use]
pub fn mentions_secret(name: &str) -> bool {
    let name = name.to_lowercase();
    MENTIONS.text().split(' ').any(|word| name.contains(word))
}

/// A name, lower-case, its words joined by `_`.
pub(crate) struct Name {
    text: [u8; LONGEST_NAME],
    length: usize,
}

impl Name {
    /// The last bytes of it count where it is longer than a name.
    pub(crate) fn of(name: &[u8]) -> Self {
        let mut own = Self { text: [0; LONGEST_NAME], length: 0 };
        let mut previous = b'_';
        for (at, byte) in name.iter().copied().enumerate() {
            let is_part = byte.is_ascii_alphanumeric() || !byte.is_ascii();
            let next_is_small = name.get(at + 1).is_some_and(u8::is_ascii_lowercase);
            let humps = byte.is_ascii_uppercase()
                && (previous.is_ascii_lowercase()
                    || previous.is_ascii_digit()
                    || (next_is_small && previous.is_ascii_uppercase()));
            if (!is_part || humps) && own.length > 0 && own.text[own.length - 1] != b'_' {
                own.push(b'_');
            }
            if is_part {
                own.push(byte.to_ascii_lowercase());
            }
            previous = byte;
        }
        while own.length > 0 && own.text[own.length - 1] == b'_' {
            own.length -= 1;
        }
        own
    }

    fn push(&mut self, byte: u8) {
        if self.length == LONGEST_NAME {
            self.text.copy_within(1.., 0);
            self.length -= 1;
        }
        self.text[self.length] = byte;
        self.length += 1;
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.text[..self.length]
    }

    pub(crate) fn strength(&self) -> Option<Strength> {
        let mut name = self.as_bytes();
        for _ in 0..3 {
            if OTHERS.iter().any(|other| ends(name, other)) {
                return None;
            }
            // Nobody writes another word that ends so: `PGPASSWORD`, `dbpasswd`.
            if GLUED.iter().any(|end| name.ends_with(end)) {
                return Some(Password);
            }
            let longest = |words: Words| words.iter().filter(|end| ends(name, end)).map(<[u8]>::len).max();
            let known = [(PASSWORDS, Password), (TOKENS, Token), (WEAK, Weak)];
            let longest = known.into_iter().filter_map(|(words, strength)| Some((longest(words)?, strength))).max();
            if let Some((_, strength)) = longest {
                return Some(strength);
            }
            name = without_qualifier(name)?;
        }
        None
    }

    /// Whether one of its words is a vendor's, or two of them are.
    pub(crate) fn names_a_vendor(&self) -> bool {
        let words = || self.as_bytes().split(|byte| *byte == b'_');
        let mut pairs = words().zip(words().skip(1));
        words().any(is_vendor)
            || pairs.any(|(one, two)| VENDORS.iter().any(|vendor| vendor.strip_prefix(one) == Some(two)))
    }
}

/// The name of a vendor, or that with a word that is written together with it: `mydiscordkey`.
fn is_vendor(word: &[u8]) -> bool {
    let word = word.strip_prefix(b"my").unwrap_or(word);
    VENDORS
        .iter()
        .any(|vendor| word.strip_prefix(vendor).is_some_and(|rest| rest.is_empty() || JOINED_TO_VENDORS.has(rest)))
}

/// Whether a name ends with these words.
fn ends(name: &[u8], end: &[u8]) -> bool {
    name.strip_suffix(end).is_some_and(|before| before.is_empty() || before.ends_with(b"_"))
}

/// The name without a word or a number behind it that leaves it what it is.
fn without_qualifier(name: &[u8]) -> Option<&[u8]> {
    let digits = name.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    if digits > 0 && digits < name.len() {
        let name = &name[..name.len() - digits];
        return Some(name.strip_suffix(b"_").unwrap_or(name));
    }
    let at = name.iter().rposition(|byte| *byte == b'_')?;
    let last = &name[at + 1..];
    QUALIFIERS.has(last).then(|| &name[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_however_they_are_written() {
        for (name, expected) in [
            ("password", Some(Password)),
            ("DB_PASSWORD", Some(Password)),
            ("db.password", Some(Password)),
            ("dbPassword", Some(Password)),
            ("DB_PASSWORD_PROD", Some(Password)),
            ("password2", Some(Password)),
            ("clientSecret", Some(Password)),
            ("AWS_SECRET_ACCESS_KEY", Some(Token)),
            ("APIKey", Some(Token)),
            ("x-api-key", Some(Token)),
            ("API key", Some(Token)),
            ("_authToken", Some(Token)),
            ("SENTRY_DSN", Some(Token)),
            ("AccountKey", Some(Token)),
            ("STORAGE_SAS", Some(Token)),
            ("ssh_key", Some(Weak)),
            ("tokens", None),
            ("max_tokens", None),
            ("public_key", None),
            ("OLDPWD", None),
            ("GIT_ASKPASS", None),
            ("SSH_AUTH_SOCK", None),
            ("password_file", None),
            ("keyboard", None),
            ("monkey", None),
            ("compass", None),
            ("path", None),
        ] {
            assert_eq!(strength(name), expected, "{name}");
        }
    }

    #[test]
    fn vendors_are_words_of_a_name() {
        for name in [
            "DISCORD_WEBHOOK",
            "my-linkedin id",
            "linked_in",
            "newRelicKey",
            "message-bird",
            "Adafruit",
            "mydiscordkey",
        ] {
            assert!(Name::of(name.as_bytes()).names_a_vendor(), "{name}");
        }
        for name in ["linearly", "squared", "global", "steamed"] {
            assert!(!Name::of(name.as_bytes()).names_a_vendor(), "{name}");
        }
    }
}
