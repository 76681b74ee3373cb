//! The rows at the bottom of the terminal: the tools that run, what waits, what is asked, the status, and the input.

use std::time::Instant;

use tidegate::chat::ChatMode;

use super::app::App;
use super::input::Shown;
use crate::print::shorten;
use crate::screen::live::Rows;
use crate::screen::terminal;
use crate::screen::wrap::wrapped;
use crate::style::{self, err};

/// Waiting messages that are shown.
const WAITING: usize = 3;

impl App {
    /// The rows at a terminal of so many columns and rows, at a time.
    pub(super) fn rows(&self, (columns, height): (usize, usize), now: Instant) -> Rows {
        let question = self.question_rows(columns, now);
        let status = self.status_row();
        let prompt = self.asking.as_ref().map_or("› ", |asking| asking.prompt());
        let Shown { rows: input, cursor } = self.input.shown(prompt, columns);
        // Where there is no place for all, the question and the input are what matters.
        let left = height.saturating_sub(1 + question.len() + input.len());
        let mut rows = self.running.rows(columns, now);
        rows.extend(self.waiting_rows(columns));
        rows.truncate(left.saturating_sub(1));
        rows.extend(question);
        rows.extend((left > 0).then_some(status));
        rows.extend(self.list_rows(columns, self.list_height(height, rows.len() + input.len())));
        let above = rows.len();
        rows.extend(input);
        Rows { rows, cursor: (above + cursor.0, cursor.1) }
    }

    fn waiting_rows(&self, columns: usize) -> Vec<String> {
        let (waiting, is_running) = (self.waiting(), self.is_running());
        let mut rows: Vec<_> = waiting
            .iter()
            .take(WAITING)
            .map(|one| err(style::DIM, &format!("  {}: {}", one.label(is_running), shorten(&one.text, columns))))
            .collect();
        if waiting.len() > WAITING {
            rows.push(err(style::DIM, &format!("  and {} more", waiting.len() - WAITING)));
        }
        rows
    }

    pub(super) fn question_rows(&self, columns: usize, now: Instant) -> Vec<String> {
        let Some(asking) = &self.asking else { return Vec::new() };
        let (head, answers) = asking.line(now, !self.input.is_empty(), self.more_questions());
        laid_out(&head, &answers, columns)
    }

    /// The most rows that the line of the question takes while nothing is written.
    pub(super) fn most_question_rows(&self, columns: usize) -> usize {
        let Some(asking) = &self.asking else { return 0 };
        let (head, mut answers) = (asking.line(Instant::now(), false, 0).0, asking.keys());
        answers.push(format!("({} more)", self.more_questions()));
        laid_out(&head, &answers, columns).len()
    }

    /// The whole question, and the rows below it, while it is on the screen.
    pub(super) fn page(
        &mut self,
        (columns, height): (usize, usize),
        now: Instant,
    ) -> Option<(Vec<String>, Vec<String>)> {
        if self.asking.as_ref()?.pager.as_ref()?.columns != columns {
            self.view_question();
        }
        let asking = self.asking.as_mut()?;
        let (head, parts) = asking.page_line(now);
        let most = height.saturating_sub(laid_out(&head, &parts, columns).len());
        let lines = asking.pager.as_mut()?.rows(most).to_vec();
        // Where it is, is another place now.
        let (head, parts) = asking.page_line(now);
        let mut below = laid_out(&head, &parts, columns);
        below.truncate(height.saturating_sub(lines.len()));
        Some((lines, below))
    }

    fn more_questions(&self) -> usize {
        self.chat.snapshot().questions.pending().count().saturating_sub(1)
    }

    fn status_row(&self) -> String {
        let doing = match self.chat.snapshot().mode {
            ChatMode::ConfirmingTool => "waits for you",
            ChatMode::Streaming if self.asking.is_some() => "waits for you",
            ChatMode::Streaming if self.status.is_thinking() => "thinking · Esc interrupts · Ctrl+C cancels",
            ChatMode::Streaming => "working · Esc interrupts · Ctrl+C cancels",
            _ if self.is_running() => "working",
            _ => "/help",
        };
        err(style::DIM, &format!("{} · {doing}", self.status.line(&self.session)))
    }
}

/// A line of a question in rows. Parts stay whole where they fit, so that no key is separated from its meaning.
fn laid_out(head: &str, parts: &[String], columns: usize) -> Vec<String> {
    let most = columns.saturating_sub(1).max(1);
    let (mut rows, mut used) = (Vec::new(), most);
    for (index, part) in std::iter::once(head).chain(parts.iter().map(String::as_str)).enumerate() {
        let gap = if index < 2 { " " } else { "  " };
        let styled = |text: &str| if index == 0 { err(style::STRONG, text) } else { text.to_owned() };
        let width = terminal::width(part);
        match rows.last_mut() {
            Some(row) if used + gap.len() + width <= most => {
                *row = format!("{row}{gap}{}", styled(part));
                used += gap.len() + width;
            }
            _ => {
                let parts = wrapped(part, most);
                used = parts.last().map_or(0, |last| terminal::width(last));
                rows.extend(parts.iter().map(|part| styled(part.trim_end())));
            }
        }
    }
    rows
}
