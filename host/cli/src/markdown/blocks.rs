//! The blocks of a text as rows, and which of the rows cannot change any more.

mod settled;

use std::ops::Range;

use anstyle::{Effects, Style};
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::code::{self, Highlighter};
use super::inline::{Brackets, Inline, undecided};
use super::look::{self, CODE, DIM, EMPHASIS, LINK, Look, PLAIN, STRONG, STRUCK};
use super::row::Row;
use super::table::Table;
use crate::screen::terminal;

/// The fewest columns of a text, however deep it is.
const MIN_COLUMNS: usize = 10;
/// The most columns of a horizontal rule.
const MAX_RULE: usize = 60;

/// The rows of a text.
#[derive(Debug, Default)]
pub(super) struct Rendered {
    pub(super) rows: Vec<Row>,
    /// The number of rows that no continuation of the text can change.
    pub(super) settled: usize,
    /// The start of the last block.
    pub(super) last: usize,
    /// Of a text that ends with a line end: the bytes of the blocks that are complete, and the number of their rows.
    pub(super) complete: usize,
    pub(super) rows_complete: usize,
    /// The first line of the code block that the text ends in, without its line end.
    pub(super) fence: Option<Range<usize>>,
}

/// Renders a text. `is_first`: nothing is before it.
pub(super) fn render(text: &str, look: Look, is_first: bool, highlighter: &mut Highlighter) -> Rendered {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let parser = Parser::new_ext(text, options);
    let mut definitions: Vec<_> = parser.reference_definitions().iter().map(|(_, one)| one.span.clone()).collect();
    definitions.sort_by_key(|span| std::cmp::Reverse(span.start));
    let mut blocks = Blocks {
        text,
        look,
        is_first,
        highlighter,
        definitions,
        brackets: Brackets::default(),
        rows: Vec::new(),
        ends: Vec::new(),
        containers: Vec::new(),
        numbers: Vec::new(),
        inline: None,
        effects: Vec::new(),
        inline_start: None,
        links: Vec::new(),
        table: None,
        code: None,
        html: None,
        leaf: Leaf::None,
        start: 0,
        before: 0,
        undecided: None,
        decided: None,
        done: 0,
        top: (0, 0),
        depth: 0,
        is_nested: false,
    };
    for (event, range) in parser.into_offset_iter() {
        blocks.event(event, range);
    }
    blocks.end()
}

/// The block that has the last text.
#[derive(Clone, Debug)]
enum Leaf {
    None,
    Paragraph,
    Code {
        /// Of a fenced block: its first line, until the last one is there.
        fence: Option<Range<usize>>,
        is_closed: bool,
    },
    /// A heading or a rule, which ends with its line.
    Line,
    /// A table, or HTML.
    Other,
}

/// A quote or an item of a list: what its first row begins with, and what the others do.
#[derive(Debug)]
struct Container {
    first: Option<(String, Style)>,
    rest: (String, Style),
}

/// A code block while its text is read.
#[derive(Debug)]
struct Code {
    start: usize,
    fence: Option<Range<usize>>,
    /// Its lines, each with its end in the source.
    lines: Vec<(String, usize)>,
}

#[derive(Debug)]
struct Blocks<'t> {
    text: &'t str,
    look: Look,
    is_first: bool,
    highlighter: &'t mut Highlighter,
    /// Definitions of links that were not reached, the last first.
    definitions: Vec<Range<usize>>,
    brackets: Brackets,
    rows: Vec<Row>,
    /// The end of each row in the text.
    ends: Vec<usize>,
    containers: Vec<Container>,
    /// The next number of each list around, where its items have numbers.
    numbers: Vec<Option<u64>>,
    inline: Option<Inline>,
    /// The combined effects of all surrounding emphasis, links and headings.
    effects: Vec<Effects>,
    /// The start of the outermost emphasis or link around.
    inline_start: Option<usize>,
    /// Links around: where each leads, and where its text begins.
    links: Vec<(String, usize)>,
    table: Option<Table>,
    code: Option<Code>,
    html: Option<String>,
    leaf: Leaf,
    /// Its start, and the rows before it.
    start: usize,
    before: usize,
    undecided: Option<usize>,
    /// The number of rows of the text before that.
    decided: Option<usize>,
    /// The end of the last text that has rows.
    done: usize,
    /// The start of the last block that is in no other, and the rows before it.
    top: (usize, usize),
    /// Quotes and lists around.
    depth: usize,
    /// The last block is in another.
    is_nested: bool,
}

impl<'t> Blocks<'t> {
    fn event(&mut self, event: Event<'_>, range: Range<usize>) {
        match event {
            Event::Start(tag) => self.open(tag, range),
            Event::End(tag) => self.close(tag, &range),
            Event::Text(text) if self.code.is_some() => self.code_text(&text, range),
            // Its indentation is text.
            Event::Html(text) | Event::Text(text) if self.html.is_some() => {
                self.html.get_or_insert_default().push_str(&text);
            }
            Event::Text(text) => {
                // What is in an emphasis or a link can become the end of it.
                let place = |place| self.inline_start.unwrap_or(place);
                let found = || undecided(self.text, range.clone(), &self.brackets).map(place);
                self.undecided = self.undecided.or_else(found);
                self.push(&text, range);
            }
            Event::InlineHtml(text) | Event::Html(text) => self.push(&text, range),
            Event::Code(text) if self.look.is_styled => {
                self.styled(&text, self.style().fg_color(CODE.get_fg_color()), range);
            }
            Event::Code(_) => self.push(self.source(&range), range.clone()),
            Event::SoftBreak | Event::HardBreak => {
                // A `\\` is text again where the next line turns out to be no text.
                let is_mark = self.source(&range).starts_with('\\') && !self.text[range.end..].contains('\n');
                self.undecided = self.undecided.or(is_mark.then_some(range.start));
                if let Some(inline) = &mut self.inline {
                    inline.end_line(range);
                }
            }
            Event::TaskListMarker(done) => self.push(if done { "[x] " } else { "[ ] " }, range),
            Event::Rule => {
                self.block(&range);
                self.begin(Leaf::Line, range.start);
                let width = self.columns().min(MAX_RULE);
                let mut row = Row::default();
                row.push(&if self.look.is_styled { "─".repeat(width) } else { "---".to_owned() }, DIM);
                self.row(&row, range.end);
                self.done = self.trimmed(range.end);
            }
            // They are not enabled.
            Event::FootnoteReference(_) | Event::InlineMath(_) | Event::DisplayMath(_) => {
                self.push(self.source(&range), range.clone());
            }
        }
    }

    fn open(&mut self, tag: Tag<'_>, range: Range<usize>) {
        match tag {
            Tag::Paragraph => self.paragraph(&range),
            Tag::Heading { level, .. } => self.heading(level, &range),
            Tag::BlockQuote(_) => {
                self.block(&range);
                self.depth += 1;
                self.containers.push(Container { first: None, rest: ("│ ".to_owned(), DIM) });
            }
            Tag::List(first) => {
                self.block(&range);
                self.depth += 1;
                self.numbers.push(first);
            }
            Tag::Item => self.item(&range),
            Tag::CodeBlock(kind) => {
                self.block(&range);
                let end = self.text[range.start..].find('\n').map_or(self.text.len(), |end| range.start + end);
                let fence = matches!(kind, CodeBlockKind::Fenced(_)).then_some(range.start..end);
                self.code = Some(Code { start: range.start, fence, lines: Vec::new() });
            }
            Tag::HtmlBlock => {
                self.block(&range);
                self.html = Some(String::new());
                self.begin(Leaf::Other, range.start);
            }
            Tag::Table(alignments) => {
                self.block(&range);
                self.begin(Leaf::Other, range.start);
                self.table = Some(Table::new(alignments));
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.begin_row();
                }
            }
            Tag::TableCell => self.inline = Some(Inline::new(self.look)),
            Tag::Emphasis => self.mark(EMPHASIS, &range, true),
            Tag::Strong => self.mark(STRONG, &range, true),
            Tag::Strikethrough => self.mark(STRUCK, &range, true),
            Tag::Link { dest_url, title, .. } => self.link("", &dest_url, &title, &range),
            Tag::Image { dest_url, title, .. } => self.link("image: ", &dest_url, &title, &range),
            // They are not enabled.
            _ => {}
        }
    }

    fn close(&mut self, tag: TagEnd, range: &Range<usize>) {
        match tag {
            TagEnd::Paragraph | TagEnd::Heading(_) => {
                self.flush();
                self.effects.clear();
                self.done = self.trimmed(range.end);
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.containers.pop();
                self.depth -= 1;
            }
            TagEnd::List(_) => {
                self.numbers.pop();
                self.depth -= 1;
            }
            TagEnd::Item => {
                self.flush();
                if self.containers.last().is_some_and(|item| item.first.is_some()) {
                    self.row(&Row::default(), self.trimmed(range.end));
                    self.done = self.trimmed(range.end);
                }
                self.containers.pop();
            }
            TagEnd::CodeBlock => self.code_end(range),
            TagEnd::HtmlBlock => {
                let html = self.html.take().unwrap_or_default();
                self.literal(&html, range);
                self.done = self.trimmed(range.end);
            }
            TagEnd::TableCell => {
                if let (Some(table), Some(cell)) = (&mut self.table, self.inline.take()) {
                    table.cell(cell);
                }
            }
            TagEnd::Table => {
                let rows = self.table.take().map(|table| table.rows(self.columns())).unwrap_or_default();
                rows.into_iter().for_each(|row| self.row(&row, range.end));
                self.done = self.trimmed(range.end);
            }
            TagEnd::Emphasis => self.mark(EMPHASIS, range, false),
            TagEnd::Strong => self.mark(STRONG, range, false),
            TagEnd::Strikethrough => self.mark(STRUCK, range, false),
            TagEnd::Link | TagEnd::Image => self.link_end(range),
            _ => {}
        }
    }

    /// A block begins.
    fn block(&mut self, range: &Range<usize>) {
        self.flush();
        self.define(range.start);
        self.gap(range.start);
        self.is_nested = self.depth > 0;
        if !self.is_nested {
            let line = self.text[..range.start].rfind('\n').map_or(0, |end| end + 1);
            self.top = (line, self.rows.len());
        }
    }

    fn begin(&mut self, leaf: Leaf, start: usize) {
        (self.leaf, self.start, self.before) = (leaf, start, self.rows.len());
    }

    fn paragraph(&mut self, range: &Range<usize>) {
        self.block(range);
        self.begin(Leaf::Paragraph, range.start);
        self.undecided = None;
        self.inline = Some(Inline::new(self.look));
    }

    fn heading(&mut self, level: HeadingLevel, range: &Range<usize>) {
        self.paragraph(range);
        self.begin(Leaf::Line, range.start);
        self.effects.push(look::heading(level as usize));
        if !self.look.is_styled {
            let marks = format!("{} ", "#".repeat(level as usize));
            self.styled(&marks, PLAIN, range.start..range.start);
        }
    }

    fn item(&mut self, range: &Range<usize>) {
        self.flush();
        self.define(range.start);
        self.gap(range.start);
        // Its text, if there is any, is what can change.
        self.decided = None;
        self.is_nested = true;
        self.begin(Leaf::Paragraph, range.start);
        self.undecided = None;
        let mark = match self.numbers.last_mut() {
            Some(Some(number)) => {
                let close = self.text[range.start..].trim_start_matches(|c: char| c.is_ascii_digit()).chars().next();
                let mark = format!("{number}{} ", close.unwrap_or('.'));
                *number = number.saturating_add(1);
                mark
            }
            _ => format!("{} ", self.text[range.start..].chars().next().unwrap_or('-')),
        };
        let rest = " ".repeat(mark.len());
        self.containers.push(Container { first: Some((mark, DIM)), rest: (rest, PLAIN) });
    }

    /// Text of a block. An item can have some without a paragraph.
    fn push(&mut self, text: &str, source: Range<usize>) {
        self.styled(text, self.style(), source);
    }

    fn styled(&mut self, text: &str, style: Style, source: Range<usize>) {
        if self.inline.is_none() {
            self.gap(source.start);
            self.begin(Leaf::Paragraph, source.start);
            self.inline = Some(Inline::new(self.look));
        }
        self.done = self.done.max(source.end);
        if let Some(inline) = &mut self.inline {
            inline.push(text, style, source);
        }
    }

    fn style(&self) -> Style {
        PLAIN | self.all_effects()
    }

    fn all_effects(&self) -> Effects {
        self.effects.last().copied().unwrap_or_default()
    }

    /// Begins or ends text with effects. Without styles the marks stay.
    fn mark(&mut self, effects: Effects, range: &Range<usize>, begins: bool) {
        if begins {
            self.begin_inline(effects, range.start);
        } else {
            self.end_inline();
        }
        if !self.look.is_styled {
            let source = self.source(range);
            let first = source.chars().next().unwrap_or('*');
            let length = if effects == STRONG { 2 } else { source.chars().take(2).take_while(|c| *c == first).count() };
            let length = if effects == EMPHASIS { 1 } else { length };
            let mark = first.to_string().repeat(length);
            let at = if begins { range.start } else { range.end };
            self.styled(&mark, PLAIN, at..at);
        }
    }

    fn link(&mut self, kind: &str, url: &str, title: &str, range: &Range<usize>) {
        self.styled(kind, self.style(), range.start..range.start);
        let start = self.inline.as_ref().map_or(0, |inline| inline.text().len());
        let title = if title.is_empty() { String::new() } else { format!(" \"{title}\"") };
        self.links.push((format!("{url}{title}"), start));
        self.begin_inline(LINK, range.start);
    }

    fn begin_inline(&mut self, effects: Effects, start: usize) {
        self.inline_start = self.inline_start.filter(|_| !self.effects.is_empty()).or(Some(start));
        self.effects.push(self.all_effects() | effects);
    }

    fn end_inline(&mut self) {
        self.effects.pop();
        self.inline_start = self.inline_start.filter(|_| !self.effects.is_empty());
    }

    /// Where a link leads follows its text, unless that says so.
    fn link_end(&mut self, range: &Range<usize>) {
        self.end_inline();
        let Some((url, start)) = self.links.pop() else { return };
        let shown = self.inline.as_ref().and_then(|inline| inline.text().get(start..)).unwrap_or_default();
        if shown != url && url.strip_prefix("mailto:") != Some(shown) {
            let between = if shown.is_empty() { "" } else { " " };
            self.styled(&format!("{between}({url})"), self.style() | DIM.get_effects(), range.end..range.end);
        }
    }

    /// Lines as they are in the text.
    fn literal(&mut self, text: &str, range: &Range<usize>) {
        for line in text.lines() {
            let mut inline = Inline::new(self.look);
            inline.push(line, PLAIN, range.clone());
            inline.rows(Some(self.columns())).into_iter().for_each(|(row, _)| self.row(&row, range.end));
        }
    }

    fn code_text(&mut self, text: &str, range: Range<usize>) {
        let Some(code) = &mut self.code else { return };
        let is_exact = text.len() == range.len();
        let mut end = range.start;
        for line in text.split_inclusive('\n') {
            end += line.len();
            let end = if is_exact { end } else { range.end };
            match code.lines.last_mut().filter(|(last, _)| !last.ends_with('\n')) {
                Some(last) => {
                    last.0.push_str(line);
                    last.1 = end;
                }
                None => code.lines.push((line.to_owned(), end)),
            }
        }
    }

    fn code_end(&mut self, range: &Range<usize>) {
        let Some(Code { start, fence, lines }) = self.code.take() else { return };
        let before = self.rows.len();
        let source = fence.clone().map_or("", |fence| self.source(&fence));
        let mut place = self.highlighter.start(code::info(source), self.text[..start].trim().is_empty());
        if let Some(fence) = &fence {
            self.fence(source, fence.end + 1);
        }
        for (line, end) in lines {
            let (row, after) = self.highlighter.line(place, &line);
            place = after;
            self.row(&row, end);
        }
        let last = fence.as_ref().and_then(|fence| closing(source, self.text.get(fence.end + 1..range.end)?));
        if let Some(last) = last {
            self.fence(last, range.end);
        }
        let is_closed = last.is_some();
        self.leaf = Leaf::Code { fence: fence.filter(|_| !is_closed), is_closed };
        (self.start, self.before) = (start, before);
        self.done = self.trimmed(range.end).max(self.done);
    }

    /// The first or last line of a code block.
    fn fence(&mut self, line: &str, end: usize) {
        let mut row = Row::code();
        row.push(line.trim(), DIM);
        self.row(&row, end);
    }

    /// Ends the text of a paragraph, a heading or an item.
    fn flush(&mut self) {
        let Some(inline) = self.inline.take() else { return };
        let undecided = self.undecided.into_iter().chain(self.cell()).min();
        self.decided = undecided.map(|place| inline.count(place, self.columns()));
        for (row, end) in inline.rows(Some(self.columns())) {
            self.row(&row, end);
        }
    }

    /// Definitions of links before a place: what is written is seen.
    fn define(&mut self, before: usize) {
        while let Some(span) = self.definitions.pop_if(|span| span.start < before) {
            self.gap(span.start);
            self.is_nested = self.depth > 0;
            if !self.is_nested {
                self.top = (span.start, self.rows.len());
            }
            self.begin(Leaf::Other, span.start);
            self.literal(self.source(&span), &span);
            self.done = self.trimmed(span.end);
        }
    }

    /// A blank row, where the text has a blank line before the next block.
    fn gap(&mut self, start: usize) {
        let gap: Vec<_> = self.text.get(self.done..start).unwrap_or_default().split('\n').collect();
        let (from, to) = (usize::from(self.done > 0), gap.len().saturating_sub(1));
        let is_blank = |line: &&str| line.chars().all(|c| " \t>".contains(c));
        let is_start = self.is_first && self.rows.is_empty();
        if !is_start && gap.get(from..to).unwrap_or_default().iter().any(is_blank) {
            let mut row = Row::default();
            for container in self.prefixes().filter(|one| one.first.is_none()) {
                row.push(&container.rest.0, container.rest.1);
            }
            row.trim_end();
            self.rows.push(row);
            self.ends.push(start);
        }
        self.done = self.done.max(start);
    }

    /// Columns for a text.
    fn columns(&self) -> usize {
        let used: usize = self.prefixes().map(|one| terminal::width(&one.rest.0)).sum();
        self.look.columns.saturating_sub(used).max(MIN_COLUMNS.min(self.look.columns)).max(1)
    }

    /// The containers whose marks are shown: the text has half of the row at least.
    fn prefixes(&self) -> impl Iterator<Item = &Container> {
        let mut used = 0;
        self.containers.iter().take_while(move |one| {
            used += terminal::width(&one.rest.0);
            used <= self.look.columns / 2
        })
    }

    fn row(&mut self, content: &Row, end: usize) {
        let mut row = if content.is_code { Row::code() } else { Row::default() };
        for container in self.prefixes() {
            let (text, style) = container.first.as_ref().unwrap_or(&container.rest);
            row.push(text, *style);
        }
        self.containers.iter_mut().for_each(|one| one.first = None);
        row.extend(content.spans());
        if !row.is_code || content.spans().is_empty() {
            row.trim_end();
        }
        self.rows.push(row);
        self.ends.push(end);
    }

    fn source(&self, range: &Range<usize>) -> &'t str {
        self.text.get(range.clone()).unwrap_or_default()
    }

    fn trimmed(&self, end: usize) -> usize {
        self.text.get(..end).map_or(end, |text| text.trim_end().len())
    }
}

/// The last line of a code block, if it is there. `rest`: the block after its first line.
fn closing<'t>(fence: &str, rest: &'t str) -> Option<&'t str> {
    let mark = fence.trim().chars().next()?;
    let length = fence.trim().chars().take_while(|c| *c == mark).count();
    let last = rest.trim_end_matches('\n').rsplit('\n').next()?;
    let last = last.trim_matches([' ', '\t', '>']);
    (last.len() >= length && last.chars().all(|c| c == mark)).then_some(last)
}
