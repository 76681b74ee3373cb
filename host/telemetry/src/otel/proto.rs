//! The wire format of Protocol Buffers: what of it OTLP needs.

/// A message that is written field by field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Message(Vec<u8>);

/// How the value of a field is written.
#[derive(Clone, Copy)]
enum Wire {
    Varint = 0,
    Fixed64 = 1,
    Length = 2,
    Fixed32 = 5,
}

impl Message {
    /// The message that `write` writes.
    pub(crate) fn of(write: impl FnOnce(&mut Self)) -> Self {
        let mut message = Self::default();
        write(&mut message);
        message
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn tag(&mut self, field: u32, wire: Wire) {
        self.varint(u64::from(field) << 3 | wire as u64);
    }

    /// A `bytes`, `string` or embedded message field.
    pub(crate) fn bytes(&mut self, field: u32, value: &[u8]) {
        self.tag(field, Wire::Length);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    pub(crate) fn string(&mut self, field: u32, value: &str) {
        self.bytes(field, value.as_bytes());
    }

    pub(crate) fn message(&mut self, field: u32, write: impl FnOnce(&mut Self)) {
        self.bytes(field, &Self::of(write).0);
    }

    /// A `uint64`, `int64`, `bool` or enum field.
    pub(crate) fn number(&mut self, field: u32, value: u64) {
        self.tag(field, Wire::Varint);
        self.varint(value);
    }

    /// A `fixed64` or `sfixed64` field.
    pub(crate) fn fixed(&mut self, field: u32, value: u64) {
        self.tag(field, Wire::Fixed64);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn double(&mut self, field: u32, value: f64) {
        self.fixed(field, value.to_bits());
    }

    /// A packed field of `fixed64` values, or of the bits of `double` values.
    pub(crate) fn packed(&mut self, field: u32, values: impl ExactSizeIterator<Item = u64>) {
        self.tag(field, Wire::Length);
        self.varint(values.len() as u64 * 8);
        values.for_each(|value| self.0.extend_from_slice(&value.to_le_bytes()));
    }
}

/// A field that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// A field of fixed size; nothing that is read has one.
    Fixed,
}

/// The fields of a message with their numbers, up to its end or to what is no field.
pub(crate) fn fields(mut bytes: &[u8]) -> impl Iterator<Item = (u64, Field<'_>)> {
    std::iter::from_fn(move || {
        let tag = read_varint(&mut bytes)?;
        let field = match tag & 7 {
            wire if wire == Wire::Varint as u64 => Field::Number(read_varint(&mut bytes)?),
            wire if wire == Wire::Length as u64 => {
                let length = usize::try_from(read_varint(&mut bytes)?).ok()?;
                Field::Bytes(take(&mut bytes, length)?)
            }
            wire if wire == Wire::Fixed64 as u64 => take(&mut bytes, 8).map(|_| Field::Fixed)?,
            wire if wire == Wire::Fixed32 as u64 => take(&mut bytes, 4).map(|_| Field::Fixed)?,
            _ => return None,
        };
        Some((tag >> 3, field))
    })
}

fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *take(bytes, 1)?.first()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_what_the_format_documents() {
        // The examples of the encoding's documentation: 150 in field 1, "testing" in field 2, the first message in field 3.
        let message = Message::of(|message| {
            message.number(1, 150);
            message.string(2, "testing");
            message.message(3, |inner| inner.number(1, 150));
        });
        let expected = b"\x08\x96\x01\x12\x07testing\x1a\x03\x08\x96\x01";
        assert_eq!(message.into_bytes(), expected);
        let read: Vec<_> = fields(expected).collect();
        assert_eq!(read, [(1, Field::Number(150)), (2, Field::Bytes(b"testing")), (3, Field::Bytes(b"\x08\x96\x01"))]);
        let fixed = Message::of(|message| {
            message.fixed(1, 1);
            message.packed(7, [0.5_f64, 1.0].map(f64::to_bits).into_iter());
        });
        assert_eq!(fixed.into_bytes(), b"\x09\x01\0\0\0\0\0\0\0\x3a\x10\0\0\0\0\0\0\xe0\x3f\0\0\0\0\0\0\xf0\x3f");
        assert_eq!(
            fields(&Message::of(|message| message.number(1, u64::MAX)).0).next(),
            Some((1, Field::Number(u64::MAX)))
        );
    }

    #[test]
    fn bytes_that_are_no_message_end_the_fields() {
        for bytes in
            [&b"\x12\x7fshort"[..], b"\x08", b"\x0b", b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\x09\x01"]
        {
            assert_eq!(fields(bytes).count(), 0, "{bytes:?}");
        }
        assert_eq!(fields(b"\x0d\0\0\0\0\x08\x01").collect::<Vec<_>>(), [(1, Field::Fixed), (1, Field::Number(1))]);
    }
}
