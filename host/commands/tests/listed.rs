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
    let long = format!("cat > x <<EOF\n{}$x\nEOF\n(sudo  rm -rf /)", "a line; of text\n".repeat(3000));
    let found = listed(&long);
    let lines = ["cat > x <<EOF", "a line", "of text", "$x", "EOF", "sudo rm -rf /"];
    assert_eq!(found.text.lines().collect::<Vec<_>>(), lines);
    assert!(found.unread.is_some());
}

/// A file that is written by a here-document is no part of the command line, however long it is.
#[test]
fn the_text_of_a_long_here_document_is_not_read() {
    let text = "it is `rm` or $(rm x) {a,b} \\\n<<'EOF'\n".repeat(4000);
    let plain = "a line; of text (rm x)\n".repeat(4000);
    let json = format!("{}\n", "{\"a\":{\"b\":[1,2]}},".repeat(4000));
    for document in [
        format!("<<'END' > f\n{text}END\n"),
        format!("> f <<\"END\"\n{text}END\n"),
        format!(">> f <<-'END'\n{text}\t\tEND\n"),
        format!("> f <<END\n{plain}END\n"),
        format!("<<'END' | tee f\n{json}END\n"),
    ] {
        let found = listed(&format!("cd a\ncat {document}sudo rm y"));
        assert_eq!(found.unread, None, "{}", &document[..20]);
        assert!(found.text.ends_with("sudo rm y\nrm y\n"), "{}", found.text);
        assert_eq!(found.text.matches("rm").count(), 2, "{}", found.text);
    }
    // A shell reads it; it is expanded; it is none; where it ends cannot be told.
    for line in [
        format!("sh <<'END'\n{text}END\n"),
        format!("cat <<'END' | sudo sh\n{text}END\n"),
        format!("(cd a; bash -s) <<'END'\n{text}END\n"),
        format!("xargs rm <<'END'\n{text}END\n"),
        format!("cat <<END\n{text}END\n"),
        format!("echo '\ncat <<\"END\"\n{text}END\n'; rm y"),
        format!("cat <<'A' <<'END'\nA\n{text}END\n"),
        format!("cat <<'END'\n{text}"),
        format!("cat <<'END'\n{text}END \n"),
        format!("# <<'END'\n{text}END\n"),
        format!("cat <<A\n<<'END'\nA\n{text}END\n"),
    ] {
        assert!(listed(&line).unread.is_some(), "{}", &line[..30]);
    }
}

/// More values than are filled in are said to be so.
#[test]
fn what_is_not_filled_in_is_not_read() {
    let values = |count: usize| (0..count).map(|at| format!(" v{at}")).collect::<String>();
    let appended = format!("x=r; {}$x y", "x+=m; ".repeat(4000));
    for (line, is_read) in [
        (format!("for a in{}; do b $a; done", values(200)), true),
        (format!("for a in{}; do b $a; done", values(300)), false),
        (format!("for a in{0}; do for b in{0}; do c $a $b; done; done", values(10)), true),
        (format!("for a in{0}; do for b in{0}; do c $a $b; done; done", values(20)), false),
        (format!("for a in{}; do b $a {}; done", values(200), "x ".repeat(1000)), false),
        (format!("x=a; y=b; {}", "sh -c \"$x\" $y; ".repeat(1000)), true),
        (format!("{{ {} }} {}", "sh; ".repeat(1000), "<<< a ".repeat(1000)), false),
        ("x='sh -c \"$x\"'; sh -c \"$x\"".to_owned(), false),
        (appended, false),
    ] {
        let found = listed(&line);
        assert_eq!(found.unread.is_none(), is_read, "{}: {:?}", &line[..20], found.unread);
    }
}

/// The work that a line costs is in proportion to its length.
#[test]
fn many_commands_in_one_are_read_once_each() {
    let many = |part: &str| part.repeat((32 << 10) / part.len() - 4);
    for (line, lists) in [
        (format!("find . {}", many("-exec a \\; ")), "\na\n"),
        (format!("find . {}", many("-exec a ")), "find . "),
        (format!("fd {}", many("-x a ")), "fd -x"),
        (many("a;"), "a\n"),
        (format!("{}a", many("a|")), "| a | a\n"),
        (format!("{}sh", many("echo a|")), "\na\n"),
        (many("$a b;"), "$a b\n"),
        (format!("x=a;{}", many("$x $x $x;")), "a a a\n"),
    ] {
        let found = listed(&line);
        let start = &line[..20];
        assert!(found.text.contains(lists), "{start}: {}", &found.text[..found.text.len().min(60)]);
        assert!(found.text.len() < 40 * line.len(), "{start}: a list of {} bytes", found.text.len());
    }
}

#[test]
fn what_a_line_passes_on_is_filled_in() {
    for (line, lists) in [
        ("set -- -rf /; rm \"$@\"", "rm -rf /"),
        ("set -e -- rm -rf /; $@", "rm -rf /"),
        ("set -- rm -rf /; sh -c \"$*\"", "rm -rf /"),
        ("c=rm/; ${c%/} -rf /", "rm -rf /"),
    ] {
        assert!(listed(line).text.lines().any(|one| one == lists), "{line} is listed as {:?}", listed(line).text);
    }
}

/// Short lines that ask for much work, alone and nested in each other.
#[test]
fn a_line_that_takes_too_much_work_is_not_read() {
    let values = |count: usize| (0..count).map(|at| format!(" v{at}")).collect::<String>();
    let doubled = (b'b'..=b'z').fold(format!("a={};", "x".repeat(400)), |line, name| {
        let (name, from) = (name as char, (name - 1) as char);
        format!("{line} {name}={};", format!("${from}").repeat(60))
    });
    let expansions = format!("echo {}$(){};", "${a#".repeat(40), "}".repeat(40));
    let products = format!("for a in{}; do {} done;", values(256), "$a$a; ".repeat(60));
    let tails = format!("set{}; shift; {}", values(250), "b $@; ".repeat(200));
    let reads = format!("{}{}true;", "echo a|".repeat(200), "sh|".repeat(200));
    let assigned = |count: usize| format!("for a in{}; do {} done;", values(250), "x=$a; ".repeat(count));
    let parts = format!("a=b; echo {};", "$a".repeat(2000));
    let many = |part: &str| part.repeat((30 << 10) / part.len());
    let all = [&doubled, &expansions, &products, &tails, &reads, &assigned(300), &parts].map(String::as_str).concat();
    for line in [
        doubled.clone(),
        expansions.clone(),
        products.clone(),
        reads.clone(),
        assigned(300),
        format!("{tails} rm -rf /"),
        all.clone(),
        format!("f() {{ {doubled} }}; {products} f $z $z; echo $(echo $z | sh)"),
        format!("{doubled} for a in $z $y{}; do {} done", values(200), "x=$a$z; $x$x; ".repeat(100)),
        format!("sh -c '{doubled} {products}' | sh; sh <<< \"$z$y\""),
        format!("echo \"$(echo ${{a:-$({expansions} {reads})}})\""),
        format!("set{}; shift; {}", values(250), "x+=$@; y=$@$x; $@ $y | sh; ".repeat(200)),
        format!("{{ {} }} {}", "sh; xargs a; read x; ".repeat(300), "<<< \"$x b\" ".repeat(300)),
        format!("alias x='{}'; {}", "a ".repeat(2000), "x $a; ".repeat(1000)),
        format!("a={}; {}", "x".repeat(10_000), "b $a $a; ".repeat(2000)),
        format!("{} {}", "sudo ".repeat(130), "x".repeat(30_000)),
        many("time "),
        format!("echo {}a{}", "$(echo ".repeat(3000), ")".repeat(3000)),
        format!("echo {}a{}", "\"${a:-".repeat(300), "}\"".repeat(300)),
        many("echo a|sh|"),
        many("cat<<<a|sh;"),
        format!("x=a; y=b; {}", many("x=$x$x$y; y=$x;")),
        many("echo {a,b}{c,d}{e,f}{g,h}{i,j}{k,l}{m,n};"),
    ] {
        let found = listed(&line);
        assert!(found.unread.is_some(), "{}: {} bytes", &line[..40], found.text.len());
        assert!(found.text.len() < 8 << 20, "{}: a list of {} bytes", &line[..40], found.text.len());
    }
    for (line, lists) in [(parts, "b".repeat(2000)), (format!("{} $x rm", assigned(30)), "v249 rm".to_owned())] {
        let found = listed(&line);
        assert_eq!((found.unread, found.text.contains(&lists)), (None, true), "{}", &line[..40]);
    }
    let found = listed(&format!("{all} rm -rf /; {all}"));
    assert!(found.text.lines().any(|line| line == "rm -rf /"));
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
    assert_eq!(quoted, "cat\n| <<x␣ | cat\n| <<$(rm␣victim)␣ | cat\n");
}

/// Words that `$IFS` splits are not followed, and the line is none that was read.
#[test]
fn a_line_that_splits_words_by_ifs_is_unread() {
    for line in ["rm${IFS}-rf${IFS}/", "rm$IFS-rf /", "bash -c 'git${IFS}push -f'", "rm${IFS:0:1}-rf /"] {
        assert!(listed(line).unread.is_some(), "{line}");
    }
    assert_eq!(listed("while IFS= read -r line; do echo \"$line\"; done < list").unread, None);
}
