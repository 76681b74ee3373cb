//! TLS for the connections of clients.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use rustls::ServerConfig;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tidegate::config::ServerCertificate;
use tidegate::diagnostic::Diagnostics;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

use super::tokens::Of;

/// The interval at which new connections check whether the files have changed.
const CHECKING: Duration = Duration::from_secs(1);

/// The certificate of a server cannot be used.
#[derive(Debug, thiserror::Error)]
enum CertificateError {
    /// A file cannot be read, or contains no certificate or no key.
    #[error("the {what} of the server cannot be read from {}: {cause}", path.display())]
    Unreadable {
        /// "certificate" or "private key".
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
    /// The two do not belong together, or TLS cannot use them.
    #[error("the certificate in {} cannot be used with the private key in {}: {source}", certificate.display(), key.display())]
    Unusable {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// What is wrong with them.
        source: rustls::Error,
    },
}

/// The certificate of a server, which is read again when its files change. One that cannot be used then is reported, and the previous one remains
/// in use.
#[derive(Debug)]
pub(crate) struct Tls {
    files: ServerCertificate,
    read: Mutex<Read>,
}

#[derive(Debug)]
struct Read {
    config: Arc<ServerConfig>,
    /// Those of the files that `config` was read from.
    stamps: Stamps,
    checked: Instant,
    /// The reason why the files as they are now cannot be used, if they cannot.
    failure: Option<String>,
}

/// The times at which the files were changed.
type Stamps = [Option<SystemTime>; 2];

impl Tls {
    /// Reads the files. `of`: the server.
    ///
    /// # Errors
    /// They cannot be used.
    pub(crate) fn open(files: &ServerCertificate, of: Of) -> Result<Self, Diagnostics> {
        let stamps = stamps(files);
        let config = config(files).map_err(|error| {
            let help = "name two files in PEM: the certificate chain of the server, leaf first, and its private key";
            Diagnostics(vec![of.error(error.to_string(), Some(&files.place)).help(help)])
        })?;
        let read = Mutex::new(Read { config, stamps, checked: Instant::now(), failure: None });
        Ok(Self { files: files.clone(), read })
    }

    /// Returns what a new connection is accepted with.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if read.checked.elapsed() >= CHECKING {
            read.checked = Instant::now();
            self.refresh(&mut read);
        }
        TlsAcceptor::from(Arc::clone(&read.config))
    }

    /// Reads the files if they have changed, until they can be used: permissions and the other file can change later.
    fn refresh(&self, read: &mut Read) {
        let now = stamps(&self.files);
        if now == read.stamps {
            read.failure = None;
            return;
        }
        match config(&self.files) {
            Ok(config) => (read.config, read.stamps, read.failure) = (config, now, None),
            Err(error) => {
                let failure = error.to_string();
                if read.failure.as_ref() != Some(&failure) {
                    tracing::error!("{failure}; the previous certificate remains in use");
                    read.failure = Some(failure);
                }
            }
        }
    }
}

fn stamps(files: &ServerCertificate) -> Stamps {
    [&files.certificate, &files.key].map(|file| fs::metadata(file).and_then(|of| of.modified()).ok())
}

fn config(files: &ServerCertificate) -> Result<Arc<ServerConfig>, CertificateError> {
    let certificates = read("certificate", &files.certificate, |bytes| {
        let all = CertificateDer::pem_slice_iter(bytes).collect::<Result<Vec<_>, _>>()?;
        if all.is_empty() { Err(pem::Error::NoItemsFound) } else { Ok(all) }
    })?;
    let key = read("private key", &files.key, PrivateKeyDer::from_pem_slice)?;
    let unusable =
        |source| CertificateError::Unusable { certificate: files.certificate.clone(), key: files.key.clone(), source };
    let builder = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(unusable)?.with_no_client_auth();
    let mut config = builder.with_single_cert(certificates, key).map_err(unusable)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn read<T>(
    what: &'static str,
    path: &Path,
    items: impl FnOnce(&[u8]) -> Result<T, pem::Error>,
) -> Result<T, CertificateError> {
    let unreadable = |cause| CertificateError::Unreadable { what, path: path.to_owned(), cause };
    let bytes = fs::read(path).map_err(|error| unreadable(error.to_string()))?;
    items(&bytes).map_err(|error| match error {
        pem::Error::NoItemsFound => unreadable(format!("it has no {what} in PEM")),
        // Errors of the format can repeat lines of a key.
        _ => unreadable("its PEM is damaged".to_owned()),
    })
}
