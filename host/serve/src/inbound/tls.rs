//! TLS for the connections of clients.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use net::{TlsAcceptor, UnusableCertificate, Validity, ValidityState};
use tidegate::config::ServerCertificate;
use tidegate::diagnostic::{Diagnostics, Health};
use tidegate::metrics::Metrics;

use super::tokens::Of;

/// The interval at which the files are checked for changes.
const CHECKING: Duration = Duration::from_secs(1);

/// The certificate of a server, which is read again when its files change. One that cannot be used then is reported, and the previous one remains
/// in use.
pub(crate) struct Tls {
    files: ServerCertificate,
    read: Mutex<Read>,
    /// Where its state is counted.
    metrics: Option<Metrics>,
}

/// The state of the certificate that is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    /// When it is valid; `None` where that cannot be read.
    validity: Option<Validity>,
    /// The files as they are now cannot be used.
    has_failed: bool,
}

impl State {
    /// Returns the time in which it is valid, and what that is now.
    fn now(self) -> Option<(Validity, ValidityState)> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        self.validity.map(|validity| (validity, validity.at(now)))
    }

    /// Returns the state as a word, the worst one first.
    pub(crate) fn word(self) -> &'static str {
        match self.now().map(|(_, now)| now) {
            Some(ValidityState::Expired) => "expired",
            Some(ValidityState::NotYetValid) => "not_yet_valid",
            _ if self.has_failed => "failed",
            Some(ValidityState::ExpiresSoon) => "expires_soon",
            Some(ValidityState::Valid) | None => "ok",
        }
    }

    /// Returns the state as a check reports it: whether clients refuse the certificate, or will soon, and what to do.
    pub(crate) fn health(self) -> (Health, String) {
        let Some((validity, now)) = self.now() else {
            return (Health::Good, "it can be used with its private key".to_owned());
        };
        let until = utc(validity.not_after);
        match now {
            ValidityState::Valid => (Health::Good, format!("it can be used with its private key until {until}")),
            ValidityState::ExpiresSoon => (Health::Warning, format!("it expires on {until}: renew it")),
            ValidityState::Expired => (Health::Bad, format!("it expired on {until}, and clients refuse it: renew it")),
            ValidityState::NotYetValid => {
                let from = utc(validity.not_before);
                (
                    Health::Bad,
                    format!("it is valid from {from} on, and clients refuse it: check the clock of this machine"),
                )
            }
        }
    }
}

/// Writes a time as `2026-11-23 07:51 UTC`.
fn utc(seconds: u64) -> String {
    let (year, month, day) = record::figures::date(seconds / 86_400);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02} UTC", seconds / 3600 % 24, seconds / 60 % 60)
}

struct Read {
    acceptor: TlsAcceptor,
    /// The time in which the certificate is valid; `None` where it cannot be read.
    validity: Option<Validity>,
    /// The state that was logged last.
    logged: ValidityState,
    /// Those of the files that `acceptor` was read from.
    stamps: Stamps,
    /// The reason why the files as they are now cannot be used, if they cannot.
    failure: Option<String>,
}

/// What changes with the files: device, inode, and the time of the last change of either, which no tool sets.
type Stamps = [Option<(u64, u64, i64, i64)>; 2];

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("files", &self.files).field("state", &self.state()).finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads the files. `of`: the server; `metrics`: where the state of the certificate is counted.
    ///
    /// # Errors
    /// They cannot be used.
    pub(crate) fn open(files: &ServerCertificate, of: Of, metrics: Option<&Metrics>) -> Result<Self, Diagnostics> {
        let stamps = stamps(files);
        let (acceptor, validity) = acceptor(files).map_err(|error| {
            let help = "name two files in PEM: the certificate chain of the server, leaf first, and its private key";
            let place = if error.is_of_key() { &files.key.place } else { &files.certificate.place };
            Diagnostics(vec![of.error(error.to_string(), Some(place)).help(help)])
        })?;
        let read = Read { acceptor, validity, logged: ValidityState::Valid, stamps, failure: None };
        Ok(Self { files: files.clone(), read: Mutex::new(read), metrics: metrics.cloned() })
    }

    /// Returns what a new connection is accepted with.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        self.lock().acceptor.clone()
    }

    /// Follows the files, one check at a time. A disk that does not answer, such as one of the network, stops no connection: the present
    /// certificate is in use meanwhile.
    pub(crate) async fn follow(self: Arc<Self>) {
        loop {
            self.report();
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
            Ok((acceptor, validity)) => *read = Read { acceptor, validity, stamps: now, failure: None, ..*read },
            Err(error) => {
                let failure = error.to_string();
                if read.failure.as_ref() != Some(&failure) {
                    tracing::error!("{failure}; the previous certificate remains in use");
                    read.failure = Some(failure);
                }
            }
        }
    }

    /// Returns the state of the certificate that is in use.
    pub(crate) fn state(&self) -> State {
        let read = self.lock();
        State { validity: read.validity, has_failed: read.failure.is_some() }
    }

    /// Counts the state, and logs one that has changed for the worse.
    fn report(&self) {
        let state = self.state();
        if let Some(metrics) = &self.metrics {
            metrics.server_certificate(state.validity.map(|validity| validity.not_after), state.has_failed);
        }
        let Some((_, now)) = state.now() else { return };
        let before = std::mem::replace(&mut self.lock().logged, now);
        if now != before && now != ValidityState::Valid {
            tracing::warn!("the certificate in {}: {}", self.files.certificate.path.display(), state.health().1);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Read> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn acceptor(files: &ServerCertificate) -> Result<(TlsAcceptor, Option<Validity>), UnusableCertificate> {
    net::acceptor(&files.certificate.path, &files.key.path)
}

fn stamps(files: &ServerCertificate) -> Stamps {
    let stamp = |of: fs::Metadata| (of.dev(), of.ino(), of.ctime(), of.ctime_nsec());
    [&files.certificate, &files.key].map(|file| fs::metadata(&file.path).ok().map(stamp))
}
