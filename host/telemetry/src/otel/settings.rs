//! The standard variables of OpenTelemetry: where to send, with which headers, and under which name.

use std::time::Duration;

use flow::Address;
use opentelemetry_sdk::trace::{IdGenerator as _, RandomIdGenerator};
use percent_encoding::percent_decode_str;

use crate::OtelError;
use crate::otel::http::{HeaderMap, HeaderName, HeaderValue, Url};

/// How long one request is allowed to take, unless `OTEL_EXPORTER_OTLP_TIMEOUT` is set.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The time between two exports of metrics, unless `OTEL_METRIC_EXPORT_INTERVAL` is set.
const INTERVAL: Duration = Duration::from_secs(60);

/// The variables that are read.
pub(crate) const NAMES: [&str; 21] = [
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_EXPORTER_OTLP_INSECURE",
    "OTEL_EXPORTER_OTLP_PROTOCOL",
    "OTEL_EXPORTER_OTLP_TIMEOUT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    "OTEL_EXPORTER_OTLP_TRACES_INSECURE",
    "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
    "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_HEADERS",
    "OTEL_EXPORTER_OTLP_METRICS_INSECURE",
    "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL",
    "OTEL_EXPORTER_OTLP_METRICS_TIMEOUT",
    "OTEL_METRIC_EXPORT_INTERVAL",
    "OTEL_METRICS_EXPORTER",
    "OTEL_RESOURCE_ATTRIBUTES",
    "OTEL_SDK_DISABLED",
    "OTEL_SERVICE_NAME",
    "OTEL_TRACES_EXPORTER",
];

/// Where one signal goes.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    /// How long one request may take.
    pub(crate) timeout: Duration,
}

/// What is exported, and where to.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) traces: Option<Target>,
    pub(crate) metrics: Option<Target>,
    /// The time between two exports of metrics.
    pub(crate) interval: Duration,
    /// The attributes of the resource, each name once.
    pub(crate) resource: Vec<(String, String)>,
}

/// The variables, by name.
struct Variables<'a>(&'a dyn Fn(&str) -> Option<String>);

impl Settings {
    /// Reads the variables. `None`: no endpoint is set, or everything is switched off.
    pub(crate) fn read(variable: &dyn Fn(&str) -> Option<String>) -> Result<Option<Self>, OtelError> {
        let variables = Variables(variable);
        if variables.get("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Ok(None);
        }
        let (traces, metrics) = (variables.target("TRACES", "v1/traces")?, variables.target("METRICS", "v1/metrics")?);
        if traces.is_none() && metrics.is_none() {
            return Ok(None);
        }
        let interval = variables.milliseconds("OTEL_METRIC_EXPORT_INTERVAL")?.unwrap_or(INTERVAL);
        Ok(Some(Self { traces, metrics, interval, resource: variables.resource()? }))
    }
}

impl Variables<'_> {
    /// A variable that is set and not empty: the specification treats both alike.
    fn get(&self, name: &str) -> Option<String> {
        debug_assert!(NAMES.contains(&name), "{name} is missing in the list of variables");
        self.0(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    /// The variable of a signal, or else that of all signals, with the name of the one that is set.
    fn of_signal(&self, signal: &str, name: &str) -> Option<(String, String)> {
        let names = [format!("OTEL_EXPORTER_OTLP_{signal}_{name}"), format!("OTEL_EXPORTER_OTLP_{name}")];
        names.into_iter().find_map(|name| Some((self.get(&name)?, name)))
    }

    fn target(&self, signal: &str, path: &str) -> Result<Option<Target>, OtelError> {
        let exporter = format!("OTEL_{signal}_EXPORTER");
        match self.get(&exporter).as_deref() {
            None | Some("otlp") => {}
            Some("none") => return Ok(None),
            Some(other) => {
                return Err(OtelError::new(exporter, format!("{other:?} is not supported: set `otlp` or `none`")));
            }
        }
        let Some((endpoint, variable)) = self.of_signal(signal, "ENDPOINT") else { return Ok(None) };
        if let Some((protocol, variable)) = self.of_signal(signal, "PROTOCOL")
            && protocol != "http/protobuf"
        {
            let cause = format!("{protocol:?} is not supported: set `http/protobuf`, whose usual port is 4318");
            return Err(OtelError::new(variable, cause));
        }
        let own = variable.contains(signal);
        let url = url(&endpoint, if own { None } else { Some(path) });
        let url = url.map_err(|cause| OtelError::new(variable.clone(), cause))?;
        let headers = self.headers(signal)?;
        let is_secret = !headers.is_empty() || !url.username().is_empty() || url.password().is_some();
        let is_exposed = Address::of_url(url.as_str()).map_or(true, |address| address.is_exposed());
        if is_secret && is_exposed && !self.is_insecure(signal) {
            let cause = "headers or credentials would be sent to another machine over plain http, where everyone on the way can read them: \
                         use https://, or set OTEL_EXPORTER_OTLP_INSECURE=true";
            return Err(OtelError::new(variable, cause));
        }
        let timeout = match self.of_signal(signal, "TIMEOUT") {
            Some((_, variable)) => self.milliseconds(&variable)?.unwrap_or(TIMEOUT),
            None => TIMEOUT,
        };
        Ok(Some(Target { url, headers, timeout }))
    }

    /// Whether what is secret is sent to another machine without encryption.
    fn is_insecure(&self, signal: &str) -> bool {
        self.of_signal(signal, "INSECURE").is_some_and(|(value, _)| value.eq_ignore_ascii_case("true"))
    }

    fn headers(&self, signal: &str) -> Result<HeaderMap, OtelError> {
        let mut headers = HeaderMap::new();
        let Some((text, variable)) = self.of_signal(signal, "HEADERS") else { return Ok(headers) };
        for (name, value) in pairs(&text) {
            // What it contains can be a secret, and is not repeated.
            let bad = |what: &str| OtelError::new(variable.clone(), format!("a header {what}"));
            let value = value.ok_or_else(|| bad("has no value: write NAME=VALUE, and a comma between two"))?;
            let header = HeaderName::try_from(&name).map_err(|_| bad("has a name that is not valid"))?;
            let mut value = HeaderValue::try_from(value).map_err(|_| bad("has a value that is not valid"))?;
            value.set_sensitive(true);
            headers.insert(header, value);
        }
        Ok(headers)
    }

    fn milliseconds(&self, name: &str) -> Result<Option<Duration>, OtelError> {
        let Some(text) = self.get(name) else { return Ok(None) };
        match text.parse() {
            Ok(0) | Err(_) => {
                Err(OtelError::new(name, format!("{text:?} is not a number of milliseconds greater than 0")))
            }
            Ok(number) => Ok(Some(Duration::from_millis(number))),
        }
    }

    /// What the numbers are about: this program, under the name that the operator gives it.
    fn resource(&self) -> Result<Vec<(String, String)>, OtelError> {
        let version = env!("CARGO_PKG_VERSION");
        let own = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mut all = vec![
            own("service.name", "tidegate"),
            own("service.version", version),
            // Counts of two processes must not be taken for those of one that was restarted.
            own("service.instance.id", &RandomIdGenerator::default().new_trace_id().to_string()),
            own("telemetry.sdk.name", "tidegate"),
            own("telemetry.sdk.language", "rust"),
            own("telemetry.sdk.version", version),
        ];
        let variable = "OTEL_RESOURCE_ATTRIBUTES";
        let mut given = Vec::new();
        for (name, value) in pairs(&self.get(variable).unwrap_or_default()) {
            let bad = || {
                OtelError::new(variable, format!("{name:?} has no value: write NAME=VALUE, and a comma between two"))
            };
            given.push((name.clone(), value.ok_or_else(bad)?));
        }
        given.extend(self.get("OTEL_SERVICE_NAME").map(|name| own("service.name", &name)));
        for (name, value) in given {
            all.retain(|(known, _)| *known != name);
            all.push((name, value));
        }
        Ok(all)
    }
}

/// `a=1,b=2`, values percent-encoded; `None` for a name without a value.
fn pairs(text: &str) -> Vec<(String, Option<String>)> {
    let pair = |part: &str| match part.split_once('=') {
        Some((name, value)) => (decoded(name.trim()), Some(decoded(value.trim()))),
        None => (part.to_owned(), None),
    };
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(pair).collect()
}

/// Decodes `%20` and the like; what is not valid stays as it is.
fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8().map_or_else(|_| text.to_owned(), |decoded| decoded.into_owned())
}

/// The address, with `path` below it where it is that of all signals.
fn url(text: &str, path: Option<&str>) -> Result<Url, String> {
    let mut url = Url::parse(text)
        .map_err(|cause| format!("this is not a URL ({cause}); it looks like http://localhost:4318"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(
            "this does not begin with http:// or https:// and a host; it looks like http://localhost:4318".into()
        );
    }
    if let Some(path) = path {
        url.set_path(&format!("{}/{path}", url.path().trim_end_matches('/')));
    }
    Ok(url)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Option<Settings>, OtelError> {
        let find =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        Settings::read(&find)
    }

    const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

    #[test]
    fn nothing_is_exported_unless_an_endpoint_is_set() {
        let off: [&[(&str, &str)]; 5] = [
            &[],
            &[(ENDPOINT, " ")],
            &[("OTEL_SERVICE_NAME", "x")],
            &[(ENDPOINT, "http://a"), ("OTEL_SDK_DISABLED", "True")],
            &[(ENDPOINT, "http://a"), ("OTEL_TRACES_EXPORTER", "none"), ("OTEL_METRICS_EXPORTER", "none")],
        ];
        for variables in off {
            assert!(read(variables).unwrap().is_none(), "{variables:?}");
        }
    }

    #[test]
    fn paths_are_added_to_the_address_of_all_signals_only() {
        for (endpoint, traces) in [
            ("http://localhost:4318", "http://localhost:4318/v1/traces"),
            ("http://localhost:4318/", "http://localhost:4318/v1/traces"),
            ("https://host/otlp/", "https://host/otlp/v1/traces"),
        ] {
            let settings = read(&[(ENDPOINT, endpoint)]).unwrap().unwrap();
            assert_eq!(settings.traces.unwrap().url.as_str(), traces);
            assert!(settings.metrics.unwrap().url.as_str().ends_with("/v1/metrics"));
        }
        let own = [
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://a/x"),
            ("OTEL_METRICS_EXPORTER", "none"),
            (ENDPOINT, "http://b"),
        ];
        let settings = read(&own).unwrap().unwrap();
        assert_eq!(settings.traces.unwrap().url.as_str(), "http://a/x");
        assert!(settings.metrics.is_none());
    }

    #[test]
    fn headers_times_and_resource() {
        let settings = read(&[
            (ENDPOINT, "https://a"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20k%3d1, x-team = a"),
            ("OTEL_EXPORTER_OTLP_METRICS_HEADERS", "x-team=b"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "1500"),
            ("OTEL_METRIC_EXPORT_INTERVAL", "250"),
            ("OTEL_SERVICE_NAME", "my agent"),
            ("OTEL_RESOURCE_ATTRIBUTES", "service.name=other,deployment.environment.name=test%2C1"),
        ]);
        let settings = settings.unwrap().unwrap();
        let (traces, metrics) = (settings.traces.unwrap(), settings.metrics.unwrap());
        assert_eq!(traces.headers["authorization"], "Bearer k=1");
        assert!(!format!("{traces:?}").contains("Bearer"), "a key is not shown");
        assert_eq!(
            (&traces.headers["x-team"], &metrics.headers["x-team"]),
            (&HeaderValue::from_static("a"), &HeaderValue::from_static("b"))
        );
        assert_eq!((traces.timeout.as_millis(), settings.interval.as_millis()), (1500, 250));
        let of = |name: &str| -> Vec<String> {
            settings.resource.iter().filter(|(known, _)| known == name).map(|(_, value)| value.clone()).collect()
        };
        assert_eq!(
            (of("service.name"), of("deployment.environment.name")),
            (vec!["my agent".into()], vec!["test,1".into()])
        );
        assert_eq!(of("service.instance.id")[0].len(), 32);
    }

    #[test]
    fn headers_do_not_leave_this_machine_in_the_clear_unless_the_operator_says_so() {
        const HEADERS: (&str, &str) = ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=1");
        for (endpoint, is_sent) in [
            ("http://localhost:4318", true),
            ("http://127.0.0.9:4318", true),
            ("http://[::ffff:127.0.0.1]:4318", true),
            ("https://otel.example", true),
            ("http://otel.example", false),
            ("http://localhost.otel.example", false),
            ("http://0.0.0.0:4318", false),
        ] {
            assert!(read(&[(ENDPOINT, endpoint)]).unwrap().is_some(), "{endpoint}: there is nothing to keep");
            assert_eq!(read(&[(ENDPOINT, endpoint), HEADERS]).is_ok(), is_sent, "{endpoint}");
            let user = endpoint.replace("://", "://me:password@");
            assert_eq!(read(&[(ENDPOINT, &user)]).is_ok(), is_sent, "{user}");
            for variable in ["OTEL_EXPORTER_OTLP_INSECURE", "OTEL_EXPORTER_OTLP_METRICS_INSECURE"] {
                let traces = ("OTEL_TRACES_EXPORTER", "none");
                assert!(read(&[(ENDPOINT, &user), HEADERS, (variable, "true"), traces]).is_ok(), "{user} {variable}");
                assert_eq!(read(&[(ENDPOINT, &user), HEADERS, (variable, "no"), traces]).is_ok(), is_sent, "{user}");
            }
        }
    }

    #[test]
    fn what_cannot_be_used_is_named_with_the_remedy() {
        let refused = [
            (&[(ENDPOINT, "localhost:4318")][..], ENDPOINT, "http://localhost:4318"),
            (&[(ENDPOINT, "4318")], ENDPOINT, "http://localhost:4318"),
            (
                &[(ENDPOINT, "http://a"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")],
                "OTEL_EXPORTER_OTLP_PROTOCOL",
                "http/protobuf",
            ),
            (
                &[(ENDPOINT, "http://a"), ("OTEL_TRACES_EXPORTER", "console")],
                "OTEL_TRACES_EXPORTER",
                "`otlp` or `none`",
            ),
            (
                &[(ENDPOINT, "http://a"), ("OTEL_EXPORTER_OTLP_HEADERS", "secret")],
                "OTEL_EXPORTER_OTLP_HEADERS",
                "NAME=VALUE",
            ),
            (
                &[(ENDPOINT, "http://a"), ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s")],
                "OTEL_EXPORTER_OTLP_TIMEOUT",
                "milliseconds",
            ),
            (&[(ENDPOINT, "http://a"), ("OTEL_RESOURCE_ATTRIBUTES", "a")], "OTEL_RESOURCE_ATTRIBUTES", "NAME=VALUE"),
        ];
        for (variables, variable, remedy) in refused {
            let error = read(variables).unwrap_err().to_string();
            assert!(error.contains(variable) && error.contains(remedy), "{variables:?}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn percent_signs_that_encode_nothing_stay() {
        for (text, plain) in
            [("100%", "100%"), ("%zz", "%zz"), ("a%20b%", "a b%"), ("%c3%a4", "ä"), ("%+1", "%+1"), ("%ff", "%ff")]
        {
            assert_eq!(decoded(text), plain);
        }
    }
}
