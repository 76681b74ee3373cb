//! Writes new arguments into the frames of the Responses API, each of which can contain all of them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::input;
use super::write::number;
use crate::calls::{self, CALLS};
use crate::frame::Frame;

/// The items that are calls, in the order of their arrival.
#[derive(Debug, Default)]
pub(super) struct Items(Vec<Item>);

#[derive(Debug)]
struct Item {
    /// Its own id and that of its call, where there are any.
    ids: [String; 2],
    index: Option<u64>,
}

impl Items {
    /// Changes a frame. `given`: the calls whose arguments were sent.
    pub(super) fn edit(&mut self, frame: &mut Frame, new: &[Option<&str>], given: &mut BTreeSet<usize>) {
        let kind = frame.kind().to_owned();
        let Some(data) = &mut frame.data else { return };
        let is_changed = match kind.as_str() {
            "response.output_item.added" | "response.output_item.done" => {
                if !is_call(&data["item"]) {
                    return;
                }
                let at = if kind.ends_with("added") { self.add(data) } else { self.at(data) };
                new.get(at).copied().flatten().is_some_and(|new| give(&mut data["item"], new))
            }
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                let at = self.at(data);
                let Some(new) = new.get(at).copied().flatten() else { return };
                if !given.insert(at) {
                    return frame.raw.clear();
                }
                data["delta"] = if kind.contains("custom") { input(new) } else { Value::from(new) };
                true
            }
            "response.function_call_arguments.done" | "response.custom_tool_call_input.done" => {
                let Some(new) = new.get(self.at(data)).copied().flatten() else { return };
                match kind.contains("custom") {
                    true => data["input"] = input(new),
                    false => data["arguments"] = Value::from(new),
                }
                true
            }
            _ => data.pointer_mut("/response/output").is_some_and(|output| self.output(output, new)),
        };
        if is_changed {
            frame.write();
        }
    }

    /// Changes the items at the end of a response; some servers give them other ids there.
    fn output(&self, output: &mut Value, new: &[Option<&str>]) -> bool {
        let (mut told, mut is_changed) = (BTreeSet::new(), false);
        for (number, item) in output.as_array_mut().into_iter().flatten().filter(|item| is_call(item)).enumerate() {
            let ids = ids(item);
            let same = |at: &usize| self.0.get(*at).is_some_and(|known| known.is_named(&ids));
            let mut all = (0..new.len()).filter(|at| !told.contains(at));
            let at = all.clone().find(same).or_else(|| all.next()).unwrap_or(number);
            told.insert(at);
            is_changed |= new.get(at).copied().flatten().is_some_and(|new| give(item, new));
        }
        is_changed
    }

    fn add(&mut self, data: &Value) -> usize {
        let [own, call] = ids(&data["item"]);
        let own = if own.is_empty() { data["item_id"].as_str().unwrap_or_default().to_owned() } else { own };
        self.0.push(Item { ids: [own, call], index: number(&data["output_index"]) });
        self.0.len() - 1
    }

    /// Returns the item that an event refers to: by id, else by index, else the latest one.
    fn at(&mut self, data: &Value) -> usize {
        let [own, call] = ids(&data["item"]);
        let names = [data["item_id"].as_str().unwrap_or_default().to_owned(), own, call];
        let by_id = self.0.iter().rposition(|item| item.is_named(&names));
        let index = number(&data["output_index"]);
        let is_anonymous = names.iter().all(String::is_empty);
        let found = by_id.or_else(|| match index {
            Some(index) => self.0.iter().rposition(|item| item.index == Some(index)),
            None => self.0.iter().rposition(|item| is_anonymous || item.index.is_none()),
        });
        found.unwrap_or_else(|| self.add(data))
    }
}

impl Item {
    fn is_named(&self, names: &[String]) -> bool {
        names.iter().any(|name| !name.is_empty() && self.ids.contains(name))
    }
}

fn is_call(item: &Value) -> bool {
    CALLS.iter().any(|kind| item["type"] == *kind)
}

fn ids(item: &Value) -> [String; 2] {
    ["id", "call_id"].map(|key| item[key].as_str().unwrap_or_default().to_owned())
}

/// Replaces the arguments of an item, if it has any. Returns whether it does.
fn give(item: &mut Value, new: &str) -> bool {
    if item["type"] == "custom_tool_call" {
        let is_any = item["input"].as_str().is_some_and(|input| !input.is_empty());
        if is_any {
            item["input"] = input(new);
        }
        return is_any;
    }
    let keys = calls::members(item);
    let Ok(mut value) = serde_json::from_str::<Value>(new) else { return false };
    match keys.as_slice() {
        [] => return false,
        [key] if item[*key].is_string() => {
            if item[*key] == "" {
                return false;
            }
            item[*key] = Value::from(new);
        }
        [key] if !item[*key].is_array() => item[*key] = value,
        // Callbacks get all of them as one object.
        keys => keys.iter().for_each(|key| item[*key] = value.get_mut(*key).map(Value::take).unwrap_or_default()),
    }
    true
}
