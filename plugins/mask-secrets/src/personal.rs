//! Personal data, found by patterns.

use regex_lite::Regex;
use tidegate_sdk::prelude::*;

/// A kind of personal data.
pub(crate) struct Personal {
    kind: &'static str,
    form: Regex,
    /// An additional check of a match.
    holds: fn(&str) -> bool,
}

impl Personal {
    /// Returns the kind of this name in the settings.
    pub(crate) fn named(name: &str) -> Result<Self> {
        let (kind, form, holds): (_, _, fn(&str) -> bool) = match name {
            "email" => (
                "email",
                r"[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,24}\b",
                |_| true,
            ),
            "phone" => ("phone", r"\+[1-9][0-9]{0,2}(?:[ ./-]?\(?[0-9]{1,5}\)?){2,6}", is_phone),
            "iban" => ("iban", r"\b[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b", is_iban),
            "card" => ("card", r"\b[2-6][0-9]{3}(?:[ -]?[0-9]{4}){2}[ -]?[0-9]{1,7}\b", is_card),
            _ => bail!("setting `personal_data`: `{name}` is none of `email`, `phone`, `iban`, `card`"),
        };
        let form = Regex::new(form).map_err(|error| tidegate_sdk::Error::new(format_args!("`{name}`: {error}")))?;
        Ok(Self { kind, form, holds })
    }

    pub(crate) fn kind(&self) -> &'static str {
        self.kind
    }

    /// Returns its places in a line.
    pub(crate) fn find(&self, line: &str) -> Vec<(usize, usize)> {
        let found = self.form.find_iter(line).filter(|found| (self.holds)(found.as_str()));
        found.map(|found| (found.start(), found.end())).collect()
    }
}

fn digits(text: &str) -> Vec<u32> {
    text.chars().filter_map(|c| c.to_digit(10)).collect()
}

/// E.164: at most fifteen digits; numbers of persons have at least eight.
fn is_phone(text: &str) -> bool {
    (8..=15).contains(&digits(text).len())
}

/// ISO 13616: the check digits, modulo 97.
fn is_iban(text: &str) -> bool {
    let text: String = text.split_whitespace().collect();
    if !(15..=34).contains(&text.len()) {
        return false;
    }
    let (head, tail) = text.split_at(4);
    let rest = tail.chars().chain(head.chars()).try_fold(0_u32, |rest, c| {
        let value = c.to_digit(36)?;
        Some((rest * if value < 10 { 10 } else { 100 } + value) % 97)
    });
    rest == Some(1)
}

/// ISO/IEC 7812: thirteen to nineteen digits, checked by the algorithm of Luhn.
fn is_card(text: &str) -> bool {
    let digits = digits(text);
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(at, digit)| match at % 2 {
            0 => *digit,
            _ if *digit > 4 => digit * 2 - 9,
            _ => digit * 2,
        })
        .sum();
    (13..=19).contains(&digits.len()) && sum.is_multiple_of(10)
}
