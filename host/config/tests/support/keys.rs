//! Every key of the schema of `tidegate.toml`, each in a file of its own with a value that is not the default.

use serde_json::Value;

/// A key, and a file with it.
pub(crate) struct Key {
    /// Its path with dots; `*` is any name.
    pub(crate) path: String,
    /// The file, with what the key cannot be without.
    pub(crate) file: String,
}

/// Files of keys that need others, or a value that their type does not show.
const FILES: [(&str, &str); 49] = [
    ("gateway.audit", "[gateway]\naudit = \"more\"\n"),
    ("gateway.listen", "[gateway]\nlisten = \"127.0.0.1:9\"\n"),
    ("gateway.route.path", "[[gateway.route]]\npath = \"/\"\nupstream = \"http://127.0.0.1:9\"\n"),
    ("gateway.route.upstream", "[[gateway.route]]\npath = \"/\"\nupstream = \"http://127.0.0.1:9\"\n"),
    (
        "gateway.route.key",
        "[[gateway.route]]\npath = \"/\"\nupstream = \"http://127.0.0.1:9\"\nkey = \"env:SOME_KEY\"\n[[gateway.token]]\nname = \"more\"\nvalue = \"env:SOME_TOKEN\"\n",
    ),
    (
        "gateway.route.allow_plaintext_key",
        "[[gateway.route]]\npath = \"/\"\nupstream = \"http://model.example\"\nallow_plaintext_key = true\n",
    ),
    ("gateway.route.rules", "[[gateway.route]]\npath = \"/\"\nupstream = \"http://127.0.0.1:9\"\nrules = [\"more\"]\n"),
    (
        "gateway.route.plugins",
        "[[gateway.route]]\npath = \"/\"\nupstream = \"http://127.0.0.1:9\"\nplugins = [\"more\"]\n",
    ),
    ("gateway.route.agent", "[[gateway.route]]\npath = \"/\"\nupstream = \"http://127.0.0.1:9\"\nagent = \"more\"\n"),
    ("gateway.route.ca", "[[gateway.route]]\npath = \"/\"\nupstream = \"http://127.0.0.1:9\"\nca = \"more\"\n"),
    ("gateway.token.name", "[[gateway.token]]\nname = \"more\"\nvalue = \"env:SOME_TOKEN\"\n"),
    ("gateway.token.value", "[[gateway.token]]\nname = \"more\"\nvalue = \"env:SOME_TOKEN\"\n"),
    ("gateway.token.concurrent", "[[gateway.token]]\nname = \"more\"\nvalue = \"env:SOME_TOKEN\"\nconcurrent = 3\n"),
    (
        "gateway.token.routes",
        "[[gateway.route]]\npath = \"/\"\nupstream = \"http://127.0.0.1:9\"\n[[gateway.token]]\nname = \"more\"\nvalue = \"env:SOME_TOKEN\"\nroutes = [\"/\"]\n",
    ),
    ("gateway.hosts", "[gateway]\nhosts = [\"more\"]\n"),
    ("gateway.certificate", "[gateway]\ncertificate = \"more\"\ncertificate_key = \"more\"\n"),
    ("gateway.certificate_key", "[gateway]\ncertificate = \"more\"\ncertificate_key = \"more\"\n"),
    ("serve.certificate", "[serve]\ncertificate = \"more\"\ncertificate_key = \"more\"\n"),
    ("serve.certificate_key", "[serve]\ncertificate = \"more\"\ncertificate_key = \"more\"\n"),
    ("serve.listen", "[serve]\nlisten = \"127.0.0.1:9\"\n"),
    ("serve.address", "[serve]\naddress = \"http://more\"\n"),
    ("serve.hosts", "[serve]\nhosts = [\"more\"]\n"),
    ("serve.origins", "[serve]\norigins = [\"http://more\"]\n"),
    ("serve.token.name", "[[serve.token]]\nname = \"more\"\nvalue = \"env:SOME_TOKEN\"\n"),
    ("serve.token.value", "[[serve.token]]\nname = \"more\"\nvalue = \"env:SOME_TOKEN\"\n"),
    ("plugin.path", "[[plugin]]\npath = \"more\"\n"),
    ("plugin.enabled", "[[plugin]]\npath = \"more\"\nenabled = false\n"),
    ("plugin.settings.*", "[[plugin]]\npath = \"more\"\nsettings = { a = 1 }\n"),
    (
        "plugin.sha256",
        "[[plugin]]\npath = \"more\"\nsha256 = \"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"\n",
    ),
    ("prompt.system_file", "[prompt]\nsystem_file = \"system.txt\"\n"),
    ("provider.api_key_env", "[provider]\napi_key_env = \"SOME_VARIABLE\"\n"),
    ("provider.base_url", "[provider]\nbase_url = \"http://127.0.0.1:9\"\n"),
    ("provider.headers.*", "[provider]\nheaders = { x-more = \"more\" }\n"),
    ("provider.recording", "[provider]\nkind = \"recording\"\nrecording = \"more\"\n"),
    ("provider.kind", "[provider]\nkind = \"openai-chat\"\n"),
    ("rules.required", "[rules]\nrequired = [\"more\"]\n"),
    ("state.allow_plaintext_password", "[state]\nbackend = \"redis\"\nallow_plaintext_password = true\n"),
    ("state.ca", "[state]\nbackend = \"redis\"\nca = \"more\"\n"),
    ("state.certificate", "[state]\nbackend = \"redis\"\ncertificate = \"more\"\ncertificate_key = \"key\"\n"),
    ("state.certificate_key", "[state]\nbackend = \"redis\"\ncertificate = \"cert\"\ncertificate_key = \"more\"\n"),
    ("state.password", "[state]\nbackend = \"redis\"\npassword = \"env:SOME_VARIABLE\"\n"),
    ("state.user", "[state]\nbackend = \"redis\"\nuser = \"more\"\npassword = \"env:SOME_VARIABLE\"\n"),
    ("state.backend", "[state]\nbackend = \"memory\"\n"),
    ("state.folder", "[state]\nbackend = \"disk\"\nfolder = \"more\"\n"),
    ("state.url_env", "[state]\nbackend = \"redis\"\nurl_env = \"SOME_VARIABLE\"\n"),
    ("tools.permission.*", "[tools.permission]\nshell = \"allow\"\n"),
    ("state.lease_s", "[state]\nbackend = \"redis\"\nlease_s = 9\n"),
    ("transcript.backend", "[state]\nbackend = \"redis\"\n[transcript]\nbackend = \"redis\"\n"),
    ("transcript.enabled", "[transcript]\nenabled = false\n"),
];

/// Tables that count in a workspace that nobody trusts, within bounds: `error_project.rs`, `event_layers.rs` and `thread_limits.rs` walk their
/// keys.
const BOUNDED: [&str; 5] = ["errors", "events", "limits.approval", "limits.price", "limits.session"];

/// All keys of a schema, sorted, but for those of [`BOUNDED`].
pub(crate) fn all(schema: &str) -> Vec<Key> {
    let schema: Value = serde_json::from_str(schema).unwrap();
    let mut keys = Vec::new();
    walk(&schema, &schema, &mut Vec::new(), &mut keys);
    keys.sort_by(|a, b| a.path.cmp(&b.path));
    keys.dedup_by(|a, b| a.path == b.path);
    for (path, _) in FILES {
        assert!(keys.iter().any(|key| key.path == path), "the schema has no key `{path}`");
    }
    keys
}

fn target<'s>(root: &'s Value, of: &'s Value) -> &'s Value {
    let reference = of["$ref"].as_str().or_else(|| of["allOf"][0]["$ref"].as_str());
    reference.and_then(|path| root.pointer(path.strip_prefix('#')?)).unwrap_or(of)
}

/// `path`: names of tables, with `[]` in front of one of a list.
fn walk(root: &Value, of: &Value, path: &mut Vec<String>, keys: &mut Vec<Key>) {
    if BOUNDED.contains(&path.join(".").as_str()) {
        return;
    }
    let default = &of["default"];
    let schema = target(root, of);
    let inner = |name: &str| target(root, &schema[name]);
    if let Some(properties) = schema["properties"].as_object() {
        for (name, of) in properties {
            path.push(name.clone());
            walk(root, of, path, keys);
            path.pop();
        }
    } else if inner("items")["properties"].is_object() {
        let list = path.pop().unwrap();
        path.push(format!("[]{list}"));
        walk(root, inner("items"), path, keys);
        path.pop();
        path.push(list);
    } else if schema["additionalProperties"].is_object() {
        path.push("*".to_owned());
        keys.push(key(root, inner("additionalProperties"), &Value::Null, path));
        path.pop();
    } else {
        keys.push(key(root, schema, default, path));
    }
}

fn key(root: &Value, schema: &Value, default: &Value, path: &[String]) -> Key {
    let dotted = path.join(".").replace("[]", "");
    if let Some((_, file)) = FILES.iter().find(|(known, _)| *known == dotted) {
        return Key { path: dotted, file: (*file).to_owned() };
    }
    let value = value(root, schema, default)
        .unwrap_or_else(|| panic!("no value can be made for `{dotted}`: give it a file in FILES"));
    let file = match path {
        [list, rest @ ..] if list.starts_with("[]") => {
            format!("[[{}]]\npath = \"more\"\n{} = {value}\n", &list[2..], rest.join("."))
        }
        [tables @ .., last] => format!("[{}]\n{last} = {value}\n", tables.join(".")),
        [] => unreachable!("a key has a name"),
    };
    Key { path: dotted, file }
}

/// A value that the key can have and that is not its default, as TOML.
fn value(root: &Value, schema: &Value, default: &Value) -> Option<String> {
    let choices = |schema: &Value| -> Vec<Value> {
        let of = schema["oneOf"].as_array().into_iter().flatten().map(|one| one["const"].clone());
        of.chain(schema["enum"].as_array().into_iter().flatten().cloned()).collect()
    };
    // The default of an enumeration is its first value where the schema does not say.
    let other = |choices: Vec<Value>| choices.into_iter().rfind(|one| one != default).map(|one| one.to_string());
    match schema["type"].as_str() {
        Some("boolean") => Some((default != &Value::Bool(true)).to_string()),
        Some("integer") => {
            let least = schema["minimum"].as_i64().unwrap_or(0);
            Some(if default == &Value::from(least) { least + 1 } else { least }.to_string())
        }
        Some("array") => {
            let item = target(root, &schema["items"]);
            let of = choices(item).first().map_or_else(|| "\"more\"".to_owned(), ToString::to_string);
            Some(format!("[{of}]"))
        }
        Some("string") if choices(schema).is_empty() => Some("\"more\"".to_owned()),
        _ => other(choices(schema)),
    }
}
