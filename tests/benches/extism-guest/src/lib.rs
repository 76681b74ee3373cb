//! Answers each callback with what it was given, as a plugin for Extism: JSON in, JSON out. `tests/guests/echo` is the same
//! extension for Tidegate.

use extism_pdk::{FnResult, Json, plugin_fn};
use serde::{Deserialize, Serialize};

/// What a callback answers.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Answer<T> {
    Replace(T),
    Content(T),
}

/// The keys of the inputs that an echo needs; the others are skipped.
#[derive(Deserialize)]
struct Text {
    text: String,
}

#[derive(Deserialize)]
struct Tag {
    content: String,
}

#[derive(Deserialize)]
struct Input {
    messages: Vec<Message>,
}

#[derive(Deserialize, Serialize)]
struct Message {
    id: String,
    role: Role,
    parts: Vec<Part>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum Role {
    System,
    User,
    Assistant,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum Part {
    Text(String),
}

#[plugin_fn]
pub fn on_plain_text(Json(input): Json<Text>) -> FnResult<Json<Answer<String>>> {
    Ok(Json(Answer::Replace(input.text)))
}

#[plugin_fn]
pub fn on_tag(Json(input): Json<Tag>) -> FnResult<Json<Answer<String>>> {
    Ok(Json(Answer::Content(input.content)))
}

#[plugin_fn]
pub fn on_input_messages(Json(input): Json<Input>) -> FnResult<Json<Answer<Vec<Message>>>> {
    Ok(Json(Answer::Replace(input.messages)))
}
