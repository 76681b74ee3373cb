//! Rules of code: in force without a file, listed and reported as others.

use std::sync::Arc;

use tidegate::model::Model;
use tidegate::rule::{Action, RuleAction, RuleLayer, RuleSpec};
use tidegate::{EventKind, HostError, SessionOptions, TurnStatus};

use crate::sessions::support::{Answer, Scripted, builder};

fn no_todo() -> RuleSpec {
    RuleSpec::new("no-todo", "Finish the work.").condition(r"\bTODO\b").scope("text")
}

#[tokio::test]
async fn a_rule_of_code_stops_the_model_and_is_listed() {
    let folder = tempfile::tempdir().unwrap();
    let host = builder("retry_delay_ms = 0\n").rule(no_todo()).open().await.unwrap();
    let model = Scripted::new([Answer::Text("a TODO here"), Answer::Text("done"), Answer::Text("an FIXME")]);
    let stop = RuleSpec::new("no-fixme", "Never.").condition("FIXME").scope("text").action(RuleAction::Stop);
    let options = SessionOptions::new(folder.path()).model(Arc::clone(&model) as Arc<dyn Model>).rule(stop);
    let session = host.session(options).await.unwrap();
    let mut events = session.subscribe();
    assert_eq!(session.prompt("go").report().await.text, "done");
    assert!(model.requests()[1].last().unwrap().contains("Finish the work."));
    let status = session.prompt("go").report().await.status;
    assert_eq!(status, TurnStatus::StoppedByRule { rule: "no-fixme".into() });
    let fired: Vec<_> = std::iter::from_fn(|| events.try_next())
        .filter_map(|event| match event.kind {
            EventKind::RuleFired { found, action, .. } => Some((found.rule, action)),
            _ => None,
        })
        .collect();
    assert_eq!(fired, [("no-todo".to_owned(), Action::Interrupt), ("no-fixme".to_owned(), Action::Stop)]);
    assert!(session.rule_metrics().contains_key("no-todo"));
    let loaded = session.loaded();
    let of_code = |name: &str| {
        let info = loaded.rules().rules().find(|info| info.rule.name == name).unwrap();
        (info.rule.source.layer.clone(), info.rule.source.to_string())
    };
    assert_eq!(of_code("no-todo"), (RuleLayer::Code, "code of the host".to_owned()));
    assert_eq!(of_code("no-fixme"), (RuleLayer::Code, "code of the session".to_owned()));
    // The other sessions of the host do not have that of this one.
    assert!(host.loaded(folder.path()).await.unwrap().rules().rules().all(|info| info.rule.name != "no-fixme"));
}

/// A file of the workspace is not trusted, and does not take the place of a rule of code; the operator can switch one off.
#[tokio::test]
async fn a_file_of_the_workspace_does_not_replace_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(".tidegate/rules/no-todo.md");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "+++\ncondition = 'nothing at all'\n+++\nNothing.\n").unwrap();
    for (settings, text) in [("retry_delay_ms = 0\n", "done"), ("disabled_rules = [\"no-todo\"]\n", "a TODO here")] {
        let host = builder(settings).rule(no_todo()).open().await.unwrap();
        let model = Scripted::new([Answer::Text("a TODO here"), Answer::Text("done")]);
        let options = SessionOptions::new(folder.path()).model(model as Arc<dyn Model>);
        let session = host.session(options).await.unwrap();
        assert_eq!(session.prompt("go").report().await.text, text, "{settings}");
    }
}

#[tokio::test]
async fn a_rule_with_an_error_refuses_what_it_is_given_to() {
    let folder = tempfile::tempdir().unwrap();
    let broken = RuleSpec::new("broken", "No.").condition("(");
    let error = builder("").rule(broken.clone()).open().await.unwrap_err();
    assert!(matches!(error, HostError::Config(_)) && error.to_string().contains("broken"), "{error}");
    let host = builder("").open().await.unwrap();
    let options = SessionOptions::new(folder.path()).model(Scripted::new([]) as Arc<dyn Model>);
    let error = host.session(options.clone().rule(broken)).await.unwrap_err();
    assert!(error.to_string().contains("broken"), "{error}");
    let error = host.session(options.rule(no_todo()).rule(no_todo())).await.unwrap_err();
    assert!(error.to_string().contains("another rule of this code has the same name"), "{error}");
}
