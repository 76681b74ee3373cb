//! Compiled code between its check and its load: where nobody can change it, not even this process.
//!
//! On Linux it is a sealed file in memory, which the engine maps: its bytes are copied once, inside the kernel, and a page is mapped into the
//! process when it is used. Elsewhere, and where the system refuses such a file, it is a buffer, which the engine copies.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};

/// Code that was read from the cache.
#[derive(Debug)]
pub(super) enum Code {
    #[cfg(target_os = "linux")]
    Sealed(File),
    Bytes(Vec<u8>),
}

impl Code {
    /// Takes the rest of a file.
    pub(super) fn read(mut file: File) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        {
            let start = file.stream_position()?;
            match linux::seal(&file) {
                Ok(sealed) => return Ok(Self::Sealed(sealed)),
                Err(error) => tracing::debug!(%error, "a compiled component is not mapped"),
            }
            file.seek(io::SeekFrom::Start(start))?;
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(Self::Bytes(bytes))
    }

    /// Passes all bytes on, in order.
    pub(super) fn each(&self, mut take: impl FnMut(&[u8])) -> io::Result<()> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Sealed(file) => linux::each(file, take),
            Self::Bytes(bytes) => {
                take(bytes);
                Ok(())
            }
        }
    }

    /// All bytes in a buffer.
    pub(super) fn bytes(&self) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        self.each(|part| all.extend_from_slice(part))?;
        Ok(all)
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;
    use std::io;
    use std::os::unix::fs::FileExt as _;

    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

    /// Bytes that are read at a time: they stay in the processor's cache.
    const PART: usize = 64 << 10;

    /// Copies the rest of `file` into a file in memory that cannot change any more.
    pub(super) fn seal(file: &File) -> io::Result<File> {
        let memory = memfd_create("tidegate-component", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        let memory = File::from(memory);
        io::copy(&mut &*file, &mut &memory)?;
        fcntl_add_seals(&memory, SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
        Ok(memory)
    }

    pub(super) fn each(file: &File, mut take: impl FnMut(&[u8])) -> io::Result<()> {
        let mut part = vec![0; PART];
        let mut at = 0;
        loop {
            match file.read_at(&mut part, at)? {
                0 => return Ok(()),
                read => {
                    take(part.get(..read).unwrap_or_default());
                    at += read as u64;
                }
            }
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::io::{ErrorKind, Read as _, Seek as _, Write as _};

    use super::Code;

    #[test]
    fn the_rest_of_a_file_is_sealed_as_it_is() {
        let content: Vec<u8> = (0..200_000_u32).map(|at| at as u8).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&content).unwrap();
        file.rewind().unwrap();
        file.read_exact(&mut [0; 40]).unwrap();
        let code = Code::read(file.try_clone().unwrap()).unwrap();
        file.rewind().unwrap();
        file.write_all(b"another content").unwrap();
        assert_eq!(code.bytes().unwrap(), content[40..]);
        let Code::Sealed(mut memory) = code else { panic!("{code:?}") };
        assert_eq!(memory.write(b"x").unwrap_err().kind(), ErrorKind::PermissionDenied);
        assert_eq!(memory.set_len(0).unwrap_err().kind(), ErrorKind::PermissionDenied);
        assert_eq!(Code::Bytes(content.clone()).bytes().unwrap(), content);
    }
}
