//! Reads the lines of a transcript, with their numbers and offsets, through one buffer.

use std::fmt::Debug;
use std::fs::File;
use std::io::{self, SeekFrom};
use std::path::Path;
use std::sync::Arc;

/// Where the bytes of a transcript come from.
pub(super) trait Source: Debug + Send {
    /// Reads more; 0 at the end of what is written.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize>;

    /// Continues at this offset, the end of a complete line.
    fn seek(&mut self, offset: u64) -> io::Result<()>;

    /// Whether this still is the transcript at `path`, of which `offset` bytes were read.
    fn is_in_place(&self, path: &Path, offset: u64) -> io::Result<bool>;
}

impl Source for File {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        io::Read::read(self, buffer)
    }

    fn seek(&mut self, offset: u64) -> io::Result<()> {
        io::Seek::seek(self, SeekFrom::Start(offset)).map(drop)
    }

    fn is_in_place(&self, path: &Path, offset: u64) -> io::Result<bool> {
        use std::os::unix::fs::MetadataExt as _;
        let (ours, named) = (self.metadata()?, std::fs::metadata(path)?);
        Ok((ours.dev(), ours.ino()) == (named.dev(), named.ino()) && ours.len() >= offset)
    }
}

/// How much is read at once; less at first, where often only the header is wanted.
const CHUNK: usize = 256 << 10;
const FIRST_CHUNK: usize = 16 << 10;
/// No record is as long: what is longer is damage, and is not read into memory.
const LONGEST: usize = 256 << 20;

/// The lines of a transcript that are not read yet.
#[derive(Debug)]
pub(super) struct Lines {
    path: Arc<Path>,
    source: Box<dyn Source>,
    buffer: Vec<u8>,
    /// Where the bytes of `buffer` that are not read yet start and end.
    start: usize,
    end: usize,
    /// The number of the line at `start`, from 1, and its offset in the file.
    number: u64,
    offset: u64,
}

/// A line without its end.
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub(super) bytes: &'a [u8],
    /// Its number in the file, from 1.
    pub(super) number: u64,
    /// Where it starts in the file.
    pub(super) offset: u64,
    /// Whether it has an end. Otherwise it is the last, and is not consumed.
    pub(super) is_complete: bool,
}

impl Lines {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self::of(path, Box::new(File::open(path)?)))
    }

    /// Reads from a source that is at the first line.
    pub(super) fn of(path: &Path, source: Box<dyn Source>) -> Self {
        Self { path: path.into(), source, buffer: Vec::new(), start: 0, end: 0, number: 1, offset: 0 }
    }

    pub(super) fn path(&self) -> &Arc<Path> {
        &self.path
    }

    /// Whether the source still is the transcript of the path.
    pub(super) fn is_in_place(&self) -> io::Result<bool> {
        self.source.is_in_place(&self.path, self.offset)
    }

    /// The offset of the next line.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Reads the next line; `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        let mut searched = self.start;
        let found = loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[searched..self.end]) {
                break Some(searched + at);
            }
            // `fill` moves what is left to the front.
            let left = self.end - self.start;
            if self.fill()? == 0 {
                break None;
            }
            searched = left;
        };
        let (number, offset, start) = (self.number, self.offset, self.start);
        match found {
            Some(end) => {
                self.start = end + 1;
                self.number += 1;
                self.offset += (end + 1 - start) as u64;
                Ok(Some(Line { bytes: &self.buffer[start..end], number, offset, is_complete: true }))
            }
            None if start == self.end => Ok(None),
            None => Ok(Some(Line { bytes: &self.buffer[start..self.end], number, offset, is_complete: false })),
        }
    }

    /// Forgets what was read of a line without an end: its writer may complete it, or the next owner cut it off.
    pub(super) fn retry(&mut self) -> io::Result<()> {
        (self.start, self.end) = (0, 0);
        self.source.seek(self.offset)
    }

    /// Reads more; 0 at the end of the file.
    fn fill(&mut self) -> io::Result<usize> {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        if self.end > LONGEST {
            let longest = LONGEST >> 20;
            let reason = format!("line {} is longer than {longest} MiB, which no record is", self.number);
            return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
        }
        let chunk = if self.buffer.is_empty() { FIRST_CHUNK } else { CHUNK };
        if self.buffer.len() - self.end < chunk {
            // At least doubled, so that a long line is copied a few times only.
            self.buffer.resize((self.end + chunk).max(2 * self.end), 0);
        }
        loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => {
                    let read = read?;
                    self.end += read;
                    return Ok(read);
                }
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::{CHUNK, FIRST_CHUNK, Lines};

    /// The lines of a file as they are read: number, offset, length, whether each is complete.
    fn read(lines: &mut Lines) -> Vec<(u64, u64, usize, bool)> {
        let mut found = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            found.push((line.number, line.offset, line.bytes.len(), line.is_complete));
            if !line.is_complete {
                break;
            }
        }
        found
    }

    #[test]
    fn lines_end_anywhere_in_the_buffer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        let near = |size: usize| size - 2..size + 3;
        for length in near(FIRST_CHUNK).chain(near(FIRST_CHUNK + CHUNK)).chain(near(5 * CHUNK)).chain([0, 1]) {
            let line = "x".repeat(length);
            std::fs::write(&path, format!("{line}\n{line}\n\nrest")).unwrap();
            let mut lines = Lines::open(&path).unwrap();
            let at = length as u64 + 1;
            let whole = [(1, 0, length, true), (2, at, length, true), (3, 2 * at, 0, true)];
            let rest = (4, 2 * at + 1, 4, false);
            assert_eq!(read(&mut lines), [&whole[..], &[rest]].concat(), "{length}");
            assert_eq!(read(&mut lines), [rest], "it is not consumed");
            lines.retry().unwrap();
            std::fs::write(&path, format!("{line}\n{line}\n\nother\n")).unwrap();
            assert_eq!(read(&mut lines), [(4, 2 * at + 1, 5, true)]);
            assert_eq!(read(&mut lines), []);
        }
    }
}
