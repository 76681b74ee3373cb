//! Required rules: a host does not run without a guard that it requires.

use tidegate::{EventKind, TurnStatus};

use super::support::{Place, Talk, fired, notices, say};

fn guard(keys: &str, condition: &str) -> String {
    format!("+++\nrequired = true\ncondition = {condition}\nscope = 'text'\n{keys}+++\nDo not say it.\n")
}

/// The error of opening a host with these settings; paths are relative to the test's folder.
async fn refusal(place: &Place, toml: &str) -> String {
    let error = place.try_host(&[], toml).await.expect_err("the host opened").to_string();
    error.replace(&format!("{}/", place.path("").display()).replace("//", "/"), "")
}

#[tokio::test]
async fn a_required_rule_that_cannot_be_used_refuses_the_host_with_its_place() {
    let place = Place::new();
    place.rule("guard.md", &guard("", "'(x'"));
    let said = refusal(&place, "").await;
    for part in ["rule `guard`: condition `(x` is not valid: unclosed group", "guard.md:3:14", "^"] {
        assert!(said.contains(part), "{part}\n-- is not in\n{said}");
    }
    // Looking at it is possible all the same.
    assert!(place.builder("").load(place.path("workspace")).await.is_ok());
    let doctor = place.builder("").doctor(place.path("workspace")).await;
    assert!(doctor.iter().any(|one| one.what == "required rules" && one.detail.contains("`(x` is not valid")));

    place.rule("guard.md", &guard("", "\"\\bx\""));
    assert!(refusal(&place, "").await.contains("U+0008 (backspace)"));
    place.rule("guard.md", &guard("enabled = false\n", "'x'"));
    assert!(
        refusal(&place, "")
            .await
            .contains("rule `guard` (project, .tidegate/rules/guard.md): the rule is required but not active")
    );
    place.rule("guard.md", &guard("globs = '*.rs'\n", "'x'"));
    assert!(refusal(&place, "").await.contains("it can never fire on text"));
    place.rule("guard.md", "+++\nrequired = true\ncondition = 'x'\nscope = 'tool:no_such'\n+++\nDo not.\n");
    assert!(
        refusal(&place, "")
            .await
            .contains("rule `guard` (project, .tidegate/rules/guard.md): the rule is required but cannot fire")
    );
    place.rule("guard.md", &guard("", "'x'"));
    assert!(refusal(&place, "[rules]\ndisabled_rules = [\"guard\"]\n").await.contains("`disabled_rules` names it"));
    assert!(refusal(&place, "[rules]\nenabled = false\n").await.contains("`enabled` of stream rules is false"));
    assert!(refusal(&place, "[rules]\nenabled = false\n").await.contains("error[rule-required]: rule `guard`"));
    assert!(place.try_host(&[], "").await.is_ok());
}

#[tokio::test]
async fn the_operator_requires_by_name_folder_and_plugin() {
    let place = Place::new();
    let said = refusal(&place, "[rules]\nrequired = [\"git-force-psh\"]\n").await;
    for part in ["there is no such rule", "did you mean `git-force-push`?", "tidegate.toml:5:13", "required here"] {
        assert!(said.contains(part), "{part}\n-- is not in\n{said}");
    }
    let named = "[rules]\nrequired = [\"git-force-push\"]\n";
    assert!(place.try_host(&[], named).await.is_ok());
    assert!(refusal(&place, &format!("{named}builtin_rules = false\n")).await.contains("`builtin_rules` is false"));
    // A project cannot replace a rule that the operator requires.
    place.rule("git-force-push.md", "+++\ncondition = 'never'\n+++\nDo not.\n");
    let host = place.try_host(&[], named).await.unwrap();
    assert_eq!(
        host.loaded(place.path("workspace")).await.unwrap().rules().rule("git-force-push").unwrap().source.to_string(),
        "built-in, rules/builtin/git-force-push.md"
    );
    let warned: Vec<String> =
        host.loaded(place.path("workspace")).await.unwrap().warnings().into_iter().map(|one| one.message).collect();
    assert!(warned.iter().any(|one| one.contains("required, so it is used instead of: project")), "{warned:?}");

    let folder = "[rules]\nrequired_folders = [\"guards\"]\n";
    let said = refusal(&place, folder).await;
    assert!(
        said.contains("`guards` does not exist, and it is required") && said.contains("tidegate.toml:5:21"),
        "{said}"
    );
    place.write("guards/one.md", &guard("", "'x'").replace("required = true\n", ""));
    assert!(place.try_host(&[], folder).await.is_ok());
    place.write("guards/two.md", "+++\ncondition = '('\n+++\nDo not.\n");
    assert!(refusal(&place, folder).await.contains("guards/two.md:2:14"));
    place.write("guards/two.md", "+++\ncondition = 'x'\n+++\nDo not.\n");
    place.rule("two.md", &guard("", "'never'"));
    let host = place.try_host(&[], folder).await.unwrap();
    assert_eq!(
        host.loaded(place.path("workspace")).await.unwrap().rules().rule("two").unwrap().source.path,
        "guards/two.md"
    );
    // The project's own folder can be named, too.
    let own = "[rules]\nrequired_folders = [\"workspace/.tidegate/rules\"]\n";
    assert!(place.try_host(&[], own).await.is_ok());
    place.rule("three.md", "+++\ncondition = '('\n+++\nDo not.\n");
    assert!(refusal(&place, own).await.contains("three.md:2:14"));
    place.remove_rule("three.md");

    let manifest = "id = \"team\"\nversion = \"0.1.0\"\napi = \"0.1\"\ndescription = \"A plugin.\"\n";
    let rule = "[[rule]]\nname = \"theirs\"\ncondition = ['x', '(']\nbody = \"Do not.\"\n";
    place.write("team/plugin.toml", &format!("{manifest}{rule}"));
    assert!(place.try_host(&[], "[[plugin]]\npath = \"team\"\n").await.is_ok());
    assert!(refusal(&place, "[[plugin]]\npath = \"team\"\nrequired = true\n").await.contains("team/plugin.toml:7:20"));
    place.write("team/plugin.toml", &format!("{manifest}{rule}required = true\n"));
    assert!(refusal(&place, "[[plugin]]\npath = \"team\"\n").await.contains("team/plugin.toml:7:20"));
}

#[tokio::test]
async fn a_required_rule_that_an_edit_breaks_stays_and_one_that_is_deleted_refuses_the_turn() {
    let place = Place::new();
    place.rule("guard.md", &guard("repeat = 'always'\n", "['alpha', 'beta']"));
    let host = place.host(&[say("fine"), say("an alpha"), say("fine"), say("back")]).await;
    let mut talk = Talk::new(&place, &host, "one").await;
    talk.turn().await;
    // A part of it is gone: it stays as it was.
    place.rule("guard.md", &guard("repeat = 'always'\n", "['(alpha', 'beta']"));
    let (text, events) = talk.turn().await;
    assert_eq!((text.as_str(), fired(&events)), ("fine", vec!["guard"]));
    assert!(notices(&events)[0].contains("their last valid version remains active"), "{:?}", notices(&events));

    place.remove_rule("guard.md");
    for _ in 0..2 {
        let (_, events) = talk.turn().await;
        let status = events.iter().find_map(|event| match &event.kind {
            EventKind::TurnFinish { status } => Some(status.clone()),
            _ => None,
        });
        let Some(TurnStatus::Failed { message, .. }) = status else { panic!("{status:?}") };
        assert!(message.contains("the file of a required rule was deleted: `.tidegate/rules/guard.md`"), "{message}");
    }
    place.rule("guard.md", &guard("", "'gamma'"));
    assert_eq!(talk.turn().await.0, "back");
}

#[tokio::test]
async fn broken_rules_are_problems_and_the_operator_can_refuse_them() {
    let place = Place::new();
    place.rule("broken.md", "+++\ncondition = ['x', '(']\n+++\nDo not.\n");
    place.rule("blind.md", "+++\ncondition = 'x'\nscope = 'text'\nglobs = '*.rs'\n+++\nDo not.\n");
    let host = place.try_host(&[], "").await.unwrap();
    let problems: Vec<String> = host
        .loaded(place.path("workspace"))
        .await
        .unwrap()
        .rule_problems()
        .into_iter()
        .map(|one| one.message)
        .collect();
    let [broken, blind] = problems.as_slice() else { panic!("{problems:?}") };
    assert!(broken.contains("condition `(` is not valid") && blind.contains("it can never fire on text"));
    let said = refusal(&place, "[rules]\non_problem = \"refuse\"\n").await;
    assert!(said.contains("broken.md:2:20") && said.contains("it can never fire on text"), "{said}");
}

#[tokio::test]
async fn a_session_is_refused_where_an_open_one_has_lost_its_guard() {
    let place = Place::new();
    place.rule("guard.md", &guard("", "'gamma'"));
    let host = place.host(&[]).await;
    let _open = place.session(&host, "first").await.unwrap();
    place.remove_rule("guard.md");
    let error = place.session(&host, "second").await.unwrap_err().to_string();
    assert!(error.contains("error[rule-file-deleted]") && error.contains("was deleted"), "{error}");
    place.rule("guard.md", &guard("", "'gamma'"));
    assert!(place.session(&host, "second").await.is_ok());
}
