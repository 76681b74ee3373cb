//! Text of others as a person has to see it before deciding: nothing invisible is left in it.

/// The most combining marks on one character. More would be drawn over neighbouring lines.
pub const MAX_MARKS: u32 = 4;

/// Shows a tab in a text that is not escaped; a text that contains it itself is escaped.
const TAB: char = '⇥';

/// Returns a value in a form that hides nothing, such as a command that a person approves, and whether anything was escaped. Every invisible
/// character is escaped, and so are blanks that are not spaces and the characters for which `is_odd` returns true. The text and its shown
/// form are one to one: where anything was escaped, backslashes are doubled; otherwise a tab is shown as `⇥`.
///
/// ```
/// let (shown, is_escaped) = tidegate_flow::exact("ls\u{202e}", |_| false);
/// assert_eq!((shown.as_str(), is_escaped), ("ls\\u{202e}", true));
/// ```
pub fn exact(text: &str, is_odd: impl Fn(char) -> bool) -> (String, bool) {
    let mut marks = 0;
    let odd: Vec<bool> = text
        .chars()
        .map(|c| {
            marks = if is_mark(c) { marks + 1 } else { 0 };
            let hidden = !matches!(c, '\n' | '\t') && (is_hidden(c) || is_odd_blank(c));
            hidden || marks > MAX_MARKS || c == TAB || is_odd(c)
        })
        .collect();
    if !odd.contains(&true) {
        return (text.replace('\t', &TAB.to_string()), false);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for (c, odd) in text.chars().zip(odd) {
        match c {
            '\\' => out.push_str("\\\\"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if odd => out.extend(c.escape_unicode()),
            _ => out.push(c),
        }
    }
    (out, true)
}

/// Returns whether a character is invisible or acts on a terminal: controls, bidirectional controls, zero-width and filler
/// characters, tags, variation selectors, and code points that have no meaning of their own.
pub fn is_hidden(c: char) -> bool {
    let noncharacter = matches!(u32::from(c) & 0xffff, 0xfffe | 0xffff);
    noncharacter
        || matches!(c,
            '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{34f}' | '\u{61c}'
            | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{fdd0}'..='\u{fdef}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{13430}'..='\u{1343f}' | '\u{16fe4}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{10ffff}')
}

/// Returns whether a text has nothing that can be seen: it is empty, or consists of white space and of characters that [`is_hidden`] names.
///
/// ```
/// for (text, expected) in [("", true), (" \n\u{3000}", true), ("\u{200b}\u{feff}", true), ("\u{2800}", true), ("\u{200b}a", false)] {
///     assert_eq!(tidegate_flow::is_blank(text), expected, "{text:?}");
/// }
/// ```
pub fn is_blank(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || is_hidden(c) || is_odd_blank(c))
}

/// Returns whether a character is a combining mark, which is drawn over the character before it.
pub fn is_mark(c: char) -> bool {
    matches!(c,
        '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}'
        | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}')
}

/// Blank characters that a reader takes for an ordinary space, or for nothing.
fn is_odd_blank(c: char) -> bool {
    !matches!(c, ' ' | '\n' | '\t') && (c.is_whitespace() || c == '\u{2800}')
}
