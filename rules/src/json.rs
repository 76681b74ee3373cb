//! Decodes JSON text as it streams: gives the values with their places, strings unescaped, numbers and `true` and `false` as
//! written, for any split of the text.
//!
//! It is not a validator: the tool that runs the call parses the complete arguments. Text that cannot be JSON stops
//! it, and so does text beyond a bound; both are reported by [`JsonDecoder::error`]. A key given twice gives both values,
//! whichever of them the tool uses. A `.` or `[]` in a key looks the same in a place as one between keys.

use std::fmt::Write as _;

/// The greatest nesting of objects and lists.
pub const MAX_DEPTH: usize = 64;

/// The most bytes of a key.
pub const MAX_KEY_BYTES: usize = 1024;

/// The most bytes of one JSON text.
pub const MAX_BYTES: u64 = 64 << 20;

/// Takes the values in the order of the text.
pub trait Sink {
    /// A value begins.
    fn begin(&mut self, place: &JsonPath);
    /// More of it, decoded; never empty.
    fn text(&mut self, text: &str);
    /// It is complete.
    fn end(&mut self);
}

/// The path of a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JsonPath(Vec<Inside>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Inside {
    Object(String),
    List(u32),
}

impl JsonPath {
    /// The place by kind: `edits[].new_text`.
    pub fn field(&self) -> String {
        self.write(self.0.len(), |out, _| out.push_str("[]"))
    }

    /// The innermost key on the way to the value, list or not.
    pub fn key(&self) -> Option<&str> {
        self.0.iter().rev().find_map(|inside| if let Inside::Object(key) = inside { Some(key.as_str()) } else { None })
    }

    /// Whether the value is a direct element of a list.
    pub fn in_list(&self) -> bool {
        matches!(self.0.last(), Some(Inside::List(_)))
    }

    /// The path of the object that contains the innermost key, with indexes: `edits[3]`.
    pub fn owner(&self) -> String {
        let upto = self.0.iter().rposition(|inside| matches!(inside, Inside::Object(_))).unwrap_or(0);
        self.numbered(upto)
    }

    /// The place with numbers: `edits[3].new_text`.
    pub fn exact(&self) -> String {
        self.numbered(self.0.len())
    }

    fn numbered(&self, upto: usize) -> String {
        self.write(upto, |out, index| {
            let _ = write!(out, "[{index}]");
        })
    }

    fn write(&self, upto: usize, index: impl Fn(&mut String, u32)) -> String {
        let mut out = String::new();
        for inside in &self.0[..upto] {
            match inside {
                Inside::Object(key) => {
                    if !out.is_empty() {
                        out.push('.');
                    }
                    out.push_str(key);
                }
                Inside::List(at) => index(&mut out, *at),
            }
        }
        out
    }
}

/// What the decoder expects next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Value,
    /// After `[`: a value or `]`.
    ValueOrEnd,
    /// After `{`: a key or `}`.
    KeyOrEnd,
    Key,
    Colon,
    /// After a value: `,` or the end of its container.
    After,
    /// A number, `true`, `false`.
    Literal,
    /// `null`, which is not reported as a value.
    Null,
    InString,
    Escape,
    /// Within `\uXXXX`: digits so far.
    Unicode(u8),
    Done,
    Broken,
}

/// The decoder of one JSON text.
#[derive(Debug)]
pub struct JsonDecoder {
    state: State,
    place: JsonPath,
    is_object: bool,
    /// The string being read is a key.
    in_key: bool,
    key: String,
    code: u32,
    /// The first half of a surrogate pair, until its second half comes.
    high: Option<u16>,
    bytes: u64,
    error: Option<String>,
}

impl Default for JsonDecoder {
    fn default() -> Self {
        Self {
            state: State::Value,
            place: JsonPath::default(),
            is_object: false,
            in_key: false,
            key: String::new(),
            code: 0,
            high: None,
            bytes: 0,
            error: None,
        }
    }
}

impl JsonDecoder {
    /// Why decoding stopped before the end, if it did. Values decoded before that remain valid.
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// What the text that has come lacks to be a complete object; nothing where none has come.
    pub fn lacks(&self) -> Option<&'static str> {
        match self.state {
            State::Value if self.place.0.is_empty() => None,
            State::Done if self.is_object => None,
            _ if self.is_object => Some("they end early"),
            _ => Some("they are no object"),
        }
    }

    /// Takes the next chunk.
    pub fn feed(&mut self, text: &str, sink: &mut impl Sink) {
        // What is beyond the bound is not read, so that it makes no difference how the text is cut.
        let room = usize::try_from(MAX_BYTES - self.bytes).unwrap_or(usize::MAX);
        let mut rest = &text[..text.floor_char_boundary(room)];
        let cut = rest.len() < text.len();
        self.bytes = (self.bytes + text.len() as u64).min(MAX_BYTES);
        while !rest.is_empty() && self.state != State::Broken {
            rest = if self.state == State::InString { self.run(rest, sink) } else { self.step(rest, sink) };
        }
        if cut && self.state != State::Broken {
            self.fail(format!("more than {MAX_BYTES} bytes"));
        }
    }

    /// Passes plain characters of a string at once.
    fn run<'a>(&mut self, text: &'a str, sink: &mut impl Sink) -> &'a str {
        let plain = text.find(['"', '\\']).unwrap_or(text.len());
        let (head, tail) = text.split_at(plain);
        if !head.is_empty() {
            self.flush_half(sink);
            self.emit(head, sink);
            if self.state == State::Broken {
                return "";
            }
        }
        match tail.as_bytes().first() {
            Some(b'"') => {
                self.flush_half(sink);
                self.end_string(sink);
            }
            Some(_) => self.state = State::Escape,
            None => return tail,
        }
        &tail[1..]
    }

    fn step<'a>(&mut self, text: &'a str, sink: &mut impl Sink) -> &'a str {
        let Some(c) = text.chars().next() else { return text };
        let rest = &text[c.len_utf8()..];
        match self.state {
            State::Escape => self.escape(c, sink),
            State::Unicode(digits) => self.unicode(digits, c, sink),
            State::Literal | State::Null if c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.') => {
                if self.state == State::Literal {
                    sink.text(&text[..c.len_utf8()]);
                }
            }
            State::Literal => {
                sink.end();
                self.after_value();
                return text;
            }
            State::Null => {
                self.after_value();
                return text;
            }
            _ if matches!(c, ' ' | '\t' | '\r' | '\n') => {}
            _ => self.structure(c, sink),
        }
        rest
    }

    fn structure(&mut self, c: char, sink: &mut impl Sink) {
        match (self.state, c) {
            (State::ValueOrEnd, ']') | (State::KeyOrEnd, '}') => self.leave(),
            (State::Value | State::ValueOrEnd, '{') => self.enter(Inside::Object(String::new()), State::KeyOrEnd),
            (State::Value | State::ValueOrEnd, '[') => self.enter(Inside::List(0), State::ValueOrEnd),
            (State::Value | State::ValueOrEnd, '"') => {
                (self.state, self.in_key) = (State::InString, false);
                sink.begin(&self.place);
            }
            (State::Value | State::ValueOrEnd, '-' | '0'..='9' | 't' | 'f') => {
                self.state = State::Literal;
                sink.begin(&self.place);
                sink.text(c.encode_utf8(&mut [0; 4]));
            }
            (State::Value | State::ValueOrEnd, 'n') => self.state = State::Null,
            (State::Key | State::KeyOrEnd, '"') => {
                (self.state, self.in_key) = (State::InString, true);
                self.key.clear();
            }
            (State::Colon, ':') => self.state = State::Value,
            (State::After, ',') => match self.place.0.last_mut() {
                Some(Inside::Object(_)) => self.state = State::Key,
                Some(Inside::List(at)) => {
                    *at += 1;
                    self.state = State::Value;
                }
                None => self.fail("a comma outside of any list".into()),
            },
            (State::After, '}') if matches!(self.place.0.last(), Some(Inside::Object(_))) => self.leave(),
            (State::After, ']') if matches!(self.place.0.last(), Some(Inside::List(_))) => self.leave(),
            _ => self.fail(format!("unexpected {c:?}")),
        }
    }

    fn enter(&mut self, inside: Inside, state: State) {
        if self.place.0.len() == MAX_DEPTH {
            return self.fail(format!("nested deeper than {MAX_DEPTH}"));
        }
        self.is_object |= self.place.0.is_empty() && matches!(inside, Inside::Object(_));
        self.place.0.push(inside);
        self.state = state;
    }

    fn leave(&mut self) {
        self.place.0.pop();
        self.after_value();
    }

    fn after_value(&mut self) {
        self.state = if self.place.0.is_empty() { State::Done } else { State::After };
    }

    fn end_string(&mut self, sink: &mut impl Sink) {
        if self.in_key {
            if let Some(Inside::Object(key)) = self.place.0.last_mut() {
                key.clone_from(&self.key);
            }
            self.state = State::Colon;
        } else {
            sink.end();
            self.after_value();
        }
    }

    fn escape(&mut self, c: char, sink: &mut impl Sink) {
        let decoded = match c {
            '"' | '\\' | '/' => c,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                (self.state, self.code) = (State::Unicode(0), 0);
                return;
            }
            _ => return self.fail(format!("unknown escape `\\{c}`")),
        };
        self.flush_half(sink);
        self.state = State::InString;
        self.emit(decoded.encode_utf8(&mut [0; 4]), sink);
    }

    fn unicode(&mut self, digits: u8, c: char, sink: &mut impl Sink) {
        let Some(digit) = c.to_digit(16) else { return self.fail(format!("{c:?} is not a hexadecimal digit")) };
        self.code = self.code * 16 + digit;
        if digits < 3 {
            self.state = State::Unicode(digits + 1);
            return;
        }
        self.state = State::InString;
        // Four digits were read, so the code fits.
        let unit = self.code as u16;
        if let (Some(high), 0xDC00..=0xDFFF) = (self.high, unit) {
            self.high = None;
            let joined = 0x10000 + ((u32::from(high) - 0xD800) << 10) + (u32::from(unit) - 0xDC00);
            self.emit_char(char::from_u32(joined), sink);
            return;
        }
        self.flush_half(sink);
        if (0xD800..=0xDBFF).contains(&unit) {
            self.high = Some(unit);
        } else {
            self.emit_char(char::from_u32(u32::from(unit)), sink);
        }
    }

    /// Half of a pair that did not get its other half is shown as the replacement character.
    fn flush_half(&mut self, sink: &mut impl Sink) {
        if self.high.take().is_some() {
            self.emit_char(None, sink);
        }
    }

    fn emit_char(&mut self, c: Option<char>, sink: &mut impl Sink) {
        self.emit(c.unwrap_or(char::REPLACEMENT_CHARACTER).encode_utf8(&mut [0; 4]), sink);
    }

    fn emit(&mut self, text: &str, sink: &mut impl Sink) {
        if !self.in_key {
            sink.text(text);
        } else if self.key.len() + text.len() > MAX_KEY_BYTES {
            self.fail(format!("a key of more than {MAX_KEY_BYTES} bytes"));
        } else {
            self.key.push_str(text);
        }
    }

    fn fail(&mut self, why: String) {
        self.state = State::Broken;
        self.error = Some(why);
    }
}
