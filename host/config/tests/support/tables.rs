//! Files of their own as tables of `tidegate.toml`.

/// Where the keys of files of their own are in `tidegate.toml`.
pub(crate) const ERRORS: &[(&str, &str)] = &[("class", "errors.class"), ("retry", "errors.retry")];
pub(crate) const LIMITS: &[(&str, &str)] =
    &[("limits", "limits.session"), ("approval", "limits.approval"), ("price", "limits.price")];
pub(crate) const EVENTS: &[(&str, &str)] = &[
    ("event_types", "events.event_types"),
    ("criticality_levels", "events.criticality_levels"),
    ("categories", "events.categories"),
];

/// The text of a file of its own as a table of `tidegate.toml`, line by line.
pub(crate) fn as_table(text: &str, keys: &[(&str, &str)]) -> String {
    let (mut all, mut in_table) = (String::new(), false);
    for line in text.lines() {
        let bare = line.trim_start_matches('[');
        let (brackets, key) = (&line[..line.len() - bare.len()], bare.split(['.', ' ', ']', '=']).next().unwrap());
        in_table |= !brackets.is_empty();
        let place = keys.iter().find(|(own, _)| *own == key && (!in_table || !brackets.is_empty()));
        match place {
            Some((own, place)) => all.extend([brackets, place, &bare[own.len()..]]),
            // The line stays, so that others keep their numbers.
            None if key == "schema_version" => {}
            None => all.push_str(line),
        }
        all.push('\n');
    }
    all
}
