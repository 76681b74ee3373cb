//! The certificates of a connection with TLS.

use std::path::{Path, PathBuf};

use ::redis::{ClientTlsConfig, TlsCertificates};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::options::{InvalidRedis, RedisSetting};

/// The files of a connection with TLS, in PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RedisTls {
    /// The certificates against which that of the server is checked; `None`: those of the machine.
    pub ca: Option<PathBuf>,
    /// The certificate that the server gets, with those between it and its authority.
    pub certificate: Option<PathBuf>,
    /// The private key of `certificate`.
    pub certificate_key: Option<PathBuf>,
}

impl RedisTls {
    /// Reads the files.
    ///
    /// # Errors
    /// One of them cannot be read or used, or is missing.
    pub(super) fn read(&self) -> Result<TlsCertificates, InvalidRedis> {
        use RedisSetting::{Ca, Certificate, CertificateKey};
        choose_cryptography();
        let root_cert = self.ca.as_deref().map(|path| certificates(Ca, path)).transpose()?;
        let client_tls = match (&self.certificate, &self.certificate_key) {
            (None, None) => None,
            (Some(certificate), Some(key)) => {
                let client_cert = certificates(Certificate, certificate)?;
                let client_key = private_key(key)?;
                pair(key, &client_cert, &client_key)?;
                Some(ClientTlsConfig { client_cert, client_key })
            }
            (Some(path), None) => return Err(invalid(Certificate, path, "and there is no `certificate_key`")),
            (None, Some(path)) => return Err(invalid(CertificateKey, path, "and there is no `certificate`")),
        };
        Ok(TlsCertificates { client_tls, root_cert })
    }
}

fn invalid(file: RedisSetting, path: &Path, problem: impl Into<String>) -> InvalidRedis {
    let help = match file {
        RedisSetting::CertificateKey => "name a file in PEM with the private key of `certificate`",
        _ => "name a file in PEM with certificates",
    };
    InvalidRedis::new(file, format!("`{file}` is {}, {}", path.display(), problem.into()), help)
}

fn read(file: RedisSetting, path: &Path) -> Result<Vec<u8>, InvalidRedis> {
    std::fs::read(path).map_err(|error| invalid(file, path, format!("which cannot be read: {error}")))
}

/// Returns the bytes of a file that contains certificates, all of which are valid.
fn certificates(file: RedisSetting, path: &Path) -> Result<Vec<u8>, InvalidRedis> {
    let bytes = read(file, path)?;
    let mut count = 0_usize;
    for found in CertificateDer::pem_slice_iter(&bytes) {
        count += 1;
        let found = found.map_err(|_| invalid(file, path, format!("of which certificate {count} is damaged")))?;
        let added = RootCertStore::empty().add(found);
        added.map_err(|error| invalid(file, path, format!("of which certificate {count} is invalid: {error}")))?;
    }
    if count == 0 { Err(invalid(file, path, "which contains no certificate in PEM")) } else { Ok(bytes) }
}

fn private_key(path: &Path) -> Result<Vec<u8>, InvalidRedis> {
    let file = RedisSetting::CertificateKey;
    let bytes = read(file, path)?;
    // The cause could repeat bytes of the key.
    PrivateKeyDer::from_pem_slice(&bytes)
        .map_err(|_| invalid(file, path, "which contains no private key in PEM without a passphrase"))?;
    Ok(bytes)
}

/// Checks that a private key is that of a certificate.
fn pair(path: &Path, certificate: &[u8], key: &[u8]) -> Result<(), InvalidRedis> {
    let file = RedisSetting::CertificateKey;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate).collect();
    let (Ok(chain), Ok(key)) = (chain, PrivateKeyDer::from_pem_slice(key)) else { return Ok(()) };
    let config = rustls::ClientConfig::builder().with_root_certificates(RootCertStore::empty());
    match config.with_client_auth_cert(chain, key) {
        Ok(_) => Ok(()),
        Err(error) => Err(invalid(file, path, format!("whose key cannot be used with `certificate`: {error}"))),
    }
}

/// Chooses the cryptography of TLS for the process, unless the program has chosen already.
fn choose_cryptography() {
    drop(rustls::crypto::ring::default_provider().install_default());
}
