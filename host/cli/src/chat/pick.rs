//! Has a session chosen before a chat begins.

use std::time::Instant;

use super::input::{Input, Shown};
use super::list::{Item, List};
use super::until;
use crate::ending::Ending;
use crate::exit::Failure;
use crate::screen::keys::{Key, Keys};
use crate::screen::live::{self, Live, Rows};
use crate::screen::terminal;
use crate::style::{self, err};

const PROMPT: &str = "session: ";

/// Returns the chosen item; `None`: the user wants none of them.
pub(super) async fn one_of(
    items: &[Item],
    keys: &mut Keys,
    live: &Live,
    ending: &Ending,
) -> Result<Option<String>, Failure> {
    let (mut input, mut list) = (Input::default(), List::of(items, "", false));
    loop {
        live.draw(&rows(&list, &input, terminal::size()))?;
        let key = tokio::select! {
            (key, _) = keys.next() => key,
            () = until(live::held_until().filter(|until| *until > Instant::now())) => continue,
            _reason = ending.requested() => return Ok(None),
        };
        match key {
            Key::Gone(why) => return Err(Failure::late(format_args!("keys cannot be read any more: {why}"))),
            Key::Enter => {
                if let Some(chosen) = list.chosen() {
                    return Ok(Some(chosen.value.clone()));
                }
            }
            Key::Esc | Key::Ctrl('c' | 'd') => return Ok(None),
            Key::Up | Key::Ctrl('p') => list.go(false),
            Key::Down | Key::Ctrl('n') => list.go(true),
            key => {
                if input.key(&key) {
                    list = List::of(items, input.text().trim(), false);
                }
            }
        }
    }
}

fn rows(list: &List, input: &Input, (columns, height): (usize, usize)) -> Rows {
    let Shown { rows: typed, cursor } = input.shown(PROMPT, columns);
    let mut rows = list.rows(columns, height.saturating_sub(typed.len() + 2), true);
    let keys = if rows.is_empty() { "nothing matches  Esc: none" } else { "Enter: take it  ↑↓: choose  Esc: none" };
    rows.push(err(style::DIM, &format!("  {keys}")));
    let above = rows.len();
    rows.extend(typed);
    Rows { rows, cursor: (above + cursor.0, cursor.1) }
}
