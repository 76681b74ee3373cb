//! TLS of this machine's own servers.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::validity::Validity;

/// The maximum size of a file.
const MAX_FILE: u64 = 1 << 20;

/// What the PEM of an encrypted key contains, in each of its formats.
const ENCRYPTED: &[u8] = b"ENCRYPTED";

/// The certificate of a server, or its private key, cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnusableCertificate {
    /// The file of the certificate cannot be read, or contains none.
    #[error("the certificate of the server cannot be read from {}: {cause}", path.display())]
    Certificate {
        /// The file that is named for the certificate.
        path: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
    /// The file of the key cannot be read, or contains none.
    #[error("the private key of the server cannot be read from {}: {cause}", path.display())]
    Key {
        /// The file that is named for the key.
        path: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
    /// The two do not belong together.
    #[error("the certificate in {} cannot be used with the private key in {}: {cause}", certificate.display(), key.display())]
    Mismatched {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// What is wrong with them.
        cause: String,
    },
}

impl UnusableCertificate {
    /// Returns whether it is the key that cannot be used, alone or with the certificate.
    pub fn is_of_key(&self) -> bool {
        matches!(self, Self::Key { .. } | Self::Mismatched { .. })
    }
}

/// Returns what a server accepts connections with, over TLS 1.2 and 1.3: the certificate chain in one PEM file, leaf first, and its private key in
/// another one. The time in which the leaf is valid is `None` where it cannot be read.
///
/// # Errors
/// The files cannot be used.
pub fn acceptor(certificate: &Path, key: &Path) -> Result<(TlsAcceptor, Option<Validity>), UnusableCertificate> {
    let chain = read("certificate", certificate, |bytes| {
        let all = CertificateDer::pem_slice_iter(bytes).collect::<Result<Vec<_>, _>>()?;
        if all.is_empty() { Err(pem::Error::NoItemsFound) } else { Ok(all) }
    });
    let chain = chain.map_err(|cause| UnusableCertificate::Certificate { path: certificate.to_owned(), cause })?;
    let private = read("private key", key, PrivateKeyDer::from_pem_slice);
    let private = private.map_err(|cause| UnusableCertificate::Key { path: key.to_owned(), cause })?;
    let unusable = |error| match error {
        rustls::Error::InconsistentKeys(_) => UnusableCertificate::Mismatched {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            cause: "the key is that of another certificate".to_owned(),
        },
        error => UnusableCertificate::Certificate { path: certificate.to_owned(), cause: error.to_string() },
    };
    let provider = rustls::crypto::ring::default_provider();
    // The cause could repeat bytes of the key.
    provider.key_provider.load_private_key(private.clone_key()).map_err(|_| UnusableCertificate::Key {
        path: key.to_owned(),
        cause: "TLS cannot use the key, which is damaged or of a kind that is not supported".to_owned(),
    })?;
    let validity = chain.first().and_then(Validity::of);
    let builder = ServerConfig::builder_with_provider(Arc::new(provider));
    let builder = builder.with_safe_default_protocol_versions().map_err(unusable)?.with_no_client_auth();
    let mut config = builder.with_single_cert(chain, private).map_err(unusable)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok((TlsAcceptor::from(Arc::new(config)), validity))
}

/// Reads items of a PEM file.
///
/// # Errors
/// The file cannot be read, or does not contain them: the reason.
fn read<T>(what: &str, path: &Path, items: impl FnOnce(&[u8]) -> Result<T, pem::Error>) -> Result<T, String> {
    let metadata = fs::metadata(path).map_err(|error| error.to_string())?;
    // Reading a pipe or a device can block without an end.
    if !metadata.is_file() || metadata.len() > MAX_FILE {
        return Err("it is not a regular file of at most 1 MiB".to_owned());
    }
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    items(&bytes).map_err(|error| match error {
        _ if bytes.windows(ENCRYPTED.len()).any(|part| part == ENCRYPTED) => {
            "it is encrypted; `openssl pkey -in FILE -out OTHER` writes it without a passphrase".to_owned()
        }
        pem::Error::NoItemsFound => format!("it contains no {what} in PEM"),
        // Errors of the format can repeat lines of a key.
        _ => "its PEM is damaged".to_owned(),
    })
}
