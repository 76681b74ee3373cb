//! Compiled components on disk, so that a second start compiles nothing.
//!
//! A `.bin` file of the cache is native code. It is loaded only where the folder belongs to the user and to nobody else, and
//! where the file carries a code (HMAC-SHA-256) made with a key that lives in that folder. Whatever does not match is
//! compiled again and replaced; the cache never makes a load fail. A `.schema` file is empty, and its name is such a code. What was not used
//! for 30 days, and what is over 1 GiB, is removed when something is compiled.

mod native;
mod prune;
mod sealed;

use std::fs;
use std::hash::{Hash as _, Hasher};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::schema::COMPILER;

/// Raised when the layout of the files changes.
const SCHEMA: u32 = 1;
const MAGIC: &[u8; 8] = b"TDGTCWC1";
const MAC_BYTES: usize = 32;
const KEY_BYTES: usize = 32;
const KEY_FILE: &str = "key";
/// A file that shows to whom new files belong.
const PROBE: &str = "probe";

/// The folder of compiled components.
#[derive(Debug)]
pub(crate) struct Cache {
    dir: PathBuf,
    key: [u8; KEY_BYTES],
    /// Digest of what determines whether compiled code is compatible: engine settings, versions, schema.
    fits: [u8; 32],
}

/// The file that remembers that a schema of a tool was found valid. Its name is made with the key: whoever cannot read the key cannot
/// make it.
#[derive(Debug)]
pub(crate) struct Mark(PathBuf);

/// The place of one component.
#[derive(Debug)]
pub(crate) struct Entry<'a> {
    cache: &'a Cache,
    path: PathBuf,
    name: String,
}

impl Cache {
    /// Opens the folder, creating it and its key if they are missing. The error is the reason why it cannot be used.
    pub(crate) fn open(dir: &Path, engine: &Engine) -> Result<Self, String> {
        let told = |error: io::Error| format!("{}: {error}", dir.display());
        make_private(dir).map_err(told)?;
        check_private(dir)?;
        let key = read_or_make_key(dir).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => format!("{} is damaged; remove it", dir.join(KEY_FILE).display()),
            _ => told(error),
        })?;
        Ok(Self { dir: dir.to_owned(), key, fits: fits(engine) })
    }

    /// The place of the component with this digest.
    pub(crate) fn entry(&self, wasm: &[u8; 32]) -> Entry<'_> {
        let digest = Sha256::new().chain_update(self.fits).chain_update(wasm).finalize();
        let name = hex(&digest);
        Entry { cache: self, path: self.dir.join(format!("{name}.bin")), name }
    }

    /// The mark of the schema with this text.
    pub(crate) fn schema_mark(&self, text: &str) -> Option<Mark> {
        let mut mac = self.mac("schema")?;
        mac.update(&self.fits);
        mac.update(&COMPILER.to_le_bytes());
        mac.update(text.as_bytes());
        Some(Mark(self.dir.join(format!("{}.schema", hex(&mac.finalize().into_bytes())))))
    }

    /// The code over a file's place, which its content follows: a file does not pass for another.
    fn mac(&self, name: &str) -> Option<Hmac<Sha256>> {
        let mut mac = <Hmac<Sha256>>::new_from_slice(&self.key).ok()?;
        mac.update(name.as_bytes());
        Some(mac)
    }
}

impl Mark {
    pub(crate) fn is_set(&self) -> bool {
        fs::File::open(&self.0).inspect(prune::note_use).is_ok()
    }

    /// A failure costs the next start a check and is logged.
    pub(crate) fn set(&self) {
        if let Err(error) = private_file(&self.0) {
            tracing::warn!(file = %self.0.display(), %error, "a schema that is valid could not be marked; the next start checks \
                                                            it again");
        }
    }
}

impl Entry<'_> {
    /// The compiled component, if there is one that is complete, authentic and compatible.
    pub(crate) fn load(&self, engine: &Engine) -> Option<Component> {
        let file = fs::File::open(&self.path).inspect(prune::note_use).ok()?;
        let code = match self.verified(file) {
            Ok(Some(code)) => code,
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
                tracing::warn!(file = %self.path.display(), %error, "a compiled component cannot be read; it is \
                                                                     compiled again");
                return None;
            }
            Ok(None) | Err(_) => {
                tracing::warn!(file = %self.path.display(), "a compiled component was altered or truncated; it is \
                                                             compiled again");
                return None;
            }
        };
        native::load(engine, code)
            .inspect_err(|error| {
                tracing::info!(file = %self.path.display(), %error, "a compiled component does not match this engine; \
                                                                     it is compiled again");
            })
            .ok()
    }

    /// Reads a file and checks it; `None`: it is not what this installation wrote.
    fn verified(&self, mut file: fs::File) -> io::Result<Option<native::Verified>> {
        let mut head = [0; MAGIC.len() + MAC_BYTES];
        file.read_exact(&mut head)?;
        let (magic, expected) = head.split_at(MAGIC.len());
        let Some(mut mac) = self.cache.mac(&self.name).filter(|_| magic == MAGIC) else { return Ok(None) };
        // First where nobody can change it, then checked.
        let code = sealed::Code::read(file)?;
        code.each(|part| mac.update(part))?;
        Ok(mac.verify_slice(expected).is_ok().then(|| native::Verified::new(code)))
    }

    /// Keeps `component`. A failure costs the next start a compilation and is logged.
    pub(crate) fn store(&self, component: &Component) {
        let written = component.serialize().map_err(io::Error::other).and_then(|code| self.write(&code));
        if let Err(error) = written {
            tracing::warn!(file = %self.path.display(), %error, "a compiled component could not be stored");
        }
        if let Err(error) = prune::prune(&self.cache.dir, &self.path) {
            tracing::warn!(folder = %self.cache.dir.display(), %error, "compiled components that are not used any more could not be removed");
        }
    }

    /// Written next to it and renamed: another process sees the whole file or none.
    fn write(&self, code: &[u8]) -> io::Result<()> {
        let mut mac = self.cache.mac(&self.name).ok_or_else(|| io::Error::other("no key"))?;
        mac.update(code);
        let beside = self.cache.dir.join(own_name(&self.name));
        let mut file = private_file(&beside)?;
        file.write_all(MAGIC)?;
        file.write_all(&mac.finalize().into_bytes())?;
        file.write_all(code)?;
        file.sync_all()?;
        drop(file);
        fs::rename(&beside, &self.path).inspect_err(|_| _ = fs::remove_file(&beside))
    }
}

fn fits(engine: &Engine) -> [u8; 32] {
    let mut hasher = Digester(Sha256::new());
    SCHEMA.hash(&mut hasher);
    env!("CARGO_PKG_VERSION").hash(&mut hasher);
    engine.precompile_compatibility_hash().hash(&mut hasher);
    hasher.0.finalize().into()
}

/// Feeds what hashes itself to SHA-256.
struct Digester(Sha256);

impl Hasher for Digester {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let digest = self.0.clone().finalize();
        digest.iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte))
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn read_or_make_key(dir: &Path) -> io::Result<[u8; KEY_BYTES]> {
    let path = dir.join(KEY_FILE);
    let mut key = [0; KEY_BYTES];
    match fs::File::open(&path) {
        Ok(mut file) => {
            file.read_exact(&mut key)?;
            Ok(key)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::File::open("/dev/urandom")?.read_exact(&mut key)?;
            let beside = dir.join(own_name(KEY_FILE));
            private_file(&beside)?.write_all(&key)?;
            // Of two processes that start at once one wins, and both use its key.
            let linked = fs::hard_link(&beside, &path);
            fs::remove_file(&beside)?;
            match linked {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
                _ => {
                    fs::File::open(&path)?.read_exact(&mut key)?;
                    Ok(key)
                }
            }
        }
        Err(error) => Err(error),
    }
}

/// A name for a file in the making that nobody else uses: not another process, and not another host of this one.
fn own_name(stem: &str) -> String {
    static MADE: AtomicU64 = AtomicU64::new(0);
    format!("{stem}.{}.{}.tmp", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed))
}

#[cfg(unix)]
fn make_private(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

#[cfg(unix)]
fn private_file(path: &Path) -> io::Result<fs::File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// The folder, and the key where there is one, must belong to this process's user and be closed to all others.
#[cfg(unix)]
fn check_private(dir: &Path) -> Result<(), String> {
    use std::os::unix::fs::MetadataExt as _;
    let told = |path: &Path, error: io::Error| format!("{}: {error}", path.display());
    // A file that this process makes belongs to its user: the standard library has no other way to ask.
    let probe = dir.join(own_name(PROBE));
    let file = private_file(&probe).map_err(|error| told(&probe, error))?;
    let user = file.metadata().map_err(|error| told(&probe, error))?.uid();
    fs::remove_file(&probe).map_err(|error| told(&probe, error))?;
    for path in [dir.to_owned(), dir.join(KEY_FILE)] {
        let found = match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            other => other.map_err(|error| told(&path, error))?,
        };
        if found.file_type().is_symlink() {
            return Err(format!("{} is a symbolic link; give the real folder", path.display()));
        }
        if found.uid() != user {
            return Err(format!("{} belongs to another user (id {}, not {user})", path.display(), found.uid()));
        }
        if found.mode() & 0o077 != 0 {
            let mode = found.mode() & 0o777;
            return Err(format!("{} is open to others (mode {mode:o}); run `chmod go= {0}`", path.display()));
        }
    }
    Ok(())
}

#[cfg(not(unix))]
fn make_private(_dir: &Path) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "owner-only folders are known on Unix only"))
}

#[cfg(not(unix))]
fn private_file(_path: &Path) -> io::Result<fs::File> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "owner-only files are known on Unix only"))
}

#[cfg(not(unix))]
fn check_private(_dir: &Path) -> Result<(), String> {
    Err("owner-only folders are known on Unix only".to_owned())
}

#[cfg(test)]
mod tests {
    use std::hash::Hasher as _;

    use sha2::{Digest as _, Sha256};

    use super::Digester;

    #[test]
    fn a_short_hash_is_the_beginning_of_the_long_one() {
        let mut hasher = Digester(Sha256::new());
        hasher.write(b"abc");
        // SHA-256 of "abc" begins with these bytes (FIPS 180-2, appendix B.1).
        assert_eq!(hasher.finish(), 0xba78_16bf_8f01_cfea);
    }
}
