//! Log lines: each event is one line of the host on standard error, whatever its fields contain. Secrets in them are masked.

use std::io::{self, Write};

use tracing_subscriber::fmt::MakeWriter;

use super::note;

/// Where `tracing` writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Log;

/// A line of the log under construction; it is written when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Line(Vec<u8>);

impl<'a> MakeWriter<'a> for Log {
    type Writer = Line;

    fn make_writer(&'a self) -> Line {
        Line::default()
    }
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let text = self.shown();
        if !text.is_empty() {
            note(text);
        }
    }
}

impl Line {
    fn shown(&self) -> String {
        let text = String::from_utf8_lossy(&self.0);
        tidegate::text::without_secrets(text.strip_suffix('\n').unwrap_or(&text)).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_in_fields_and_messages_are_masked() {
        let text = "WARN a request failed: password=hunter2x error=cannot reach postgres://bob:hunter2@db/app\n";
        let mut line = Line(text.as_bytes().to_vec());
        let shown = line.shown();
        line.0.clear();
        assert_eq!(shown, "WARN a request failed: password=*** error=cannot reach postgres://bob:***@db/app");
    }
}
