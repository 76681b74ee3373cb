//! The certificate authorities that `SSL_CERT_FILE` and `SSL_CERT_DIR` name, in place of the machine's.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use reqwest::Certificate;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

/// The variable that names a file of certificates in PEM.
pub const SSL_CERT_FILE: &str = "SSL_CERT_FILE";

/// The variable that names folders of such files.
pub const SSL_CERT_DIR: &str = "SSL_CERT_DIR";

/// The certificates of a variable cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the environment variable {variable} names {}, {problem}; no other certificates are used in its place", path.display())]
pub struct InvalidCertificates {
    /// The name of the variable.
    pub variable: &'static str,
    /// The file or folder.
    pub path: PathBuf,
    /// What is wrong with it.
    pub problem: String,
}

/// The certificates that the variables name, of both together; `None` where neither is set: those of the machine count.
///
/// # Errors
/// A file or a folder cannot be read, contains no certificate, or one that is invalid.
pub(crate) fn of_environment() -> Result<Option<Vec<Certificate>>, InvalidCertificates> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    read(set(SSL_CERT_FILE).as_deref(), set(SSL_CERT_DIR).as_deref())
}

fn read(file: Option<&OsStr>, folders: Option<&OsStr>) -> Result<Option<Vec<Certificate>>, InvalidCertificates> {
    if file.is_none() && folders.is_none() {
        return Ok(None);
    }
    let mut found = Vec::new();
    if let Some(path) = file.map(PathBuf::from) {
        let invalid = |problem| InvalidCertificates { variable: SSL_CERT_FILE, path: path.clone(), problem };
        let certificates = of_file(&path).map_err(invalid)?;
        if certificates.is_empty() {
            return Err(invalid("which contains no certificate in PEM".to_owned()));
        }
        found.extend(certificates);
    }
    for path in folders.into_iter().flat_map(std::env::split_paths) {
        let invalid =
            |path: &Path, problem| InvalidCertificates { variable: SSL_CERT_DIR, path: path.to_owned(), problem };
        let before = found.len();
        let entries =
            std::fs::read_dir(&path).map_err(|error| invalid(&path, format!("which cannot be read: {error}")))?;
        for entry in entries {
            let file = entry.map_err(|error| invalid(&path, format!("which cannot be read: {error}")))?.path();
            // Links of such folders can be dangling, and have no certificate then.
            if file.is_file() {
                found.extend(of_file(&file).map_err(|problem| invalid(&file, problem))?);
            }
        }
        if found.len() == before {
            return Err(invalid(&path, "in which no file contains a certificate in PEM".to_owned()));
        }
    }
    Ok(Some(found))
}

/// The certificates of a file. Text between them is allowed, and a file can have none.
pub(crate) fn of_file(path: &Path) -> Result<Vec<Certificate>, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("which cannot be read: {error}"))?;
    let mut found = Vec::new();
    for (number, certificate) in (1..).zip(CertificateDer::pem_slice_iter(&bytes)) {
        let certificate = certificate.map_err(|error| format!("of which certificate {number} is damaged: {error}"))?;
        let invalid = |error: &dyn std::fmt::Display| format!("of which certificate {number} is invalid: {error}");
        RootCertStore::empty().add(certificate.clone()).map_err(|error| invalid(&error))?;
        found.push(Certificate::from_der(&certificate).map_err(|error| invalid(&error))?);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    /// A certificate authority that signs nothing.
    const CERTIFICATE: &str = include_str!("../tests/authority.pem");

    fn read_of(file: Option<&Path>, folder: Option<&Path>) -> Result<Option<usize>, String> {
        let found = read(file.map(Path::as_os_str), folder.map(Path::as_os_str));
        found.map(|found| found.map(|found| found.len())).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_named_is_read_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let (file, twice) = (folder.path().join("one.pem"), folder.path().join("two.pem"));
        std::fs::write(&file, CERTIFICATE).unwrap();
        std::fs::write(&twice, format!("# Two of them.\n{CERTIFICATE}\nand\n{CERTIFICATE}")).unwrap();
        std::fs::write(folder.path().join("README"), "Certificates.").unwrap();
        assert_eq!(read_of(None, None), Ok(None));
        assert_eq!(read_of(Some(&file), None), Ok(Some(1)));
        assert_eq!(read_of(None, Some(folder.path())), Ok(Some(3)));
        assert_eq!(read_of(Some(&twice), Some(folder.path())), Ok(Some(5)));
    }

    #[test]
    fn what_cannot_be_used_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let write = |name: &str, text: &str| std::fs::write(path(name), text).unwrap();
        let (begin, end) = ("-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----");
        write("empty.pem", "");
        write("key.pem", "-----BEGIN PRIVATE KEY-----\nMA==\n-----END PRIVATE KEY-----\n");
        write("cut.pem", &CERTIFICATE[..CERTIFICATE.len() / 2]);
        write("other.pem", &format!("{CERTIFICATE}\n{begin}\nMAMCAQE=\n{end}\n"));
        for (name, expected) in [
            ("missing.pem", "which cannot be read"),
            ("empty.pem", "contains no certificate"),
            ("key.pem", "contains no certificate"),
            ("cut.pem", "certificate 1 is damaged"),
            ("other.pem", "certificate 2 is invalid"),
        ] {
            let error = read_of(Some(&path(name)), None).unwrap_err();
            assert!(
                error.contains(expected) && error.contains(SSL_CERT_FILE) && error.contains(name),
                "{name}: {error}"
            );
        }
        let error = read_of(None, Some(folder.path())).unwrap_err();
        assert!(error.contains(SSL_CERT_DIR) && error.contains("certificate"), "{error}");
        let error = read_of(None, Some(&path("missing"))).unwrap_err();
        assert!(error.contains(SSL_CERT_DIR) && error.contains("cannot be read"), "{error}");
        let bare = tempfile::tempdir().unwrap();
        let error = read_of(None, Some(bare.path())).unwrap_err();
        assert!(error.contains("no file contains a certificate"), "{error}");
    }
}
