//! Passwords in the arguments of commands: `curl -u user:password`, `sshpass -p …`.

use crate::Found;
use crate::plausible::{is_known_word, is_placeholder, looks_random};
use crate::text::{LONGEST_RUN, Text, is_blank, is_quote, is_visible};

/// A flag of a command that takes a password.
struct Flag {
    command: &'static str,
    flag: &'static str,
    takes: Takes,
}

/// How the flag is followed by the password.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// A user, a colon and the password.
    Pair(u8),
    /// The password, behind a blank or without one.
    Either,
    /// The password, without a blank.
    Attached,
}

const fn flag(command: &'static str, flag: &'static str, takes: Takes) -> Flag {
    Flag { command, flag, takes }
}

const FLAGS: &[Flag] = &[
    flag("curl", "-u", Takes::Pair(b':')),
    flag("curl", "--user", Takes::Pair(b':')),
    flag("curl", "-U", Takes::Pair(b':')),
    flag("curl", "--proxy-user", Takes::Pair(b':')),
    flag("http", "-a", Takes::Pair(b':')),
    flag("https", "-a", Takes::Pair(b':')),
    flag("xh", "-a", Takes::Pair(b':')),
    flag("smbclient", "-U", Takes::Pair(b'%')),
    flag("lftp", "-u", Takes::Pair(b',')),
    flag("sshpass", "-p", Takes::Either),
    flag("mysql", "-p", Takes::Attached),
    flag("mysqldump", "-p", Takes::Attached),
    flag("mysqladmin", "-p", Takes::Attached),
    flag("mariadb", "-p", Takes::Attached),
    flag("redis-cli", "-a", Takes::Either),
    flag("docker", "-p", Takes::Either),
    flag("podman", "-p", Takes::Either),
    flag("mongo", "-p", Takes::Either),
    flag("mongosh", "-p", Takes::Either),
    flag("ldapsearch", "-w", Takes::Either),
    flag("ldapmodify", "-w", Takes::Either),
    flag("sqlcmd", "-P", Takes::Either),
    flag("mosquitto_pub", "-P", Takes::Either),
    flag("mosquitto_sub", "-P", Takes::Either),
    flag("unzip", "-P", Takes::Either),
    flag("zip", "-P", Takes::Either),
    flag("7z", "-p", Takes::Attached),
];

/// The commands that the text has named so far: one bit for each entry of [`FLAGS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Commands(u32);

impl Commands {
    /// Notes the command of this name.
    pub(crate) fn note(&mut self, word: &[u8]) {
        for (at, _) in FLAGS.iter().enumerate().filter(|(_, flag)| flag.command.as_bytes() == word) {
            self.0 |= 1 << at;
        }
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The password of a flag that begins here.
    pub(crate) fn password(self, text: &Text<'_>, at: usize) -> Option<Found> {
        let before = text.previous(at);
        if !before.is_none_or(|byte| byte <= b' ' || is_quote(byte)) {
            return None;
        }
        let is_list = before.is_some_and(is_quote);
        let flags = FLAGS.iter().enumerate().filter(|(bit, _)| self.0 & 1 << bit != 0).map(|(_, flag)| flag);
        flags
            .filter(|flag| text.starts(at, flag.flag.as_bytes()))
            .find_map(|flag| argument(text, at + flag.flag.len(), flag.takes, is_list))
    }
}

/// `-u user:password` where no command is named that takes it: the password must look like one.
pub(crate) fn user(text: &Text<'_>, at: usize) -> Option<Found> {
    let flag = [&b"-u "[..], b"--user ", b"--user="].into_iter().find(|flag| text.starts(at, flag))?;
    let found = argument(text, at + flag.len() - 1, Takes::Pair(b':'), false)?;
    looks_random(&text.bytes[found.start..found.end]).then_some(found)
}

/// What reads a password from what another command writes, and whether that is `user:password`.
const READERS: &[(&str, bool)] = &[
    ("--password-stdin", false),
    ("sudo -S", false),
    ("passwd --stdin", false),
    ("--passphrase-fd 0", false),
    ("cryptsetup ", false),
    ("chpasswd", true),
];

/// The password of `echo password | sudo -S …`.
pub(crate) fn piped(text: &Text<'_>, at: usize) -> Option<Found> {
    let word = ["echo ", "printf "].iter().find(|word| text.starts(at, word.as_bytes()))?;
    let mut start = at + word.len();
    for flag in ["-n ", "-e ", "'%s' ", "\"%s\" ", "%s "] {
        start += if text.starts(start, flag.as_bytes()) { flag.len() } else { 0 };
    }
    let quote = text.at(start).filter(|byte| is_quote(*byte));
    start += usize::from(quote.is_some());
    let mut end = text
        .run(start, 256, |byte| quote.map_or(is_visible(byte) && byte != b'|', |quote| byte != quote && byte != b'\n'));
    let pipe = text.run(end, 9, |byte| is_blank(byte) || is_quote(byte));
    let rest = pipe..text.run(pipe, 256, |byte| byte != b'\n');
    text.note_begun(start);
    let command = core::str::from_utf8(&text.bytes[rest]).ok()?.strip_prefix('|')?;
    let (_, is_pair) = READERS.iter().find(|(reader, _)| command.contains(reader))?;
    if text.bytes[start..end].ends_with(b"\\n") {
        end -= 2;
    }
    if *is_pair {
        start += text.bytes[start..end].iter().position(|byte| *byte == b':')? + 1;
    }
    let password = &text.bytes[start..end];
    (password.len() >= 3 && !is_placeholder(password) && !is_known_word(password))
        .then(|| Found::new("password", start, end))
}

fn argument(text: &Text<'_>, from: usize, takes: Takes, is_list: bool) -> Option<Found> {
    let mut start = text.run(from, 8, |byte| is_blank(byte) || byte == b'=');
    // In a list of strings the flag has quotes of its own: `["-p", "…"]`.
    if start == from && text.at(from).is_some_and(is_quote) && is_list {
        start = text.run(from + 1, 8, |byte| is_blank(byte) || byte == b',');
        if start == from + 1 || !text.at(start).is_some_and(is_quote) {
            return None;
        }
    }
    if takes == Takes::Attached && start > from || text.at(start)? == b'-' {
        return None;
    }
    let quote = text.at(start).filter(|byte| is_quote(*byte));
    start += usize::from(quote.is_some());
    let end = text.run(start, LONGEST_RUN, |byte| match quote {
        Some(quote) => byte != quote && byte != b'\n',
        None => is_visible(byte) && !is_quote(byte) && !matches!(byte, b'<' | b'|' | b';' | b')'),
    });
    // Each half can have quotes of its own: `'user':'password'`.
    if quote.is_some() && matches!(takes, Takes::Pair(separator) if text.at(end + 1) == Some(separator)) {
        return argument(text, end + 2, Takes::Either, false);
    }
    if let Takes::Pair(separator) = takes {
        start += text.bytes[start..end].iter().position(|byte| *byte == separator)? + 1;
    }
    text.note_begun(start);
    let password = &text.bytes[start..end];
    // The numbers of a user and a group, or of ports.
    let is_port =
        password.len() < 6 && password.iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.'));
    let stands_in = password.len() < 3 || is_placeholder(password) || is_known_word(password) || is_port;
    (!stands_in).then(|| Found::new("password", start, end))
}
