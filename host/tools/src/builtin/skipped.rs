//! The places that a search skipped: each reason is reported, with the first names.

use crate::text::MAX_FILE_BYTES;

/// How many names are reported for each reason.
const MAX_NAMES: usize = 3;

/// Why a place was passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reason {
    /// Only its ASCII was compared.
    Encoding,
    Binary,
    Large,
    Restricted,
    Link,
    Special,
    Unread,
    BadIgnore,
}

/// The places that were passed over.
#[derive(Debug, Default)]
pub(super) struct Skipped(std::collections::BTreeMap<Reason, (usize, Vec<String>)>);

impl Skipped {
    /// Adds a place by the name that is shown of it.
    pub(super) fn add(&mut self, reason: Reason, name: &str) {
        let (count, names) = self.0.entry(reason).or_default();
        *count += 1;
        if names.len() < MAX_NAMES {
            names.push(name.to_owned());
        }
    }

    /// A line for each reason.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> + '_ {
        self.0.iter().map(|(reason, (count, names))| {
            let more = count - names.len();
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("[{}: {}{more}]", reason.said(), names.join(", "))
        })
    }
}

impl Reason {
    fn said(self) -> String {
        match self {
            Self::Encoding => "neither UTF-8 nor UTF-16, only ASCII was compared".to_owned(),
            Self::Binary => "not searched, binary".to_owned(),
            Self::Large => format!("not searched, larger than {MAX_FILE_BYTES} bytes"),
            Self::Restricted => "not searched, `read_file` is restricted".to_owned(),
            Self::Link => "not searched, links are not followed".to_owned(),
            Self::Special => "not searched, no regular files".to_owned(),
            Self::Unread => "not searched, cannot be read".to_owned(),
            Self::BadIgnore => "has lines that cannot be used, which leave nothing out".to_owned(),
        }
    }
}
