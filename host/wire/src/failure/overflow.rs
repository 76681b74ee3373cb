//! How servers say that a request is larger than the context of the model: the corpus, read as the program reads it.

use flow::{ErrorClass, NamedSizes};
use serde::Deserialize;

use super::{in_stream, refused};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Corpus {
    refused: Vec<Refused>,
    other: Vec<Other>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Refused {
    server: String,
    status: Option<u16>,
    body: Option<String>,
    stream: Option<String>,
    limit: Option<u64>,
    tokens: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Other {
    what: String,
    status: u16,
    body: String,
    class: String,
}

const CORPUS: &str = include_str!("../../../../tests/corpus/errors/overflow.toml");

#[test]
#[allow(clippy::print_stdout, reason = "the counts of the corpus")]
fn a_request_that_is_too_large_is_recognised() {
    let table = config::errors::of_sources(&[]).unwrap_or_else(|found| panic!("{found}"));
    let corpus: Corpus = toml::from_str(CORPUS).unwrap_or_else(|error| panic!("{error}"));
    let mut wrong = Vec::new();
    for one in &corpus.refused {
        let error = match (one.status, &one.body, &one.stream) {
            (Some(status), Some(body), None) => refused(status, &[], body.as_bytes()),
            (None, None, Some(data)) => in_stream(data),
            _ => panic!("{}: either `status` and `body`, or `stream`", one.server),
        };
        let found = table.classify(&error);
        let sizes = NamedSizes { limit: one.limit, tokens: one.tokens };
        if (found.class, found.sizes) != (ErrorClass::ContextOverflow, sizes) {
            wrong.push(format!("{}: {:?} {:?} by {:?}", one.server, found.class, found.sizes, found.pattern));
        }
    }
    for one in &corpus.other {
        let found = table.classify(&refused(one.status, &[], one.body.as_bytes()));
        if found.class.as_str() != one.class || found.pattern.is_none() && one.status == 400 {
            wrong.push(format!("{}: {:?} by {:?}", one.what, found.class, found.pattern));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let mut servers: Vec<&str> = corpus.refused.iter().filter_map(|one| one.server.split([',', '(']).next()).collect();
    servers.dedup();
    println!("{} wordings of {} servers, and {} others", corpus.refused.len(), servers.len(), corpus.other.len());
    assert!(servers.len() >= 24, "only {} servers", servers.len());
}
