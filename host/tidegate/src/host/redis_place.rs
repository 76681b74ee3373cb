//! The Redis server that the operator has chosen for state.

use config::{Diagnostics, PlacedFile, RedisPlace};
use flow::{Diagnostic, DiagnosticCode as Code, Location};
use store::{InvalidRedis, RedisOptions, RedisSetting, StoreOptions};

use crate::HostError;

/// Returns the options of the server, which can be used as they are.
///
/// # Errors
/// A variable is not set, or a setting cannot be used; the diagnostic has its location.
pub(crate) fn options(place: &RedisPlace, store: StoreOptions) -> Result<RedisOptions, HostError> {
    let variable = |name: &str| system::environment::variable(name).and_then(|value| value.into_string().ok());
    let url = variable(&place.url_env).ok_or_else(|| HostError::NoStateUrl { variable: place.url_env.clone() })?;
    let mut redis = RedisOptions::new(url);
    redis.store = store;
    redis.lease = place.lease.unwrap_or(redis.lease);
    redis.allow_plaintext_password = place.allow_plaintext_password;
    redis.user.clone_from(&place.user);
    if let Some(name) = &place.password_env {
        let password = variable(name).filter(|value| !value.is_empty());
        redis.password = Some(password.ok_or_else(|| no_password(name, place))?);
    }
    let path = |file: &Option<PlacedFile>| file.as_ref().map(|file| file.path.clone());
    redis.tls.ca = path(&place.ca);
    redis.tls.certificate = path(&place.certificate);
    redis.tls.certificate_key = path(&place.certificate_key);
    redis.check().map_err(|error| Diagnostics(vec![located(error, place)]))?;
    Ok(redis)
}

fn no_password(name: &str, place: &RedisPlace) -> Diagnostics {
    let message =
        format!("the environment variable `{name}`, which contains the password of the state store, is not set");
    Diagnostics(vec![invalid(message, place.password_place.as_ref()).help("set it, or remove `password`")])
}

/// Returns the diagnostic of a setting that cannot be used.
fn located(error: InvalidRedis, place: &RedisPlace) -> Diagnostic {
    let of = |file: &Option<PlacedFile>| file.as_ref().map(|file| file.place.clone());
    let location = match error.setting {
        RedisSetting::Ca => of(&place.ca),
        RedisSetting::Certificate => of(&place.certificate),
        RedisSetting::CertificateKey => of(&place.certificate_key),
        RedisSetting::Password => place.password_place.clone(),
        _ => None,
    };
    let from_url = if location.is_none() { format!(": the URL in `{}`", place.url_env) } else { String::new() };
    let message = format!("the state store cannot be used{from_url}: {}", error.problem);
    invalid(message, location.as_ref()).help(error.help)
}

fn invalid(message: String, location: Option<&Location>) -> Diagnostic {
    let error = Diagnostic::error(Code::ConfigStateBackend, message);
    location.into_iter().fold(error, |error, location| error.at(location.clone(), ""))
}
