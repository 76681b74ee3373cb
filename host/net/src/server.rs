//! TLS of this machine's own servers.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// The maximum size of a file.
const MAX_FILE: u64 = 1 << 20;

/// What the PEM of an encrypted key contains, in each of its formats.
const ENCRYPTED: &[u8] = b"ENCRYPTED";

/// The certificate of a server cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnusableCertificate {
    /// A file cannot be read, or contains no certificate or no key.
    #[error("the {what} of the server cannot be read from {}: {cause}", path.display())]
    Unreadable {
        /// "certificate" or "private key".
        what: &'static str,
        /// The file that is named for it.
        path: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
    /// The two do not belong together, or TLS cannot use them.
    #[error("the certificate in {} cannot be used with the private key in {}: {source}", certificate.display(), key.display())]
    Mismatched {
        /// The file that is named for the certificate.
        certificate: PathBuf,
        /// The file that is named for the key.
        key: PathBuf,
        /// What TLS reports.
        source: rustls::Error,
    },
}

/// Returns what a server accepts connections with, over TLS 1.2 and 1.3: the certificate chain in one PEM file, leaf first, and its private key in
/// another one.
///
/// # Errors
/// The files cannot be used.
pub fn acceptor(certificate: &Path, key: &Path) -> Result<TlsAcceptor, UnusableCertificate> {
    let chain = read("certificate", certificate, |bytes| {
        let all = CertificateDer::pem_slice_iter(bytes).collect::<Result<Vec<_>, _>>()?;
        if all.is_empty() { Err(pem::Error::NoItemsFound) } else { Ok(all) }
    })?;
    let private = read("private key", key, PrivateKeyDer::from_pem_slice)?;
    let mismatched =
        |source| UnusableCertificate::Mismatched { certificate: certificate.to_owned(), key: key.to_owned(), source };
    let builder = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(mismatched)?.with_no_client_auth();
    let mut config = builder.with_single_cert(chain, private).map_err(mismatched)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn read<T>(
    what: &'static str,
    path: &Path,
    items: impl FnOnce(&[u8]) -> Result<T, pem::Error>,
) -> Result<T, UnusableCertificate> {
    let unreadable = |cause| UnusableCertificate::Unreadable { what, path: path.to_owned(), cause };
    let metadata = fs::metadata(path).map_err(|error| unreadable(error.to_string()))?;
    // To read a pipe or a device can take for ever.
    if !metadata.is_file() || metadata.len() > MAX_FILE {
        return Err(unreadable("it is no file of at most 1 MiB".to_owned()));
    }
    let bytes = fs::read(path).map_err(|error| unreadable(error.to_string()))?;
    items(&bytes).map_err(|error| match error {
        _ if bytes.windows(ENCRYPTED.len()).any(|part| part == ENCRYPTED) => {
            unreadable("it is encrypted; `openssl pkey -in FILE -out OTHER` writes it without a passphrase".to_owned())
        }
        pem::Error::NoItemsFound => unreadable(format!("it has no {what} in PEM")),
        // Errors of the format can repeat lines of a key.
        _ => unreadable("its PEM is damaged".to_owned()),
    })
}
