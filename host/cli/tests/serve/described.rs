//! The description of the routes: it is the committed one, and the server answers as it says.

use std::process::Command;

use tidegate_servers::ensure_fuzz;

use super::client::Client;
use super::{USERS, place, start};
use crate::gateway::running::TOKEN_A;
use crate::support::script::Model;
use crate::support::{out, repository};

#[test]
fn the_description_is_the_committed_one() {
    let model = Model::start();
    let place = place(&model, "");
    let running = start(&place);
    let served = Client::new(&running, "").send("GET", "/v1/openapi.json", &[], "").body;
    let path = repository().join("host/serve/openapi.json");
    if std::env::var_os("TIDEGATE_BLESS").is_some() {
        std::fs::write(&path, &served).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(served == committed, "write {} again with TIDEGATE_BLESS=1", path.display());
}

/// Statuses of requests that are valid by the description: what a session is, and which models there are, is not in it.
const ACCEPTED: &str = "[checks.positive_data_acceptance]\n\
    expected-statuses = [\"2xx\", \"401\", \"403\", \"404\", \"409\", \"422\", \"429\"]\n";

/// Valid requests, others, and sequences of them, as an independent reader of the description makes them. Streams, which wait for
/// what happens, are left out.
#[test]
fn the_server_answers_as_its_description_says() {
    let model = Model::start();
    let place = place(&model, USERS);
    place.write("schemathesis.toml", ACCEPTED);
    let running = start(&place);
    let (url, token) = (format!("http://{}", running.address), format!("Authorization: Bearer {TOKEN_A}"));
    let mut fuzz = Command::new(ensure_fuzz().unwrap());
    fuzz.current_dir(place.path("")).args(["--config-file", "schemathesis.toml"]);
    fuzz.args(["run", &format!("{url}/v1/openapi.json"), "--header", &token, "--exclude-operation-id", "events"]);
    for stream in ["sendUiMessages", "resumeUiMessages", "runAgUi"] {
        fuzz.args(["--exclude-operation-id", stream]);
    }
    fuzz.args(["--max-time", "12", "--seed", "1", "--no-color", "--warnings", "off", "--generation-database", "none"]);
    // The id of a write is taken for that of the session that it creates.
    fuzz.args(["--exclude-checks", "ensure_resource_availability"]);
    let output = fuzz.output().unwrap();
    assert!(output.status.success(), "{}", out(&output));
    let log = running.log();
    assert!(!log.contains("panicked") && !log.contains("a request has failed"), "{log}");
}
