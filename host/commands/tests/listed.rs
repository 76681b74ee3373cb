//! What rules about commands see of a command line: `tests/corpus/shell/listed.toml`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use serde::Deserialize;
use tidegate_commands::listed;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Corpus {
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    line: String,
    listed: Vec<String>,
}

#[test]
fn a_command_line_is_listed_by_its_commands() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/shell/listed.toml");
    let corpus: Corpus = toml::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let mut wrong = Vec::new();
    for case in &corpus.case {
        let found = listed(&case.line).text;
        if found.lines().ne(case.listed.iter().map(String::as_str)) {
            wrong.push(format!("{:?} is listed as {:?}", case.line, found.lines().collect::<Vec<_>>()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(corpus.case.len() >= 30);
}

#[test]
fn a_line_that_is_too_long_is_listed_as_it_is_written() {
    let long = format!("cat > x <<'EOF'\n{}EOF\n(sudo  rm -rf /)", "a line; of text\n".repeat(3000));
    let found = listed(&long).text;
    assert_eq!(found.lines().collect::<Vec<_>>(), ["cat > x <<'EOF'", "a line", "of text", "EOF", "sudo rm -rf /"]);
}

/// No limit of the reader takes a command out of the list.
#[test]
fn what_is_not_walked_through_is_listed_as_it_is_written() {
    let nested = format!("{}rm -rf /{}", "echo $(".repeat(14), ")".repeat(14));
    let long = format!(": {}; rm -rf /", "a ".repeat(10_000));
    for line in [nested.as_str(), &long, r"echo `rm -rf / \ `", r"echo `rm -rf \/`", r"echo `echo \`rm -rf /\``"] {
        let found = listed(line).text;
        let is_listed = found.lines().any(|one| one.starts_with("rm -rf "));
        assert!(is_listed, "{:?} is listed as {found:?}", &line[..line.len().min(60)]);
    }
}

/// Several here-documents of one line, which shells read one after the other.
#[test]
fn the_substitutions_of_every_here_document_are_listed() {
    let (run, text) = ("$(rm victim)", "x");
    for line in [
        format!("cat <<A <<B\n{text}\nA\n{run}\nB"),
        format!("cat <<'A' <<B\n{text}\nA\n{run}\nB"),
        format!("cat <<A <<B\n{run}\nA\n{text}\nB"),
        format!("cat <<A 3<<B\n{text}\nA\n{run}\nB"),
        "sh <<A <<B\nx\nA\nrm victim\nB".to_owned(),
        "sh 3<<A <<B\nx\nA\nrm victim\nB".to_owned(),
        format!("cat <<A; cat <<B\n{text}\nA\n{run}\nB"),
        format!("cat <<A | cat <<B\n{text}\nA\n{run}\nB"),
        format!("{{ cat <<A; }} <<B\n{text}\nA\n{run}\nB"),
        format!("(cat) <<A <<B\n:\nA\n{run}\nB"),
        format!("cat <<-A <<-B\n\t{text}\n\tA\n\t{run}\n\tB"),
        "if :; then cat <<A <<B; fi\nx\nA\n`rm victim`\nB".to_owned(),
        format!("cat <<A <<A\n{text}\nA\n{run}\nA"),
        format!("f() {{ cat; }} <<A <<B\n{text}\nA\n{run}\nB\nf"),
        format!("export a=1 <<A <<B\n{text}\nA\n{run}\nB"),
        format!("for i in 1; do :; done <<A <<B\n{text}\nA\n{run}\nB"),
        format!("case x in x) cat <<A <<B\n{text}\nA\n{run}\nB\n;; esac"),
        format!("echo $(cat <<A <<B\n{text}\nA\n{run}\nB\n)"),
        format!("while read a; do cat <<A; done <<B\n{run}\nA\n{run}\nB"),
        "bash -c \"cat <<A <<B\nx\nA\n\\$(rm victim)\nB\"".to_owned(),
    ] {
        assert!(listed(&line).text.lines().any(|one| one == "rm victim"), "{line:?} is listed as {:?}", listed(&line));
    }
    let quoted = listed("cat <<'A' <<'B'\nx\nA\n$(rm victim)\nB").text;
    assert_eq!(quoted, "cat\n");
}
