//! What a table of error classes that comes with a workspace cannot do, key by key: have requests sent again.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "the test prints how many cases it has")]

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use flow::{Diagnostic, ErrorClass, FailureKind, ModelError, RetryTable};
use tidegate_config::OperatorFiles;
use tidegate_config::errors::FILE;

use crate::support::tables::{ERRORS, as_table};

/// The folder of a user and a workspace, each with a table.
struct Place(tempfile::TempDir);

/// Whether each of the two has its table in `tidegate.toml`, and not in a file of its own.
const FORMS: [(bool, bool); 4] = [(false, false), (false, true), (true, false), (true, true)];

impl Place {
    fn new(user: &str, project: &str, (users, projects): (bool, bool)) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for (own, settings, is_table, text) in
            [("user", "user", users, user), ("work/.tidegate", "work", projects, project)]
        {
            fs::create_dir_all(place.path(own)).unwrap();
            let text = format!("schema_version = \"1.0.0\"\n{text}");
            match is_table {
                true => fs::write(place.path(settings).join("tidegate.toml"), as_table(&text, ERRORS)).unwrap(),
                false => fs::write(place.path(own).join(FILE), text).unwrap(),
            }
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn load(&self) -> (RetryTable, Vec<Diagnostic>) {
        let layers = OperatorFiles::new().user_folder(Some(self.path("user"))).read(&self.path("work"));
        let operator = layers.and_then(|layers| layers.operator()).unwrap_or_else(|found| panic!("{found}"));
        let table = operator.retry_table(Some(&self.path("user")), &self.path("work"));
        table.unwrap_or_else(|found| panic!("{found}"))
    }
}

/// What a user has set, which the cases are about.
const USER: &str = "retry.quota = {policy = \"fixed\", base = \"10s\", max_retries = 2}\nretry.transient.fallback = \"fixed\"\n\
    [[class]]\nid = \"busy\"\nclass = \"rate_limited\"\nstatus = 503\n[[class]]\nid = \"never\"\nclass = \"permanent\"\nstatus = 504\n";

/// A key, what a project sets, and the lines that are left out; the first line of the file is its version.
const REFUSED: [(&str, &str, &[usize]); 26] = [
    ("PolicyFile.policy", "[retry.permanent]\npolicy = \"fixed\"\nbase = \"1ms\"\nmax_retries = 100\n", &[2]),
    ("PolicyFile.policy", "retry.budget.policy = \"exponential\"\n", &[2]),
    ("PolicyFile.policy", "retry.context_overflow.policy = \"fixed\"\n", &[2]),
    ("PolicyFile.policy", "[retry.transient]\npolicy = \"fixed\"\nbase = \"1m\"\n", &[2]),
    ("PolicyFile.policy", "[retry.quota]\npolicy = \"use_header\"\nbase = \"10s\"\n", &[2]),
    ("PolicyFile.base", "[retry.rate_limited]\nbase = \"1ms\"\nmax_retries = 3\n", &[3]),
    ("PolicyFile.base", "[retry.quota]\nbase = \"9999ms\"\n", &[3]),
    ("PolicyFile.max", "[retry.rate_limited]\nmax = \"29s\"\n", &[3]),
    ("PolicyFile.jitter", "[retry.rate_limited]\njitter = 1.0\n", &[3]),
    ("PolicyFile.headers", "[retry.rate_limited]\nheaders = []\n", &[2]),
    ("PolicyFile.fallback", "[retry.rate_limited]\nfallback = \"fixed\"\n", &[2]),
    ("PolicyFile.max_retries", "[retry.rate_limited]\nmax_retries = 4\njitter = 0.5\n", &[3, 4]),
    ("PolicyFile.max_retries", "[retry.quota]\nmax_retries = 100\n", &[3]),
    ("ClassFile.class", "[[class]]\nid = \"all\"\nclass = \"transient\"\nstatus = \"400-499\"\n", &[2]),
    ("ClassFile.class", "[[class]]\nid = \"all\"\nclass = \"quota\"\nstatus = \"400-499\"\n", &[2]),
    ("ClassFile.class", "[[class]]\nid = \"all\"\nclass = \"context_overflow\"\nmessage = \"e\"\n", &[2]),
    ("ClassFile.class", "[[class]]\nid = \"named-faults\"\nclass = \"transient\"\n", &[4]),
    ("ClassFile.class", "[[class]]\nid = \"never\"\nclass = \"rate_limited\"\n", &[4]),
    ("ClassFile.kind", "[[class]]\nid = \"rate-limits\"\nkind = []\n", &[4]),
    ("ClassFile.provider", "[[class]]\nid = \"provider-says-no\"\nprovider = \"nobody\"\n", &[4]),
    ("ClassFile.status", "[[class]]\nid = \"busy\"\nstatus = \"400-599\"\n", &[4]),
    ("ClassFile.type", "[[class]]\nid = \"never\"\ntype = \"none\"\n", &[4]),
    ("ClassFile.code", "[[class]]\nid = \"stream-refusals\"\ncode = []\n", &[4]),
    ("ClassFile.message", "[[class]]\nid = \"named-faults\"\nmessage = \"none\"\n", &[4]),
    ("ClassFile.should_retry", "[[class]]\nid = \"provider-says-yes\"\nshould_retry = false\n", &[4]),
    // Several entries: one that is left out moves no other.
    (
        "ClassFile.class",
        "[[class]]\nid = \"a\"\nclass = \"transient\"\nstatus = 400\n[[class]]\nid = \"b\"\nclass = \"transient\"\nstatus = 401\n\
         [[class]]\nid = \"never\"\nstatus = 500\n",
        &[2, 6, 12],
    ),
];

#[test]
fn a_project_has_nothing_sent_again() {
    let (without, none) = Place::new(USER, "", FORMS[0]).load();
    assert!(none.is_empty());
    for ((key, project, lines), form) in REFUSED.iter().flat_map(|case| FORMS.map(|form| (*case, form))) {
        let (with, left_out) = Place::new(USER, project, form).load();
        assert_eq!(with, without, "{key}: {project}");
        let found: Vec<usize> = left_out.iter().map(|one| one.location().unwrap().line()).collect();
        assert_eq!(found, lines, "{key}: {project}: {left_out:?}");
        assert!(left_out.iter().all(|one| !one.is_error() && one.code.as_str() == "errors-project"), "{left_out:?}");
        let help = left_out[0].help.clone().unwrap();
        assert!(help.contains("`[errors]` of the user's `tidegate.toml`"), "{help}");
    }
    // A key that is added to the format has to be decided about here.
    let schema: serde_json::Value = serde_json::from_str(&tidegate_config::error_schema()).unwrap();
    let keys = |of: &str| -> Vec<String> {
        let keys = schema["definitions"][of]["properties"].as_object().unwrap().keys();
        keys.map(|key| format!("{of}.{key}")).collect()
    };
    let known: BTreeSet<String> =
        ["ClassFile", "PolicyFile"].into_iter().flat_map(keys).filter(|key| key != "ClassFile.id").collect();
    assert_eq!(known, REFUSED.iter().map(|(key, ..)| (*key).to_owned()).collect());
    println!("{} cases", REFUSED.len());
}

/// A request that was refused for its key is not sent again, whatever comes with a workspace.
#[test]
fn a_refused_key_stays_permanent() {
    let project = "retry.quota = {policy = \"fixed\", base = \"1ms\", max_retries = 100}\nretry.transient = {base = \"1ms\", max_retries = 100}\n\
        [[class]]\nid = \"all\"\nclass = \"transient\"\nstatus = \"400-499\"\n";
    let (table, left_out) = Place::new("", project, FORMS[3]).load();
    let refused = ModelError { status: Some(401), ..ModelError::of_kind(FailureKind::Http, "HTTP 401: invalid key") };
    assert_eq!(table.classify(&refused).class, ErrorClass::Permanent);
    assert_eq!(left_out.len(), 4, "{left_out:?}");
    for class in ErrorClass::ALL {
        assert!(
            table.policy(*class).is_none_or(|policy| policy.max_retries <= 3 && policy.base.as_secs() >= 1),
            "{class}"
        );
    }
}

/// What a project decides: classes that are not sent again, fewer retries and longer waits.
#[test]
fn a_project_has_less_sent_again() {
    let project = "retry.transient.policy = \"none\"\nretry.rate_limited = {base = \"2s\", max = \"1m\", jitter = 0, fallback = \"none\", max_retries = 1}\n\
        [[class]]\nid = \"gateway\"\nclass = \"permanent\"\nmessage = \"blocked by the gateway\"\n[[class]]\nid = \"rate-limits\"\nclass = \"limit_hit\"\n";
    let (table, left_out) = Place::new("", project, FORMS[3]).load();
    assert!(left_out.is_empty(), "{left_out:?}");
    assert!(table.policy(ErrorClass::Transient).is_none());
    let limited = table.policy(ErrorClass::RateLimited).unwrap();
    assert_eq!((limited.base.as_secs(), limited.max.as_secs(), limited.max_retries), (2, 60, 1));
    let class = |status, message: &str| {
        table.classify(&ModelError { status: Some(status), ..ModelError::of_kind(FailureKind::Http, message) }).class
    };
    assert_eq!(class(429, "slow down"), ErrorClass::LimitHit);
    assert_eq!(table.patterns()[0].id, "gateway");
}
