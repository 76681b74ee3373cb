//! Merges layers of configuration: what a higher layer gives replaces or extends what a lower one gave.

use serde_json::Value;

/// Puts `over` on top of `base`. Tables are merged by key; lists of which every item is a table with a string `id`, by id: a known id
/// is merged in its place, a new one is added at the end. Anything else is replaced.
pub(crate) fn merge(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                merge(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (Value::Array(base), Value::Array(over)) if have_ids(base) && have_ids(&over) && !over.is_empty() => {
            for value in over {
                match base.iter_mut().find(|known| known.get("id") == value.get("id")) {
                    Some(known) => merge(known, value),
                    None => base.push(value),
                }
            }
        }
        (base, over) => *base = over,
    }
}

fn have_ids(list: &[Value]) -> bool {
    list.iter().all(|item| item.get("id").is_some_and(Value::is_string))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::merge;

    #[test]
    fn tables_merge_by_key_and_lists_with_ids_by_id() {
        let cases = [
            (json!({"a": {"b": 1, "c": 2}}), json!({"a": {"c": 3}, "d": 4}), json!({"a": {"b": 1, "c": 3}, "d": 4})),
            (json!({"a": [1, 2]}), json!({"a": [3]}), json!({"a": [3]})),
            (json!({"a": [1]}), json!({"a": []}), json!({"a": []})),
            (json!({"a": {"b": 1}}), json!({"a": 2}), json!({"a": 2})),
            (
                json!([{"id": "x", "n": 1, "m": 2}, {"id": "y"}]),
                json!([{"id": "z"}, {"id": "x", "n": 5}]),
                json!([{"id": "x", "n": 5, "m": 2}, {"id": "y"}, {"id": "z"}]),
            ),
            // Without an id in each item, there is nothing to merge by.
            (json!([{"id": "x"}, {"n": 1}]), json!([{"id": "x", "n": 5}]), json!([{"id": "x", "n": 5}])),
            (json!([{"id": "x"}]), json!([{"n": 5}]), json!([{"n": 5}])),
            (json!([{"id": "x"}]), json!([]), json!([])),
        ];
        for (mut base, over, expected) in cases {
            merge(&mut base, over.clone());
            assert_eq!(base, expected, "{over}");
        }
    }
}
