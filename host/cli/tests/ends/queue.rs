//! What an earlier chat has left in the queue of a session, when `tidegate run` continues it.

use serde_json::Value;

use super::provider::{Provider, Reply};
use super::started::Started;
use crate::support::Place;
use crate::support::tmux::Terminal;

const REPLIES: &[Reply] =
    &[Reply::Begun("Well, "), Reply::Text("Next."), Reply::Text("Second."), Reply::Text("Third.")];

/// A workspace with a session in whose queue two messages wait.
fn left(provider: &Provider) -> Place {
    let place = Place::new();
    place.write("op.toml", &provider.settings());
    let terminal = Terminal::start(&place, &["chat", "--config", "op.toml"], &[]);
    terminal.until("the input", |text| text.contains('›'));
    terminal.enter("first");
    terminal.until("the answer", |text| text.contains("Well,"));
    for message in ["second", "third"] {
        terminal.types(message);
        terminal.until("the message", |text| text.contains(&format!("› {message}")));
        terminal.press("M-Enter");
        terminal.until("the queue", |text| text.contains("queued") && text.contains(message));
    }
    terminal.press("Escape");
    terminal.until("the end of the turn", |text| text.contains("cancelled"));
    terminal.press("C-d");
    terminal.until("the end", |text| text.contains("exit code 0"));
    place
}

#[test]
fn a_run_sends_its_own_prompt_and_says_what_waits() {
    for output in ["text", "json", "stream-json"] {
        let provider = Provider::start(REPLIES);
        let place = left(&provider);
        let arguments = ["run", "--continue", "next", "--config", "op.toml", "--output", output];
        let ended = Started::new(&place, &arguments).ended(output);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let said = "2 messages wait in the session from before and are not sent; the first is \"second\"";
        match output {
            "text" => {
                assert_eq!(ended.out, "Next.\n");
                assert!(ended.err.contains(said) && !ended.err.contains("cancelled"), "{ended:?}");
            }
            "json" => {
                let object: Value = serde_json::from_str(&ended.out).unwrap();
                assert_eq!((&object["text"], &object["status"]["status"]), (&"Next.".into(), &"completed".into()));
                assert!(object["problems"][0].as_str().unwrap().starts_with(said), "{object}");
            }
            _ => {
                assert!(ended.out.contains("\"type\":\"notice\"") && !ended.out.contains("\"cancelled\""), "{ended:?}");
            }
        }
        // Without a prompt, what waits is what the session continues with: one message for each run.
        for (message, answer) in [("second", "Second.\n"), ("third", "Third.\n")] {
            let ended = Started::new(&place, &["run", "--continue", "--config", "op.toml"]).ended(message);
            assert_eq!((ended.code, ended.out.as_str()), (Some(0), answer), "{ended:?}");
            assert!(ended.err.contains(&format!("› {message}")), "{ended:?}");
        }
        let ended = Started::new(&place, &["run", "--continue", "--config", "op.toml"]).ended("nothing");
        assert!(ended.code == Some(1) && ended.err.contains("nothing to continue"), "{ended:?}");
    }
}
