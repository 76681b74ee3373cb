//! `mask-secrets` as an operator configures it, in sessions of Tidegate: the model reads placeholders; users, tools and files get the
//! secrets.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::support::script::Model;
use crate::support::{Place, err, out};

/// The password in the file that is read.
const IN_FILE: &str = "Tr0ub4dor3x";

/// Returns the plugin, built from its source.
pub(crate) fn plugin() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins/mask-secrets").canonicalize().unwrap();
    let built = tidegate_build::build(&folder, &tidegate_build::Options::default(), &mut |_| {}).unwrap();
    built.place_beside_manifest(&folder).unwrap();
    folder
}

/// Returns a token of nobody, joined so that no file contains it.
pub(crate) fn token() -> String {
    ["ghp", "_", "a1B2c3D4e5F6g7H8i9J0a1B2c3D4e5F6g7H8"].concat()
}

/// Returns the placeholder of a secret of this kind in a text.
pub(crate) fn placeholder(text: &str, kind: &str) -> String {
    let at = text.find(&format!("TIDEGATE_SECRET_{kind}_")).unwrap_or_else(|| panic!("{text}"));
    let is_part = |c: &char| c.is_ascii_uppercase() || c.is_ascii_digit() || *c == '_';
    text[at..].chars().take_while(is_part).collect()
}

#[test]
fn the_model_gets_placeholders_and_everybody_else_the_secrets() {
    let (place, model) = (Place::new(), Model::start());
    let file = format!(
        "[tools.permission]\nshell = \"allow\"\nread_file = \"allow\"\n[transcript]\nenabled = true\nfolder = \"sessions\"\n\
         [[plugin]]\npath = {:?}\ngrants = [\"state\"]\nrequired = true\n",
        plugin().display().to_string()
    );
    place.write("tidegate.toml", &model.settings(&file));
    place.write("settings.toml", "port = 1\npassword = \"Tr0ub4dor3x\"\n");
    let token = token();
    let is_clean = |text: &str| !text.contains(&token) && !text.contains(IN_FILE);
    std::thread::scope(|scope| {
        let run = scope.spawn(|| place.run(&["run", &format!("The token is {token}, set it up.")]));
        let mut asked = model.request();
        let text = asked.text();
        let masked = placeholder(&text, "GITHUB_TOKEN");
        assert!(is_clean(&text), "{text}");
        let command = format!("printf %s {masked} > out.txt; cat out.txt");
        asked.call("c1", "shell", &json!({"command": command})).end();
        let mut ran = model.request();
        let text = ran.text();
        assert!(is_clean(&text) && text.matches(&masked).count() == 3, "{text}");
        ran.call("c2", "read_file", &json!({"path": "settings.toml"})).end();
        let mut read = model.request();
        let text = read.text();
        let password = placeholder(&text, "PASSWORD");
        assert!(is_clean(&text), "{text}");
        read.say(&format!("It is {masked}.\nThe password is {password}.\n")).end();
        let output = run.join().unwrap();
        let (shown, messages) = (out(&output), err(&output));
        assert!(output.status.success(), "{shown}{messages}");
        assert!(shown.contains(&format!("It is {token}.\nThe password is {IN_FILE}.")), "{shown}{messages}");
    });
    assert_eq!(std::fs::read_to_string(place.path("out.txt")).unwrap(), token);
}
