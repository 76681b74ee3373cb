//! Sessions that were last used long ago.

use std::path::Path;

use serde_json::{Value, json};

/// Makes all records under a folder two days older.
pub(crate) fn age(folder: &Path) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            age(&path);
        } else if path.extension().is_some_and(|end| end == "jsonl") {
            let text = std::fs::read_to_string(&path).unwrap();
            let older = text.lines().map(|line| {
                let mut record: Value = serde_json::from_str(line).unwrap();
                for key in ["ts", "created_ms"] {
                    if let Some(ms) = record[key].as_u64() {
                        record[key] = json!(ms - 2 * 86_400_000);
                    }
                }
                format!("{record}\n")
            });
            let older: String = older.collect();
            std::fs::write(&path, older).unwrap();
        }
    }
}
