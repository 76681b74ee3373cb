//! The time in which a certificate is valid.

use std::sync::Arc;
use std::time::Duration;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, Error, RootCertStore};

/// A certificate expires soon when less than this is left, in seconds: 14 days.
const SOON: u64 = 14 * 86_400;

/// The part of its lifetime that is soon for a certificate with a short one.
const SOON_PART: u64 = 4;

/// The time in which a certificate is valid, in seconds since 1970-01-01 UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// The first second.
    pub not_before: u64,
    /// The last second.
    pub not_after: u64,
}

/// The validity of a certificate at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValidityState {
    /// It is valid.
    Valid,
    /// It is valid for less than 14 days, or less than a quarter of its lifetime where that is shorter.
    ExpiresSoon,
    /// It is not valid any more.
    Expired,
    /// It is not valid yet.
    NotYetValid,
}

impl Validity {
    /// Reads the time from a certificate: the errors of rustls at the first and at the last of all times name its limits.
    pub(crate) fn of(certificate: &CertificateDer<'_>) -> Option<Self> {
        let mut roots = RootCertStore::empty();
        roots.add(certificate.clone()).ok()?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().ok()?;
        let name = ServerName::try_from("localhost").ok()?;
        let error_at = |seconds| {
            let time = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
            verifier.verify_server_cert(certificate, &[], &name, &[], time).err()
        };
        let not_before = match error_at(0) {
            Some(Error::InvalidCertificate(CertificateError::NotValidYetContext { not_before, .. })) => {
                not_before.as_secs()
            }
            _ => 0,
        };
        match error_at(u64::MAX)? {
            Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. }) => {
                Some(Self { not_before, not_after: not_after.as_secs() })
            }
            _ => None,
        }
    }

    /// Returns the state at a time, in seconds since 1970-01-01 UTC.
    pub fn at(self, now: u64) -> ValidityState {
        let lifetime = self.not_after.saturating_sub(self.not_before);
        if now < self.not_before {
            ValidityState::NotYetValid
        } else if now > self.not_after {
            ValidityState::Expired
        } else if self.not_after - now < SOON.min(lifetime / SOON_PART) {
            ValidityState::ExpiresSoon
        } else {
            ValidityState::Valid
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use rustls::pki_types::pem::PemObject as _;

    use super::ValidityState::{Expired, ExpiresSoon, NotYetValid, Valid};
    use super::*;

    #[test]
    fn the_time_of_a_certificate_is_read() {
        let certificate = CertificateDer::from_pem_slice(include_bytes!("../tests/authority.pem")).unwrap();
        assert_eq!(Validity::of(&certificate), Some(Validity { not_before: 1_795_660_786, not_after: 4_949_260_786 }));
        let damaged = CertificateDer::from(certificate[..certificate.len() / 2].to_vec());
        assert_eq!(Validity::of(&damaged), None);
    }

    #[test]
    fn what_is_soon_depends_on_the_lifetime() {
        const DAY: u64 = 86_400;
        for (days, left, expected) in [
            (90, 90 * DAY, Valid),
            (90, 14 * DAY, Valid),
            (90, 14 * DAY - 1, ExpiresSoon),
            (90, 0, ExpiresSoon),
            (8, 2 * DAY, Valid),
            (8, 2 * DAY - 1, ExpiresSoon),
        ] {
            let of = Validity { not_before: 1_000, not_after: 1_000 + days * DAY };
            assert_eq!(of.at(of.not_after - left), expected, "{days} days, {left} s left");
            assert_eq!([of.at(of.not_before - 1), of.at(of.not_after + 1)], [NotYetValid, Expired]);
        }
    }
}
