//! The corpus of secrets, `tests/corpus/secrets`: its README has the format. Keys are put together here, so that no file has one.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Deserialize;

/// A text with a secret in it.
pub(crate) struct Case {
    /// What is secret: a kind of key, a password, a label of a block.
    pub(crate) kind: String,
    /// What it is and where it is.
    pub(crate) name: String,
    pub(crate) text: String,
    /// What must not be shown, in parts that are each a secret; none is shorter than four characters.
    pub(crate) secrets: Vec<String>,
    /// What remains of the text, `§` in the place of the secret; `None` where that depends on the lines of a key block.
    pub(crate) rest: Option<String>,
}

#[derive(Deserialize)]
struct Shapes {
    shape: Vec<Shape>,
    vendor: Vec<Vendor>,
}

#[derive(Deserialize)]
struct Vendor {
    kind: String,
    name: String,
    parts: Vec<String>,
}

#[derive(Deserialize)]
struct Shape {
    kind: String,
    #[serde(default)]
    before: String,
    parts: Vec<String>,
    #[serde(default)]
    after: String,
}

#[derive(Deserialize)]
struct Places {
    any: Vec<Place>,
    password: Vec<Place>,
    token: Vec<Place>,
    vendor: Vec<Place>,
}

#[derive(Deserialize)]
struct Place {
    name: String,
    text: String,
}

#[derive(Deserialize)]
struct Values {
    password: Vec<Vec<String>>,
    token: Vec<Vec<String>>,
    label: Vec<String>,
    block: Vec<Block>,
}

#[derive(Deserialize)]
struct Block {
    name: String,
    before: Option<String>,
    first: Option<String>,
    each: String,
    last: Option<String>,
    after: Option<String>,
}

#[derive(Deserialize)]
struct Harmless {
    text: Vec<Place>,
}

fn read<T: for<'a> Deserialize<'a>>(folder: &Path, file: &str) -> T {
    let text = std::fs::read_to_string(folder.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    toml::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// How many cases are hidden, and of how many of those that say it the rest of the text is shown.
#[derive(Default)]
pub(crate) struct Counts {
    kinds: BTreeSet<String>,
    cases: usize,
    hidden: usize,
    with_rest: usize,
    exact: usize,
    missed: Vec<String>,
}

impl Counts {
    /// Counts a case of which this is shown, with `§` for each marker.
    pub(crate) fn add(&mut self, case: &Case, shown: &str) {
        self.cases += 1;
        self.kinds.insert(case.kind.clone());
        if case.secrets.iter().any(|secret| shown.contains(secret.as_str()) || part_is_shown(secret, shown)) {
            self.missed.push(format!("{}: {shown:?}", case.name));
            return;
        }
        self.hidden += 1;
        self.with_rest += usize::from(case.rest.is_some());
        self.exact += usize::from(case.rest.as_deref() == Some(shown));
    }

    /// Prints the counts, and fails below the aims. Returns how many of the cases are hidden, as the page of the plugin says it.
    pub(crate) fn check(&self) -> String {
        let percent = |part: usize, whole: usize| 100.0 * part as f64 / whole.max(1) as f64;
        let (hidden, exact) = (percent(self.hidden, self.cases), percent(self.exact, self.with_rest));
        let kinds = self.kinds.len();
        let figures = format!("{} of {} cases of {kinds} kinds, {hidden:.1} %", self.hidden, self.cases);
        println!("hidden: {figures}; of {exact:.1} % all the rest is shown");
        self.missed.iter().for_each(|missed| println!("  shown: {missed}"));
        assert!(kinds >= 150 && hidden >= 95.0 && exact >= 80.0, "{} are shown", self.missed.len());
        figures
    }
}

/// Whether a part of a long secret is shown.
fn part_is_shown(secret: &str, shown: &str) -> bool {
    let chars: Vec<char> = secret.chars().collect();
    chars.len() >= 16 && chars.windows(10).any(|part| shown.contains(&part.iter().collect::<String>()))
}

/// Keys and tokens that tell themselves, everywhere; passwords and tokens with a name; key blocks.
pub(crate) fn cases(folder: &Path) -> Vec<Case> {
    let (shapes, places): (Shapes, Places) = (read(folder, "shapes.toml"), read(folder, "places.toml"));
    let values: Values = read(folder, "values.toml");
    let mut cases = Vec::new();
    for shape in &shapes.shape {
        for place in &places.any {
            let secret = assembled(&shape.parts, &place.name);
            let (before, after) = (shape.before.as_str(), shape.after.as_str());
            let text = place.text.replace('§', &format!("{before}{secret}{after}"));
            let rest = place.text.replace('§', &format!("{before}§{after}"));
            cases.push(Case {
                kind: shape.kind.clone(),
                name: format!("{} in {}", shape.kind, place.name),
                text,
                secrets: vec![secret],
                rest: Some(rest),
            });
        }
    }
    for vendor in &shapes.vendor {
        cases.extend(places.vendor.iter().map(|place| vendor.case(place)));
    }
    for (what, values, places) in
        [("password", &values.password, &places.password), ("token", &values.token, &places.token)]
    {
        for place in places {
            for value in values {
                let secret = assembled(value, &place.name);
                let name = format!("the {what} {} in {}", value.concat(), place.name);
                cases.push(Case {
                    kind: what.to_owned(),
                    name,
                    text: place.text.replace('§', &secret),
                    secrets: vec![secret],
                    rest: Some(place.text.clone()),
                });
            }
        }
    }
    cases.extend(values.block.iter().flat_map(|block| values.label.iter().map(|label| block.case(label))));
    cases
}

/// Texts that have no secret, with their names.
pub(crate) fn harmless(folder: &Path) -> Vec<(String, String)> {
    let harmless: Harmless = read(folder, "harmless.toml");
    harmless.text.into_iter().map(|text| (text.name, text.text)).collect()
}

impl Vendor {
    fn case(&self, place: &Place) -> Case {
        let secret = assembled(&self.parts, &place.name);
        let capital = self.name[..1].to_uppercase() + &self.name[1..];
        let spellings = [("{name}", &self.name), ("{NAME}", &self.name.to_uppercase()), ("{Name}", &capital)];
        let rest = spellings.iter().fold(place.text.clone(), |text, (field, name)| text.replace(field, name));
        Case {
            kind: self.kind.clone(),
            name: format!("{} in {}", self.kind, place.name),
            text: rest.replace('§', &secret),
            secrets: vec![secret],
            rest: Some(rest),
        }
    }
}

impl Block {
    fn case(&self, label: &str) -> Case {
        let mut random = Random::of(&format!("{}{label}", self.name));
        let mut body: Vec<String> = (0..5).map(|_| random.letters('b', 64)).collect();
        body.push(random.letters('b', 22) + "==");
        let mut lines = vec![format!("-----BEGIN {label}-----")];
        lines.extend(body.iter().cloned());
        lines.push(format!("-----END {label}-----"));
        let (count, mut text) = (lines.len(), String::new());
        let mut wrap = |pattern: &str, line: &str, number: usize| {
            text.push_str(&pattern.replace("{n}", &number.to_string()).replace('§', line));
            text.push('\n');
        };
        self.before.iter().for_each(|line| wrap(line, "", 0));
        for (at, line) in lines.iter().enumerate() {
            let own = if at == 0 {
                &self.first
            } else if at + 1 == count {
                &self.last
            } else {
                &None
            };
            wrap(own.as_ref().unwrap_or(&self.each), line, at + 1);
        }
        self.after.iter().for_each(|line| wrap(line, "", 0));
        let kind = label.to_owned();
        Case { kind, name: format!("{label} in {}", self.name), text, secrets: body, rest: None }
    }
}

/// The parts of a key, joined, with random characters where they say so.
fn assembled(parts: &[String], seed: &str) -> String {
    let (pattern, mut random) = (parts.concat(), Random::of(&format!("{}{seed}", parts.concat())));
    let (mut key, mut rest) = (String::new(), pattern.as_str());
    while let Some((before, behind)) = rest.split_once('{') {
        key.push_str(before);
        let (class, after) = behind.split_once('}').expect("a part ends with }");
        let count = class[1..].parse().expect("a number of characters");
        key.push_str(&random.letters(class.chars().next().expect("a class"), count));
        rest = after;
    }
    key + rest
}

/// Numbers that are the same in each run: xorshift.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn of(seed: &str) -> Self {
        Self(
            seed.bytes()
                .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
                | 1,
        )
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % limit
    }

    /// So many characters of a class, with a digit and a letter among them where both are in it.
    pub(crate) fn letters(&mut self, class: char, count: usize) -> String {
        let (lower, upper, digits) = ("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789");
        let set: String = match class {
            'x' => "0123456789abcdef".into(),
            'd' => digits.into(),
            'S' => upper.to_owned() + "234567",
            'a' => lower.to_owned() + digits,
            'w' => lower.to_owned() + upper + digits,
            'b' => lower.to_owned() + upper + digits + "+/",
            'u' => lower.to_owned() + upper + digits + "_-",
            other => panic!("no class {other}"),
        };
        let set = set.as_bytes();
        let mut text: String = (0..count).map(|_| char::from(set[self.below(set.len())])).collect();
        if count >= 3 && class != 'd' {
            let letter = if class == 'S' { "Q" } else { "e" };
            text.replace_range(..2, &format!("{letter}5"));
        }
        text
    }
}
