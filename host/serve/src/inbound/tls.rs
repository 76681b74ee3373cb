//! TLS for the connections of clients.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use net::{TlsAcceptor, UnusableCertificate};
use tidegate::config::ServerCertificate;
use tidegate::diagnostic::Diagnostics;

use super::tokens::Of;

/// The interval at which the files are checked for changes.
const CHECKING: Duration = Duration::from_secs(1);

/// The certificate of a server, which is read again when its files change. One that cannot be used then is reported, and the previous one remains
/// in use.
pub(crate) struct Tls {
    files: ServerCertificate,
    read: Mutex<Read>,
}

struct Read {
    acceptor: TlsAcceptor,
    /// Those of the files that `acceptor` was read from.
    stamps: Stamps,
    /// The reason why the files as they are now cannot be used, if they cannot.
    failure: Option<String>,
}

/// What changes with the files: device, inode, and the time of the last change of either, which no tool sets.
type Stamps = [Option<(u64, u64, i64, i64)>; 2];

impl Tls {
    /// Reads the files. `of`: the server.
    ///
    /// # Errors
    /// They cannot be used.
    pub(crate) fn open(files: &ServerCertificate, of: Of) -> Result<Self, Diagnostics> {
        let stamps = stamps(files);
        let acceptor = acceptor(files).map_err(|error| {
            let help = "name two files in PEM: the certificate chain of the server, leaf first, and its private key";
            let place = if error.is_of_key() { &files.key.place } else { &files.certificate.place };
            Diagnostics(vec![of.error(error.to_string(), Some(place)).help(help)])
        })?;
        let read = Mutex::new(Read { acceptor, stamps, failure: None });
        Ok(Self { files: files.clone(), read })
    }

    /// Returns what a new connection is accepted with.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        self.lock().acceptor.clone()
    }

    /// Follows the files, one check at a time. A disk that does not answer, such as one of the network, stops no connection: the present
    /// certificate is in use meanwhile.
    pub(crate) async fn follow(self: Arc<Self>) {
        loop {
            tokio::time::sleep(CHECKING).await;
            let own = Arc::clone(&self);
            if let Err(error) = tokio::task::spawn_blocking(move || own.check()).await {
                tracing::error!("the files of the certificate cannot be checked for changes: {error}");
            }
        }
    }

    /// Reads the files if they have changed, until they can be used: permissions and the other file can change later.
    fn check(&self) {
        let now = stamps(&self.files);
        if now == self.lock().stamps {
            self.lock().failure = None;
            return;
        }
        let found = acceptor(&self.files);
        let mut read = self.lock();
        match found {
            Ok(acceptor) => *read = Read { acceptor, stamps: now, failure: None },
            Err(error) => {
                let failure = error.to_string();
                if read.failure.as_ref() != Some(&failure) {
                    tracing::error!("{failure}; the previous certificate remains in use");
                    read.failure = Some(failure);
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Read> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn acceptor(files: &ServerCertificate) -> Result<TlsAcceptor, UnusableCertificate> {
    net::acceptor(&files.certificate.path, &files.key.path)
}

fn stamps(files: &ServerCertificate) -> Stamps {
    let stamp = |of: fs::Metadata| (of.dev(), of.ino(), of.ctime(), of.ctime_nsec());
    [&files.certificate, &files.key].map(|file| fs::metadata(&file.path).ok().map(stamp))
}
