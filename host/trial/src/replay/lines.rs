//! The lines of a transcript, one in memory at a time.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::BadLine;

/// The most bytes of one line: 64 MiB. A whole answer is on one line; a file without lines must not fill the memory.
const MAX_LINE_BYTES: u64 = 64 << 20;

/// A file of JSON lines.
#[derive(Debug)]
pub(super) struct Lines {
    pub(super) path: PathBuf,
    file: BufReader<File>,
    text: Vec<u8>,
    /// The line at hand, from 1.
    pub(super) number: usize,
}

impl Lines {
    pub(super) fn open(path: &Path) -> Result<Self, BadLine> {
        let failed = |error: std::io::Error| BadLine {
            path: path.to_owned(),
            line: None,
            message: format!("cannot be read: {error}"),
        };
        let file = File::open(path).map_err(failed)?;
        if path.is_dir() {
            let message = format!("is a folder: name the files in it, such as {}/*.jsonl", path.display());
            return Err(BadLine { path: path.to_owned(), line: None, message });
        }
        Ok(Self { path: path.to_owned(), file: BufReader::new(file), text: Vec::new(), number: 0 })
    }

    /// The next line that is not blank. `Ok(Err(line))`: the last line, which is cut off.
    pub(super) fn next(&mut self) -> Result<Option<Result<Value, usize>>, BadLine> {
        loop {
            self.text.clear();
            let read = (&mut self.file).take(MAX_LINE_BYTES + 1).read_until(b'\n', &mut self.text);
            let read = read.map_err(|error| self.wrong(format!("cannot be read: {error}")))?;
            if read == 0 {
                return Ok(None);
            }
            self.number += 1;
            if read as u64 > MAX_LINE_BYTES {
                return Err(self.wrong(format!("has more than {MAX_LINE_BYTES} bytes")));
            }
            if self.text.trim_ascii().is_empty() {
                continue;
            }
            return match serde_json::from_slice(&self.text) {
                Ok(value) => Ok(Some(Ok(value))),
                Err(_) if !self.text.ends_with(b"\n") => Ok(Some(Err(self.number))),
                Err(error) => Err(self.wrong(format!("is not valid JSON: {error}"))),
            };
        }
    }

    /// An error of the line at hand.
    pub(super) fn wrong(&self, message: impl Into<String>) -> BadLine {
        BadLine { path: self.path.clone(), line: (self.number > 0).then_some(self.number), message: message.into() }
    }
}

/// Whether the file is a recording; else it is a transcript.
pub(super) fn is_recording(path: &Path) -> Result<bool, BadLine> {
    let mut lines = Lines::open(path)?;
    match lines.next()? {
        Some(Ok(first)) if first.get("tidegate_recording").is_some() => Ok(true),
        Some(Ok(first)) if first.get("type").is_some() && first.get("payload").is_some() => Ok(false),
        Some(Ok(first)) if first["format"] == "tidegate-transcript" => Ok(false),
        Some(_) => Err(lines.wrong(
            "is neither the first line of a recording (`tidegate run --record FILE`) nor of a transcript \
             (`transcript.jsonl` of a session, `tidegate run --output stream-json`)",
        )),
        None => Err(BadLine { path: path.to_owned(), line: None, message: "is empty".into() }),
    }
}
