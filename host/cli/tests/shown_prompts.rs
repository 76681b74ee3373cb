//! What a plugin has the model read is shown once in each workspace, and again where it has changed.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::support::{Place, Say, code, err, out, plain, recording};

/// A workspace with a plugin that adds this text to the prompt.
fn place(text: &str) -> Place {
    let place = Place::new();
    place.write("answers.jsonl", &recording(&[&[Say::Text("Done.")]]));
    place.write(
        "tidegate.toml",
        "[provider]\nkind = \"recording\"\nrecording = \"answers.jsonl\"\n[[plugin]]\npath = \"habits\"\ngrants = [\"prompt\"]\n",
    );
    write_plugin(&place, text);
    place
}

fn write_plugin(place: &Place, text: &str) {
    let manifest = format!(
        "id = \"habits\"\nversion = \"0.1.0\"\napi = \"0.1\"\ndescription = \"Habits.\"\n\
         [capabilities]\nprompt = \"tells the habits\"\n\
         [[prompt]]\nposition = \"system_suffix\"\ncontent = {text:?}\n\
         [[prompt]]\nposition = \"user_suffix\"\ncontent = \"Be brief.\"\nwhen.tag_present = \"plan\"\n"
    );
    place.write("habits/plugin.toml", &manifest);
}

/// What is printed of a run about the texts.
fn shown(place: &Place) -> Option<String> {
    let output = place.run(&["run", "hello"]);
    assert_eq!(code(&output), 0, "{}", err(&output));
    let printed = err(&output);
    let from = printed.find("! plugin habits")?;
    let lines = printed[from..].lines().enumerate();
    let mut text = String::new();
    for (_, line) in lines.take_while(|(index, line)| *index == 0 || line.starts_with("  ")) {
        text += line;
        text.push('\n');
    }
    Some(text)
}

#[test]
fn once_in_each_workspace_and_again_where_it_has_changed() {
    let place = place("Write plainly.\nNo jokes.");
    let expected = "! plugin habits adds this text to the prompt; it is new in this workspace:\n  system_suffix\n  \
                    │ Write plainly.\n  │ No jokes.\n  user_suffix when tag_present = \"plan\"\n  │ Be brief.\n";
    assert_eq!(shown(&place).as_deref(), Some(expected));
    assert_eq!(shown(&place), None);
    write_plugin(&place, "Write at length.");
    let changed = shown(&place).unwrap();
    assert!(changed.contains("it has changed:\n  system_suffix\n  │ Write at length.\n"), "{changed}");
    assert_eq!(shown(&place), None);
    // A record that cannot be read shows it again.
    let folder = place.path("state/tidegate/prompts");
    let file = std::fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    std::fs::write(file, "nothing").unwrap();
    assert!(shown(&place).unwrap().contains("is new in this workspace"));
}

#[test]
fn a_plugin_without_the_power_has_the_model_read_nothing() {
    let place = place("Write plainly.");
    place.write(
        "tidegate.toml",
        "[provider]\nkind = \"recording\"\nrecording = \"answers.jsonl\"\n[[plugin]]\npath = \"habits\"\n",
    );
    let output = place.run(&["run", "hello"]);
    assert_eq!((code(&output), out(&output).as_str()), (2, ""), "{}", err(&output));
    let why = "error[plugin-power-not-granted]: plugin `habits`: requests the power `prompt`, which is not granted";
    assert!(err(&output).starts_with(why), "{}", err(&output));
    assert!(!err(&output).contains("has the model read"), "{}", err(&output));
}

#[test]
fn a_line_that_is_too_long_for_the_terminal_is_continued_behind_a_bar() {
    let (prose, wide) = ("Write plainly. ".repeat(12), "\u{884c}".repeat(60));
    let place = place(&format!("{}\n{wide}", prose.trim_end()));
    for arguments in [&["run", "hello"][..], &["plugin", "show", "habits"]] {
        let printed = plain(&place.at_terminal(arguments, &mut |_| unreachable!("nothing is asked")));
        let rows = |begin: &str| -> Vec<String> {
            printed.lines().filter_map(|line| Some(line.split_once(begin)?.1.to_owned())).collect()
        };
        assert_eq!(rows("  │ ").len() + rows("  ┊ ").len(), 6, "{printed}");
        assert_eq!(rows("  │ ")[0], "Write plainly. ".repeat(5) + "Write ", "{printed}");
        assert_eq!(rows("  ┊ ")[2], "\u{884c}".repeat(60 - 44), "{printed}");
    }
    // Who reads a file or a pipe gets the lines as they are.
    let output = place.run(&["plugin", "show", "habits"]);
    assert!(out(&output).contains(&format!("    │ {}\n    │ {wide}\n", prose.trim_end())), "{}", out(&output));
}
