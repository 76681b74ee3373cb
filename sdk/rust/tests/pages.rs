//! The pages for authors: every one is compiled with its examples, has the sections that all of them have, and is in the index.
#![cfg(not(target_arch = "wasm32"))]

use std::fs;
use std::path::Path;

/// What every page about a callback or a power answers, in this order.
const SECTIONS: [&str; 3] = ["## What is undone when a rule discards the attempt", "## Example", "## Pitfalls"];

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn every_page_is_compiled_indexed_and_complete() {
    let (library, index) = (read("src/lib.rs"), read("docs/README.md"));
    let mut pages = 0;
    for folder in ["callbacks", "powers"] {
        let entries = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(folder));
        for entry in entries.expect("a folder of pages") {
            let name = entry.expect("a page").file_name().into_string().expect("a name in UTF-8");
            let page = format!("{folder}/{name}");
            assert!(library.contains(&format!("\"{page}\"")), "src/lib.rs does not compile the examples of {page}");
            assert!(index.contains(&format!("({page})")), "docs/README.md does not link {page}");
            let text = read(&format!("docs/{page}"));
            let found =
                SECTIONS.map(|section| text.find(section).unwrap_or_else(|| panic!("{page} has no `{section}`")));
            assert!(found.is_sorted(), "{page}: sections are out of order");
            assert!(text.contains("```rust\n") && text.contains("Harness"), "{page} has no example with a test");
            pages += 1;
        }
    }
    assert!(pages >= 12, "only {pages} pages");
}
