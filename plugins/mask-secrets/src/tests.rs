//! Tests of masked text, text that is not masked, and the restored secrets.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tidegate_sdk::testing::Harness;

use super::*;

#[path = "../../../sdk/secrets/tests/corpus/mod.rs"]
mod corpus;

/// The corpus with which the list of patterns is tested, too.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/secrets")
}

fn plugin() -> Harness<MaskSecrets> {
    Harness::of_plugin(include_str!("../plugin.toml"))
}

/// Returns a run of letters and digits that is nobody's key.
fn letters(count: usize) -> String {
    "a1B2c3D4e5F6g7H8i9J0".chars().cycle().take(count).collect()
}

fn input(harness: &mut Harness<MaskSecrets>, text: &str) -> String {
    match harness.input_messages(vec![Message::user(text)]).expect("searched") {
        InputAnswer::Replace(messages) => messages[0].text(),
        InputAnswer::Pass => text.to_owned(),
        other => panic!("{other:?}"),
    }
}

fn result(harness: &mut Harness<MaskSecrets>, text: &str) -> String {
    let answer = harness.tool_result(&GivenResult::new("shell", text)).expect("searched");
    match answer.replace.map(|new| new.content).as_deref() {
        Some([Content::Text(masked)]) => masked.clone(),
        None => text.to_owned(),
        other => panic!("{other:?}"),
    }
}

fn unmasked(harness: &mut Harness<MaskSecrets>, arguments: &Value) -> Value {
    match harness.tool_call(&AskedCall::new("write", arguments)).expect("called") {
        CallAnswer::Replace(new) => serde_json::from_str(&new).expect("JSON"),
        CallAnswer::Pass => arguments.clone(),
        other => panic!("{other:?}"),
    }
}

/// Returns the first placeholder of a text.
fn placeholder(text: &str) -> &str {
    let at = text.find("TIDEGATE_SECRET_").unwrap_or_else(|| panic!("{text}"));
    let end = text[at..]
        .find(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'))
        .map_or(text.len(), |end| at + end);
    &text[at..end]
}

#[test]
fn a_secret_has_one_placeholder_and_comes_back() {
    let key = format!("ghp_{}", letters(36));
    let mut harness = plugin();
    let masked = input(&mut harness, &format!("Use {key}, please."));
    let name = placeholder(&masked).to_owned();
    assert_eq!(masked, format!("Use {name}, please."));
    assert!(name.starts_with("TIDEGATE_SECRET_GITHUB_TOKEN_"), "{name}");
    // The same in results, in another instance, and for a secret that occurs twice.
    harness.restart();
    assert_eq!(result(&mut harness, &format!("TOKEN={key}\n{key}\n")), format!("TOKEN={name}\n{name}\n"));
    let other = result(&mut harness, &format!("ghp_{}", letters(35).to_uppercase() + "x"));
    assert!(placeholder(&other) != name, "{other}");
    // The order in which the model's deltas arrive makes no difference.
    assert_eq!(harness.answer(format!("It is `{name}`.\nSo {name}_OLD")).text, format!("It is `{key}`.\nSo {key}_OLD"));
    let arguments = json!({"command": format!("curl -H \"X: {name}\" x"), "env": {name.as_str(): [name.as_str()]}});
    let expected = json!({"command": format!("curl -H \"X: {key}\" x"), "env": {key.as_str(): [key.as_str()]}});
    assert_eq!(unmasked(&mut harness, &arguments), expected);
}

#[test]
fn a_private_key_is_one_secret_over_its_lines() {
    let key = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIEpAIBAAKCAQEA7\nabc+/=\n-----END RSA PRIVATE KEY-----";
    let mut harness = plugin();
    let masked = result(&mut harness, &format!("Here:\n{key}\ndone\n"));
    let name = placeholder(&masked).to_owned();
    assert_eq!(masked, format!("Here:\n{name}\ndone\n"));
    assert_eq!(
        unmasked(&mut harness, &json!({"content": format!("{name}\n")})),
        json!({"content": format!("{key}\n")})
    );
    let escaped = key.replace('\n', "\\n");
    let written = input(&mut harness, &format!("k: \"{escaped}\""));
    let other = placeholder(&written).to_owned();
    assert!(!written.contains("MIIE") && other != name, "{written}");
    assert_eq!(harness.answer(format!("k: \"{other}\"")).text, format!("k: \"{escaped}\""));
}

#[test]
fn what_is_known_is_masked_without_its_name() {
    let mut harness = plugin();
    let masked = input(&mut harness, "password = \"Tr0ub4dor3xyz\"");
    let name = placeholder(&masked).to_owned();
    assert_eq!(result(&mut harness, "echo Tr0ub4dor3xyz | sudo"), format!("echo {name} | sudo"));
    // A short secret is masked where its name identifies it.
    assert!(input(&mut harness, "password: hunter2").contains("TIDEGATE_SECRET_PASSWORD_"));
    assert_eq!(result(&mut harness, "the hunter2 game"), "the hunter2 game");
    // A placeholder is not a secret, and an unknown one remains.
    assert_eq!(input(&mut harness, &format!("API_KEY={name}")), format!("API_KEY={name}"));
    assert_eq!(harness.answer("TIDEGATE_SECRET_KEY_AAAAAA").text, "TIDEGATE_SECRET_KEY_AAAAAA");
}

#[test]
fn of_secrets_that_overlap_nothing_is_left() {
    let mut harness = plugin();
    let (one, two) = ("Tr0ub4dor3xyz", "xyzAbcd3f98765");
    let names = [one, two].map(|secret| {
        let masked = input(&mut harness, &format!("password = \"{secret}\""));
        placeholder(&masked).to_owned()
    });
    // Both are known, and no name precedes them.
    let text = "see Tr0ub4dor3xyzAbcd3f98765, Tr0ub4dor3xyz and xyzAbcd3f98765";
    let masked = result(&mut harness, text);
    let joined = placeholder(&masked).to_owned();
    assert_eq!(masked, format!("see {joined}, {} and {}", names[0], names[1]));
    assert_eq!(result(&mut harness, text), masked);
    assert_eq!(harness.answer(masked).text, text);
}

/// The time of a search does not grow with the number of known secrets, even if they have a common prefix.
#[test]
fn ten_thousand_secrets_are_masked_in_time() {
    let secret = |at: usize| format!("sk-ant-api03-{at:024}");
    let mut masks = Masks::default();
    for at in 0..10_000 {
        masks.add(format!("TIDEGATE_SECRET_KEY_{at:06}"), secret(at));
    }
    masks.is_read = true;
    let lines: Vec<String> = (0..4_000).map(|at| format!("line {at} has sk-ant-api03-x and {}", secret(at))).collect();
    let text = lines.join("\n");
    let began = std::time::Instant::now();
    let masked = masks.mask(&text, &[], &[]).expect("masked").expect("secrets");
    assert_eq!(masked.matches("TIDEGATE_SECRET_").count(), 4_000);
    assert_eq!(masks.unmask(&masked).expect("unmasked").as_deref(), Some(&*text));
    // One search for each secret would take minutes.
    assert!(began.elapsed() < std::time::Duration::from_secs(5), "{:?}", began.elapsed());
}

#[test]
fn people_are_shown_changes_as_they_are() {
    let mut harness = plugin();
    let mut given = GivenResult::new("edit", "password = \"Tr0ub4dor3xyz\"\n");
    given.diff = Some("+password = \"Tr0ub4dor3xyz\"\n".into());
    given.stage = ResultStage::Preview;
    assert_eq!(harness.tool_result(&given).expect("searched"), ResultAnswer::pass());
    given.stage = ResultStage::Done;
    let new = harness.tool_result(&given).expect("searched").replace.expect("masked");
    assert_eq!(new.diff, given.diff);
    let [Content::Text(text)] = &new.content[..] else { panic!("{new:?}") };
    assert!(text.starts_with("password = \"TIDEGATE_SECRET_PASSWORD_"), "{text}");
}

#[test]
fn settings_decide_what_else_is_masked_and_what_is_not() {
    let mut harness = plugin().with_setting("extra_patterns", ["PROJ-[0-9]+"]).with_setting("ignore", ["AKIATEST"]);
    assert!(input(&mut harness, "see PROJ-123 now").starts_with("see TIDEGATE_SECRET_VALUE_"));
    assert_eq!(input(&mut harness, "AKIATEST12345678ABCD stays"), "AKIATEST12345678ABCD stays");
    for (setting, value, words) in [
        ("extra_patterns", "(", "is not a valid pattern"),
        ("extra_patterns", "a*", "matches nothing at all"),
        ("personal_data", "name", "is none of `email`"),
    ] {
        let error = plugin().with_setting(setting, [value]).plain_text("x").unwrap_err();
        assert!(error.message().contains(words), "{error}");
    }
}

/// A member of a request that is not input is a message of its own.
#[test]
fn each_text_of_a_request_is_masked_in_its_place() {
    let mut harness = plugin();
    let key = format!("sk-ant-{}", letters(40));
    let given = vec![Message::system("Be kind."), Message::assistant(format!("It is {key}")), Message::user("Hi")];
    let InputAnswer::Replace(masked) = harness.input_messages(given.clone()).expect("searched") else { panic!() };
    assert_eq!((masked.len(), masked[0].text(), masked[2].text()), (3, given[0].text(), given[2].text()));
    assert!(masked[1].text().starts_with("It is TIDEGATE_SECRET_ANTHROPIC_KEY_"), "{}", masked[1].text());
}

/// Every case of the corpus, as the result of a tool, and back.
#[test]
fn the_corpus_is_masked_and_comes_back() {
    let mut counts = corpus::Counts::default();
    for case in corpus::cases(&folder()) {
        let mut harness = plugin();
        let masked = result(&mut harness, &case.text);
        let back = unmasked(&mut harness, &json!({ "content": masked }));
        assert_eq!(back["content"], case.text.as_str(), "{}", case.name);
        counts.add(&case, &unmarked(&masked));
    }
    let figures = counts.check();
    assert!(include_str!("../README.md").contains(&figures), "README.md does not say `{figures}`");
}

/// Returns the text with `§` for each placeholder.
fn unmarked(masked: &str) -> String {
    let mut rest = masked;
    let mut text = String::new();
    while let Some(at) = rest.find("TIDEGATE_SECRET_") {
        let name = placeholder(rest).len();
        text.push_str(&rest[..at]);
        text.push('§');
        rest = &rest[at + name..];
    }
    text + rest
}

#[test]
fn texts_without_a_secret_are_left_alone() {
    let mut texts = 0;
    for (name, text) in corpus::harmless(&folder()) {
        let mut harness = plugin();
        assert_eq!(input(&mut harness, &text), text, "{name}");
        texts += 1;
    }
    assert!(texts > 0);
}

/// Texts with personal data between `{` and `}`, and texts without. The numbers are examples of their standards.
const PERSONAL: &[&str] = &[
    "Write to {ada.lovelace+x@mail.example.co.uk}, please",
    "<{bob@example.org}>",
    "mailto:{bob_1@example.org}?subject=x",
    "call {+49 30 901820} today",
    "call {+1 (212) 555-0123}.",
    "tel:{+442079460958}",
    "IBAN {DE89 3704 0044 0532 0130 00}.",
    "to {GB29NWBK60161331926819} by Friday",
    "{FR14 2004 1010 0505 0001 3M02 606}",
    "card {4111 1111 1111 1111} exp 12/30",
    "{5555-5555-5555-4444}",
    "pan={6011000990139424}",
    "user@host without a dot",
    "npm i @scope/package.json",
    "git@github is no address",
    "1 + 22 = 23, and +1 is not one",
    "version 4.11.1111, and 2026-11-27T02:30:00+01:00",
    "DE89 3704 0044 0532 0130 01 has wrong digits",
    "card 4111 1111 1111 1112 has wrong digits",
    "0x4111111111111111 and 1234567890123",
    "FILE_2026_NAME_1234 and ABCD1234",
    "id 7f9c2ba4e88f827d616045507605853e",
];

#[test]
fn personal_data_is_masked_where_it_is_asked_for() {
    let (mut found, mut all) = (0, 0);
    for sample in PERSONAL {
        let text = sample.replace(['{', '}'], "");
        assert_eq!(input(&mut plugin(), &text), text, "it was not asked for");
        let mut harness = plugin().with_setting("personal_data", ["email", "phone", "iban", "card"]);
        let masked = input(&mut harness, &text);
        let expected = match sample.split_once('{').zip(sample.split_once('}')) {
            Some(((before, _), (_, after))) => {
                all += 1;
                found += usize::from(masked.contains("TIDEGATE_SECRET_"));
                format!("{before}§{after}")
            }
            None => text.clone(),
        };
        assert_eq!(unmarked(&masked), expected, "{sample}");
        assert_eq!(harness.answer(masked).text, text);
    }
    let figures = format!("{found} of {all} samples");
    assert!(include_str!("../README.md").contains(&figures), "README.md does not say `{figures}`");
}

/// Returns a text in Base64, in lines of this length.
fn base64(text: &str, width: usize) -> String {
    let letters: Vec<char> = ('A'..='Z').chain('a'..='z').chain('0'..='9').chain(['+', '/']).collect();
    let encoded: String = text
        .as_bytes()
        .chunks(3)
        .flat_map(|three| {
            let bits = (0..3).fold(0_usize, |bits, at| bits << 8 | usize::from(*three.get(at).unwrap_or(&0)));
            let sign = |at: usize| if at > three.len() { '=' } else { letters[bits >> (18 - 6 * at) & 63] };
            (0..4).map(sign).collect::<Vec<_>>()
        })
        .collect();
    let lines: Vec<&str> = encoded.as_bytes().chunks(width).map(|line| std::str::from_utf8(line).unwrap()).collect();
    lines.join("\n")
}

/// Texts with a secret as programs, pages and terminals write it, and the secret without its encoding.
fn encoded() -> Vec<(&'static str, Option<String>, String)> {
    let github = format!("ghp_{}", letters(36));
    let (one, other) = github.split_at(20);
    let signs = format!("{}+/{}+{}==", letters(12), letters(19), letters(8));
    let known = |secret: &str| Some(format!("password = \"{secret}\""));
    let json = signs.replace('+', "\\u002B").replace('=', "\\u003d").replace('/', "\\/");
    let url = signs.replace('+', "%2B").replace('=', "%3D").replace('/', "%2f");
    let body: String = (0..6).map(|line| letters(60 + line) + "\n").collect();
    let pem = format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{body}-----END OPENSSH PRIVATE KEY-----\n");
    vec![
        ("a zero-width space", None, format!("key {one}\u{200b}{other}, yes")),
        ("a soft hyphen and a joiner", None, format!("{one}\u{ad}{}\u{2060}{}", &other[..4], &other[4..])),
        ("escapes of JSON", known(&signs), format!("{{\"value\":\"{json}\",\"b\":1}}")),
        ("escapes of JSON, by its name", None, format!("AccountKey={}\\u002b{}==", letters(40), letters(45))),
        ("escapes of an address", known(&signs), format!("GET /a?b={url}&c=d HTTP/1.1")),
        ("a terminal", known(&signs), format!("$ echo {}\n{}\n$", &signs[..25], &signs[25..])),
        ("a terminal with carriage returns", known(&signs), format!("x {}\r\n{} y\r\n", &signs[..7], &signs[7..])),
        ("a block in Base64", None, format!("$ base64 key.pem\n{}\n$ ls", base64(&pem, 76))),
        ("a block in Base64, indented", None, format!("key: |\n  {}\nnext: 1", base64(&pem, 64).replace('\n', "\n  "))),
        ("a block in Base64 on one line", None, format!("KEY={}\nB=c", base64(&pem, 100_000))),
    ]
}

#[test]
fn encoded_secrets_are_masked_and_come_back() {
    for (name, before, text) in encoded() {
        let mut harness = plugin();
        before.iter().for_each(|before| assert_ne!(input(&mut harness, before), *before, "{name}"));
        let masked = result(&mut harness, &text);
        let rest = unmarked(&masked);
        let words = ["base64", "key.pem"];
        let run = rest.split(|c: char| !c.is_ascii_alphanumeric()).find(|run| run.len() >= 6 && !words.contains(run));
        assert!(run.is_none_or(|run| ["AccountKey"].contains(&run)) && rest.contains('§'), "{name}: {masked}");
        assert_eq!(harness.answer(masked.clone()).text, text, "{name}");
        assert_eq!(result(&mut harness, &text), masked, "{name}: the same again");
    }
}

/// Blocks and encodings without a secret.
#[test]
fn encoded_texts_without_a_secret_are_left_alone() {
    let certificate = format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", letters(64));
    for text in [
        base64(&certificate, 76),
        base64("-----BEGIN PUBLIC KEY-----\nabcdefghijklmnopqrstuvwxyz\n", 76),
        "LS0tLS1CRUdJTi".to_owned(),
        "https://example.org/a%2Fb?q=caf%C3%A9%20au%20lait&u=https%3A%2F%2Fexample.org%2F".to_owned(),
        "{\"text\":\"a \\u003cb\\u003e \\u0026 c\\/d\"}".to_owned(),
        "soft\u{ad}hyphen\u{200b}ation of pass\u{ad}words".to_owned(),
    ] {
        assert_eq!(result(&mut plugin(), &text), text);
    }
}

/// Many beginnings of blocks that contain no private key: the time grows with the text, not with its square.
#[test]
fn many_blocks_without_a_key_are_searched_once() {
    for line in ["LS0tLS1CRUdJTi", "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t\n"] {
        let text = line.repeat((1 << 20) / line.len());
        let begun = std::time::Instant::now();
        assert!(encoded::spans(&text).is_empty(), "{line}");
        assert!(begun.elapsed() < std::time::Duration::from_secs(5), "{line}: {:?}", begun.elapsed());
    }
}
