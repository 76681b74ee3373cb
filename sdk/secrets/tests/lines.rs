//! The corpus of secrets, found line by line, and the texts without one; how it is measured is in `tests/corpus/secrets/README.md`.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking, and says what it counted")]

use std::path::{Path, PathBuf};

use tidegate_secrets::{Lines, scan};

use crate::corpus;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/secrets")
}

/// The page of the plugin, which publishes the figures.
fn page() -> String {
    std::fs::read_to_string(folder().join("../../../plugins/redact-secrets/README.md")).unwrap()
}

/// The most hits in 100 KB that the page says of a text: the figure behind `at most` in its row.
fn published(row: &str) -> f64 {
    let page = page();
    let row = page.lines().find(|line| line.contains(row)).unwrap_or_else(|| panic!("no row on {row}"));
    let (_, figure) = row.split_once("at most ").unwrap_or_else(|| panic!("no figure: {row}"));
    figure.split(' ').next().unwrap().parse().unwrap_or_else(|error| panic!("{error}: {row}"))
}

/// The text as a reader sees it: `§` for each secret.
fn shown(text: &str) -> String {
    let (mut lines, mut shown) = (Lines::default(), String::new());
    for line in text.split_inclusive('\n') {
        let mut at = 0;
        for found in lines.take(line, "") {
            shown.push_str(&line[at..found.start]);
            shown.push_str(if found.continues { "" } else { "§" });
            at = found.end;
        }
        shown.push_str(&line[at..]);
    }
    shown
}

#[test]
fn nothing_of_a_secret_is_shown() {
    let mut counts = corpus::Counts::default();
    for case in corpus::cases(&folder()) {
        counts.add(&case, &shown(&case.text));
    }
    let figures = counts.check();
    assert!(page().contains(&figures), "the page of the plugin does not say `{figures}`");
}

#[test]
fn texts_without_a_secret_are_left_alone() {
    let texts = corpus::harmless(&folder());
    let bytes: usize = texts.iter().map(|(_, text)| text.len()).sum();
    let touched = texts.iter().map(|(name, text)| (name, text, shown(text))).filter(|(_, text, shown)| *text != shown);
    let touched: Vec<String> = touched
        .flat_map(|(name, text, shown)| {
            let pairs: Vec<_> =
                text.lines().zip(shown.lines()).filter(|(a, b)| a != b).map(|(_, b)| format!("{name}: {b}")).collect();
            pairs
        })
        .collect();
    println!("{} texts without a secret, {bytes} bytes", texts.len());
    assert!(touched.is_empty(), "{} lines:\n{}", touched.len(), touched.join("\n"));
}

#[test]
fn what_is_random_and_no_secret_is_left_alone() {
    let mut random = corpus::Random::of("hashes");
    let mut text = String::new();
    for at in 0..4000 {
        let line = match at % 5 {
            0 => format!("commit {}", random.letters('x', 40)),
            1 => format!("\"sha256\": \"{}\",", random.letters('x', 64)),
            2 => format!(
                "id: {}-{}-4{}-8{}-{}",
                random.letters('x', 8),
                random.letters('x', 4),
                random.letters('x', 3),
                random.letters('x', 3),
                random.letters('x', 12)
            ),
            3 => format!("data:image/png;base64,{}", random.letters('b', 200)),
            _ => format!("\"integrity\": \"sha512-{}==\"", random.letters('b', 86)),
        };
        text.push_str(&line);
        text.push('\n');
    }
    let shown = shown(&text);
    let hits = shown.matches('§').count();
    println!("{hits} in {} bytes of digests, ids and images", text.len());
    assert!(hits * 100_000 <= text.len(), "{hits} in {} bytes", text.len());
}

/// What has samples because it is about secrets: they are hits, and not false ones.
const ABOUT_SECRETS: [&str; 5] = [
    "host/providers/tests/masking.rs",
    "plugins/redact-secrets/src/tests.rs",
    "rules/builtin/secret-in-file.md",
    "sdk/secrets/",
    "tests/corpus/shell/variables.toml",
];

/// The files of this repository, and its pages alone, which are prose. Samples of secrets in other tests count too.
#[test]
fn this_repository_has_hardly_any() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut all, mut pages) = (Hits::default(), Hits::default());
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_symlink() || matches!(&*name, "target" | "node_modules") || name.starts_with('.') {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            let found = shown(&text).matches('§').count().saturating_sub(text.matches('§').count());
            let name = path.strip_prefix(&root).unwrap().display().to_string();
            if ABOUT_SECRETS.iter().any(|about| name.starts_with(about)) {
                continue;
            }
            // The examples of rules, and the pages that tests compare with, have samples.
            if name.ends_with(".md") && !name.starts_with("rules/") && !name.starts_with("tests/corpus/") {
                pages.add(&name, text.len(), found);
            }
            all.add(&name, text.len(), found);
        }
    }
    all.check("all files of this repository", 2_000_000);
    pages.check("the pages of this repository", 200_000);
}

/// How often something is hidden in texts.
#[derive(Default)]
struct Hits {
    bytes: usize,
    count: usize,
    files: Vec<(usize, String)>,
}

impl Hits {
    fn add(&mut self, name: &str, bytes: usize, found: usize) {
        self.bytes += bytes;
        self.count += found;
        self.files.extend((found > 0).then(|| (found, name.to_owned())));
    }

    /// Fails above one in 100,000 bytes, and above what the page says.
    fn check(&self, what: &str, least: usize) {
        let (each, published) = (self.count as f64 * 1e5 / self.bytes as f64, published(what));
        println!("{} hits in {} bytes of {what}, {each:.2} in 100 KB: {:?}", self.count, self.bytes, self.files);
        assert!(self.bytes > least && each <= published && published <= 1.0, "{each} in {what}, not {published}");
    }
}

/// A text that arrives in pieces: what is found in the end is what is found in the whole, and nothing is final too early.
#[test]
fn a_text_in_pieces_is_the_same_text() {
    for case in corpus::cases(&folder()).iter().step_by(7) {
        let text = case.text.as_bytes();
        let whole = masked(text, &[text.len()]);
        for cut in [1, 2, 3, 5, 8, 13] {
            let cuts: Vec<usize> = (1..=text.len()).filter(|at| at % cut == 0 || *at == text.len()).collect();
            let pieces = masked(text, &cuts);
            // The mark of a key block, which is no secret, is judged by the line that it is on; what a key begins with that says nothing of
            // itself, and the number of a bot before its secret, have been passed on.
            let differ = |star: &[u8], other: &[u8]| {
                (0..text.len()).filter(|at| star[*at] == b'*' && other[*at] != b'*').count()
            };
            let (more, less) = (differ(&pieces, &whole), differ(&whole, &pieces));
            assert!(
                more <= 64 && less <= 16,
                "{} in pieces of {cut}:\n{}",
                case.name,
                String::from_utf8_lossy(&pieces)
            );
        }
    }
}

/// The text with stars for its secrets, searched at each of the cuts from where it was open. What was decided has been passed on: it is
/// masked no more.
fn masked(text: &[u8], cuts: &[usize]) -> Vec<u8> {
    let (mut done, mut from, mut passed_on) = (text.to_vec(), 0_usize, 0_usize);
    for end in cuts {
        let before = from.checked_sub(1).map(|at| text[at]);
        let scan = scan(&text[from..*end], before);
        for found in scan.found.iter().filter(|found| !found.is_open || *end == text.len()) {
            let first = (from + found.body).max(passed_on);
            if first < from + found.end {
                done[first..from + found.end].fill(b'*');
            }
        }
        passed_on = passed_on.max(from + scan.undecided);
        from += scan.open;
    }
    done
}

/// Where a text ends, only what may be a part of a secret is undecided: names and words are not.
#[test]
fn only_what_may_be_a_secret_is_undecided() {
    for (text, undecided) in [
        ("Grüße an den Hafen", None),
        ("the password", None),
        ("the password is ", None),
        ("api_key = ", None),
        ("x-", None),
        ("see https://example.org/a", None),
        ("password = hun", Some("hun")),
        ("the password is hun", Some("hun")),
        ("api_key=\"abc", Some("abc")),
        ("postgres://bob:hun", Some("hun")),
        ("Bearer ab", Some("ab")),
        ("it is eyJhbGci", Some("eyJhbGci")),
        ("curl -u bob:hun", Some("hun")),
    ] {
        let scan = scan(text.as_bytes(), None);
        assert_eq!(&text[scan.undecided..], undecided.unwrap_or(""), "{text:?}");
    }
    let key = ["glp", "at-abcd"].concat();
    assert_eq!(&key[scan(key.as_bytes(), None).undecided..], "abcd", "the beginning of a key tells nothing");
}
