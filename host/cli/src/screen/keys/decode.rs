//! Bytes of a terminal as keys (ECMA-48, the sequences of xterm, and those of the keyboard protocol of kitty).
//!
//! Terminals report what they are asked, also by a program that ran before this one, and late where the connection is slow. Such reports
//! (of colours, versions, modes and the cursor) are read to their end and are no keys.

use super::Key;

const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;
const DEL: u8 = 0x7f;

/// What ends a paste.
const PASTE_END: &[u8] = b"\x1b[201~";

/// The most bytes of a sequence that can be a key.
const MAX_SEQUENCE: usize = 64;

/// How many pauses a report of the terminal may take that has begun.
const REPORT_PAUSES: u32 = 20;

/// How many pauses the end of a paste is waited for: it can be lost, and no key must be lost with it.
const PASTE_PAUSES: u32 = 100;

#[derive(Debug, Default)]
enum State {
    #[default]
    Ground,
    /// After one `ESC` or several.
    Escape,
    /// A control sequence, `ESC [`: its parameters.
    Csi(Vec<u8>),
    /// A single shift, `ESC O`, with its parameters, which Konsole adds.
    Ss3(Vec<u8>),
    /// So many bytes that follow have no meaning here.
    Skip(u8),
    /// A control string, which only a report has: whether it has content, and whether its last byte was `ESC`.
    ControlString { has_content: bool, escaped: bool },
    /// What was pasted so far.
    Paste(Vec<u8>),
}

/// The decoder, which keeps what is incomplete.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    state: State,
    /// The bytes of a character that is not complete.
    character: Vec<u8>,
    pauses: u32,
}

impl Decoder {
    /// Takes bytes as they were read.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.pauses = 0;
        bytes.iter().filter_map(|byte| self.byte(*byte)).collect()
    }

    /// Takes note that no byte has followed for a while. Returns the `Esc` key for a lone `ESC`; an incomplete sequence can be no key.
    pub(super) fn pause(&mut self) -> Option<Key> {
        self.pauses += 1;
        let is_over = match &self.state {
            State::Ground => false,
            State::Escape => true,
            // Alt and a character that begins a sequence.
            State::Csi(begun) | State::Ss3(begun) if begun.is_empty() => true,
            State::ControlString { has_content: false, .. } => true,
            State::Csi(_) | State::Ss3(_) | State::Skip(_) | State::ControlString { .. } => self.pauses > REPORT_PAUSES,
            State::Paste(_) => self.pauses > PASTE_PAUSES,
        };
        if is_over { self.end() } else { None }
    }

    /// Resets the decoder. Returns the key that the incomplete bytes are nevertheless.
    pub(super) fn end(&mut self) -> Option<Key> {
        match std::mem::take(&mut self.state) {
            State::Escape => Some(Key::Esc),
            State::Paste(pasted) => Some(paste(&pasted)),
            _ => None,
        }
    }

    fn byte(&mut self, byte: u8) -> Option<Key> {
        match std::mem::take(&mut self.state) {
            State::Ground => self.ground(byte),
            State::Escape => self.escape(byte),
            State::Csi(parameters) => self.csi(parameters, byte),
            State::Ss3(parameters) => self.ss3(parameters, byte),
            State::Skip(count) => {
                self.state = if count > 1 { State::Skip(count - 1) } else { State::Ground };
                None
            }
            State::ControlString { escaped, .. } => self.control_string(escaped, byte),
            State::Paste(mut pasted) => {
                pasted.push(byte);
                if let Some(text) = pasted.strip_suffix(PASTE_END) {
                    return Some(paste(text));
                }
                self.state = State::Paste(pasted);
                None
            }
        }
    }

    fn ground(&mut self, byte: u8) -> Option<Key> {
        if byte >= 0x80 || !self.character.is_empty() && byte >= b' ' {
            return self.character(byte);
        }
        self.character.clear();
        if byte == ESC {
            self.state = State::Escape;
            return None;
        }
        Some(match byte {
            b'\r' => Key::Enter,
            b'\n' => Key::NewLine,
            b'\t' => Key::Tab,
            DEL | 0x08 => Key::Backspace,
            1..=0x1a => Key::Ctrl(char::from(byte - 1 + b'a')),
            0 | 0x1c..=0x1f => return None,
            _ => Key::Char(char::from(byte)),
        })
    }

    /// A byte of a character that has several.
    fn character(&mut self, byte: u8) -> Option<Key> {
        self.character.push(byte);
        match std::str::from_utf8(&self.character) {
            Ok(text) => {
                let key = text.chars().next().filter(|c| !c.is_control()).map(Key::Char);
                self.character.clear();
                key
            }
            Err(error) if error.error_len().is_none() => None,
            Err(_) => {
                let is_first = self.character.len() == 1;
                self.character.clear();
                // What was begun is lost; what follows it is not.
                if is_first { None } else { self.ground(byte) }
            }
        }
    }

    fn escape(&mut self, byte: u8) -> Option<Key> {
        match byte {
            b'[' => self.state = State::Csi(Vec::new()),
            b'O' => self.state = State::Ss3(Vec::new()),
            // OSC, DCS, SOS, PM, APC.
            b']' | b'P' | b'X' | b'^' | b'_' => {
                self.state = State::ControlString { has_content: false, escaped: false };
            }
            // Alt and a key that is a sequence itself.
            ESC => self.state = State::Escape,
            b' '..DEL => return with_alt(char::from(byte)),
            b'\r' => return Some(Key::AltEnter),
            DEL | 0x08 => return Some(Key::Ctrl('w')),
            _ => return self.ground(byte),
        }
        None
    }

    fn csi(&mut self, mut parameters: Vec<u8>, byte: u8) -> Option<Key> {
        match byte {
            // A function key of the Linux console.
            b'[' if parameters.is_empty() => self.state = State::Skip(1),
            // The mouse, in the oldest protocol.
            b'M' if parameters.is_empty() => self.state = State::Skip(3),
            b' '..=b'?' => {
                if parameters.len() < MAX_SEQUENCE {
                    parameters.push(byte);
                }
                self.state = State::Csi(parameters);
            }
            b'@'..=b'~' if parameters == b"200" && byte == b'~' => self.state = State::Paste(Vec::new()),
            b'@'..=b'~' => return sequence(&parameters, byte),
            // It was cut off, and this is the next key.
            _ => return self.ground(byte),
        }
        None
    }

    fn ss3(&mut self, mut parameters: Vec<u8>, byte: u8) -> Option<Key> {
        match byte {
            b'0'..=b'9' | b';' if parameters.len() < MAX_SEQUENCE => {
                parameters.push(byte);
                self.state = State::Ss3(parameters);
                None
            }
            // Shift and Enter of Konsole.
            b'M' => Some(Key::NewLine),
            b'@'..=b'~' => moved(byte, 0),
            _ => self.ground(byte),
        }
    }

    fn control_string(&mut self, escaped: bool, byte: u8) -> Option<Key> {
        match byte {
            BEL => {}
            b'\\' if escaped => {}
            ESC => self.state = State::ControlString { has_content: true, escaped: true },
            _ if escaped => return self.escape(byte),
            // No report has these: somebody types.
            0..=0x1f => return self.ground(byte),
            _ => self.state = State::ControlString { has_content: true, escaped: false },
        }
        None
    }
}

fn paste(bytes: &[u8]) -> Key {
    Key::Paste(String::from_utf8_lossy(bytes).replace("\r\n", "\n").replace('\r', "\n"))
}

/// A complete control sequence. Reports have a private first parameter, an intermediate byte, or another end.
fn sequence(parameters: &[u8], end: u8) -> Option<Key> {
    let text = std::str::from_utf8(parameters).ok()?;
    if text.starts_with(['<', '=', '>', '?']) || text.bytes().any(|byte| byte < b'0') {
        return None;
    }
    // Subparameters: the first is the number; the second one of a modifier is the kind of the event.
    let parts: Vec<Vec<u32>> =
        text.split(';').map(|part| part.split(':').map(|n| n.parse().unwrap_or(0)).collect()).collect();
    let number = |at: usize| parts.get(at).and_then(|part| part.first()).copied().unwrap_or(0);
    let is_release = parts.get(1).and_then(|part| part.get(1)) == Some(&3);
    let modifiers = number(1).saturating_sub(1);
    match end {
        _ if is_release => None,
        b'~' => match number(0) {
            1 | 7 => Some(Key::Home),
            3 => Some(Key::Delete),
            4 | 8 => Some(Key::End),
            5 => Some(Key::PageUp),
            6 => Some(Key::PageDown),
            27 => of_code(number(2), modifiers),
            _ => None,
        },
        b'u' => of_code(number(0), modifiers),
        _ => moved(end, modifiers),
    }
}

/// A key that moves the cursor.
fn moved(end: u8, modifiers: u32) -> Option<Key> {
    let by_word = modifiers & (ALT | CTRL | META) != 0;
    Some(match end {
        b'A' => Key::Up,
        b'B' => Key::Down,
        b'C' if by_word => Key::WordRight,
        b'C' => Key::Right,
        b'D' if by_word => Key::WordLeft,
        b'D' => Key::Left,
        b'H' => Key::Home,
        b'F' => Key::End,
        _ => return None,
    })
}

const SHIFT: u32 = 1;
const ALT: u32 = 2;
const CTRL: u32 = 4;
/// Alt, as iTerm2 reports it.
const META: u32 = 8;

/// A key that is named by the code of its character.
fn of_code(code: u32, modifiers: u32) -> Option<Key> {
    let (shift, alt, ctrl) = (modifiers & SHIFT != 0, modifiers & ALT != 0, modifiers & CTRL != 0);
    let c = char::from_u32(code)?;
    Some(match c {
        '\r' if alt => Key::AltEnter,
        '\r' if shift || ctrl => Key::NewLine,
        '\r' => Key::Enter,
        '\t' => Key::Tab,
        '\u{1b}' => Key::Esc,
        '\u{7f}' | '\u{8}' if alt || ctrl => Key::Ctrl('w'),
        '\u{7f}' | '\u{8}' => Key::Backspace,
        c if c.is_control() => return None,
        // Keys without a character, such as those of the keypad and of media.
        '\u{e000}'..='\u{f8ff}' => return None,
        'j' | 'J' if ctrl => Key::NewLine,
        'h' | 'H' if ctrl => Key::Backspace,
        c if ctrl => Key::Ctrl(c.to_ascii_lowercase()),
        c if alt => return with_alt(c),
        c if shift => Key::Char(c.to_ascii_uppercase()),
        c => Key::Char(c),
    })
}

/// Alt and a character.
fn with_alt(c: char) -> Option<Key> {
    match c {
        'b' => Some(Key::WordLeft),
        'f' => Some(Key::WordRight),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All keys of these bytes, however they are cut, and what a pause adds.
    fn keys(bytes: &[u8]) -> Vec<Key> {
        let whole = {
            let mut decoder = Decoder::default();
            let mut keys = decoder.push(bytes);
            keys.extend(decoder.pause());
            keys
        };
        let mut decoder = Decoder::default();
        let mut one_by_one: Vec<Key> = bytes.iter().flat_map(|byte| decoder.push(&[*byte])).collect();
        one_by_one.extend(decoder.pause());
        assert_eq!(whole, one_by_one, "{:?}", String::from_utf8_lossy(bytes));
        whole
    }

    fn typed(text: &str) -> Vec<Key> {
        text.chars().map(Key::Char).collect()
    }

    #[test]
    fn keys_are_what_the_page_of_keys_says() {
        for (bytes, expected) in [
            ("y", Key::Char('y')),
            ("Y", Key::Char('Y')),
            ("é", Key::Char('é')),
            ("😀", Key::Char('😀')),
            ("\x03", Key::Ctrl('c')),
            ("\x1a", Key::Ctrl('z')),
            ("\n", Key::NewLine),
            ("\r", Key::Enter),
            ("\t", Key::Tab),
            ("\x7f", Key::Backspace),
            ("\x08", Key::Backspace),
            ("\x1b", Key::Esc),
            ("\x1b\r", Key::AltEnter),
            ("\x1b[13;3u", Key::AltEnter),
            ("\x1b[13;2u", Key::NewLine),
            ("\x1b[27;2;13~", Key::NewLine),
            ("\x1b[13;5u", Key::NewLine),
            ("\x1b[106;5u", Key::NewLine),
            ("\x1b[99;5u", Key::Ctrl('c')),
            ("\x1b[97;1:1u", Key::Char('a')),
            ("\x1b[97;2u", Key::Char('A')),
            ("\x1bb", Key::WordLeft),
            ("\x1bf", Key::WordRight),
            ("\x1b\x7f", Key::Ctrl('w')),
            ("\x1b[A", Key::Up),
            ("\x1bOA", Key::Up),
            ("\x1bOM", Key::NewLine),
            ("\x1b[1;5D", Key::WordLeft),
            ("\x1b[1;3C", Key::WordRight),
            ("\x1b[1;9D", Key::WordLeft),
            ("\x1b[1;2D", Key::Left),
            ("\x1b\x1b[A", Key::Up),
            ("\x1b\x1b", Key::Esc),
            ("\x1b[H", Key::Home),
            ("\x1b[1~", Key::Home),
            ("\x1b[8~", Key::End),
            ("\x1b[3~", Key::Delete),
            ("\x1b[5~", Key::PageUp),
            ("\x1b[6~", Key::PageDown),
            ("\x1b[200~a\r\nb\rc\x1b[Ad\x1b[201~", Key::Paste("a\nb\nc\x1b[Ad".into())),
        ] {
            assert_eq!(keys(bytes.as_bytes()), [expected], "{bytes:?}");
        }
        for none in [
            "\x1bx",
            "\x1b[15~",
            "\x1b[[A",
            "\x1b[97;1:3u",
            "\x1b[I",
            "\x1b[O",
            "\x1b[<0;3;4M",
            "\x1b[32;10;20M",
            "\x1b[M #!",
            "\x1bO2P",
            "\x1b[57399u",
            "\0",
            "\x1c",
        ] {
            assert_eq!(keys(none.as_bytes()), [], "{none:?}");
        }
    }

    #[test]
    fn reports_of_the_terminal_are_no_keys_and_lose_none() {
        for report in [
            "\x1b[?62;22c",
            "\x1b[>0;276;0c",
            "\x1b[=0;1c",
            "\x1b[?1u",
            "\x1b[24;80R",
            "\x1b[?24;80;1R",
            "\x1b[0n",
            "\x1b[?2026;2$y",
            "\x1b[8;24;80t",
            "\x1b]11;rgb:1e1e/1e1e/1e1e\x07",
            "\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\",
            "\x1b]52;c;aGVsbG8=\x1b\\",
            "\x1bP>|XTerm(379)\x1b\\",
            "\x1bP1$r0m\x1b\\",
            "\x1b_Gi=31;OK\x1b\\",
        ] {
            let all = format!("a{report}b{report}é\r");
            assert_eq!(keys(all.as_bytes()), [typed("abé"), vec![Key::Enter]].concat(), "{report:?}");
        }
    }

    #[test]
    fn what_comes_in_parts_is_none_either_and_what_never_ends_holds_nothing_up() {
        let mut decoder = Decoder::default();
        assert_eq!(decoder.push(b"\x1b]11;rgb:1e1e/"), []);
        assert_eq!(decoder.pause(), None);
        assert_eq!(decoder.push(b"1e1e/1e1e\x1b\\x"), typed("x"));
        // Alt and `]`, and then what somebody writes.
        assert_eq!((decoder.push(b"\x1b]"), decoder.pause()), (vec![], None));
        assert_eq!(decoder.push(b"hello"), typed("hello"));
        for begun in ["\x1b]11;", "\x1b[?2026", "\x1bP1"] {
            assert_eq!(decoder.push(begun.as_bytes()), []);
            assert_eq!((0..=REPORT_PAUSES).find_map(|_| decoder.pause()), None);
            assert_eq!(decoder.push(b"ok"), typed("ok"), "{begun:?}");
            assert_eq!(decoder.push(begun.as_bytes()), []);
            assert_eq!(decoder.push(b"\r\x03"), [Key::Enter, Key::Ctrl('c')], "{begun:?}");
        }
    }

    #[test]
    fn a_paste_whose_end_is_lost_is_pasted() {
        let mut decoder = Decoder::default();
        assert_eq!(decoder.push(b"\x1b[200~one"), []);
        assert_eq!((0..REPORT_PAUSES * 2).find_map(|_| decoder.pause()), None);
        assert_eq!(decoder.push(b" two\x03"), []);
        assert_eq!((0..=PASTE_PAUSES).find_map(|_| decoder.pause()), Some(Key::Paste("one two\u{3}".into())));
        assert_eq!(decoder.push(b"x"), typed("x"));
    }

    #[test]
    fn bytes_that_are_no_text_lose_nothing_after_them() {
        assert_eq!(keys("\u{20ac}".as_bytes()), typed("€"));
        assert_eq!(keys(b"\xc3\xe2\x82\xac"), typed("€"));
        for bytes in [&b"\xc3(a"[..], b"\xff(a", b"\xe2\x82(a", b"\xf0\x9f(a"] {
            assert_eq!(keys(bytes), typed("(a"), "{bytes:?}");
        }
        assert_eq!(keys(b"\xe2\x82\r"), [Key::Enter]);
    }
}
