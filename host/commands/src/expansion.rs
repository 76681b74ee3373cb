//! Walks through what a word or a redirection contains: substitutions, expressions, parameters and here-documents.

use shuck_ast::{
    BourneParameterExpansion, CommandSubstitutionSyntax, Heredoc, HeredocBodyPart, ParameterExpansion, ParameterOp,
    Redirect, RedirectKind, RedirectTarget, Span, Word as Syntax, WordPart,
};

use shuck_parser::parser::Parser;

use crate::walk::{Walk, script};

/// The delimiter of a here-document that is read alone.
const END_ALONE: &str = "END_OF_DOCUMENT_READ_ALONE";

impl<'a> Walk<'a> {
    pub(crate) fn redirect(&mut self, redirect: &Redirect) {
        let word = match &redirect.target {
            RedirectTarget::Word(word) => {
                let word = self.word(word);
                // Some shells expand the target of `>&` twice.
                if word.has_quoted_command() || word.is_split {
                    self.undecided("it has a command in the name of a file");
                }
                word.exact()
            }
            RedirectTarget::Heredoc(document) => {
                self.here_document(document);
                None
            }
        };
        let word = word.as_deref();
        match redirect.kind {
            _ if word == Some("/dev/null") => {}
            RedirectKind::DupOutput | RedirectKind::DupInput
                if word.is_some_and(|word| word == "-" || word.bytes().all(|byte| byte.is_ascii_digit())) => {}
            RedirectKind::Input | RedirectKind::DupInput => self.beyond("it takes its input from a file"),
            RedirectKind::HereDoc | RedirectKind::HereDocStrip | RedirectKind::HereString => {
                self.beyond("it passes text to a command");
            }
            RedirectKind::Output
            | RedirectKind::Clobber
            | RedirectKind::Append
            | RedirectKind::ReadWrite
            | RedirectKind::DupOutput
            | RedirectKind::OutputBoth => self.beyond("it writes to a file"),
        }
    }

    /// Walks through the expansions of a here-document. The parser takes the second one of a line for quoted, so that it is read again, alone.
    fn here_document(&mut self, document: &Heredoc) {
        let is_quoted = self.slice(document.delimiter.span).is_some_and(|written| written.contains(['\'', '"', '\\']));
        if is_quoted || document.body.mode.expands() {
            return document.body.parts.iter().for_each(|part| self.document(&part.kind, part.span));
        }
        let Some(text) = self.slice(document.body.span) else {
            return self.undecided("it has a here-document that cannot be found");
        };
        let source = format!(": <<{END_ALONE}\n{text}\n{END_ALONE}\n");
        let parsed = Parser::with_dialect(&source, self.dialect).parse();
        let statement = parsed.file.body.iter().next();
        let alone = statement.and_then(|statement| match &statement.redirects.first()?.target {
            RedirectTarget::Heredoc(document) if document.body.mode.expands() => Some(document.body.parts.as_slice()),
            _ => None,
        });
        let Some(parts) = alone.filter(|_| !text.contains(END_ALONE)) else {
            self.found.unread.push(text.to_owned());
            return self.undecided("it has a here-document that cannot be read");
        };
        let mut walk = Walk { source: &source, found: self.found, dialect: self.dialect, depth: self.depth };
        parts.iter().for_each(|part| walk.document(&part.kind, part.span));
    }

    fn document(&mut self, part: &HeredocBodyPart, span: Span) {
        match part {
            HeredocBodyPart::Literal(_) | HeredocBodyPart::Variable(_) => {}
            HeredocBodyPart::CommandSubstitution { syntax, .. } => self.substitution(*syntax, span),
            HeredocBodyPart::ArithmeticExpansion { expression_word_ast, .. } => {
                self.arithmetic(expression_word_ast, span);
            }
            HeredocBodyPart::Parameter(parameter) => self.within(span, |walk| walk.parameter(parameter)),
        }
    }

    /// Walks through an expression, unless a shell would read `$((` as a substitution that begins with a group.
    fn arithmetic(&mut self, expression: &Syntax, span: Span) {
        let is_expression = |text: &str| match text.strip_prefix("$((").and_then(|text| text.strip_suffix("))")) {
            Some(inner) => is_balanced(inner) && !inner.contains(['\n', ';', '#', '\'', '"']),
            // The old form.
            None => text.starts_with("$["),
        };
        if !self.slice(span).is_some_and(is_expression) {
            self.undecided("it has an expression that can be a command");
        }
        self.within(span, |walk| drop(walk.word(expression)));
    }

    /// Reads the commands of a substitution on their own: errors in it and a wrong end of it come to light then.
    fn substitution(&mut self, syntax: CommandSubstitutionSyntax, span: Span) {
        let Some(text) = self.slice(span) else { return self.undecided("it has a substitution that cannot be found") };
        let inner = match syntax {
            CommandSubstitutionSyntax::DollarParen => text.get(2..).filter(|_| text.starts_with(['$', '<', '>'])),
            _ => text.strip_prefix('`'),
        };
        let Some(inner) = inner.and_then(|inner| inner.strip_suffix([')', '`'])) else {
            self.found.unread.push(text.to_owned());
            return self.undecided("it has a substitution whose text is not plain");
        };
        if syntax != CommandSubstitutionSyntax::DollarParen && inner.contains('\\') {
            // In backquotes a backslash quotes for two readings: another substitution can be inside.
            self.undecided("it has a backslash in backquotes");
            return script(&without_backslashes(inner), self.dialect, self.depth + 1, self.found);
        }
        script(inner, self.dialect, self.depth + 1, self.found);
    }

    /// Walks through what an expansion contains.
    pub(crate) fn expansion(&mut self, part: &WordPart, span: Span) {
        match part {
            WordPart::CommandSubstitution { syntax, .. } => self.substitution(*syntax, span),
            WordPart::ProcessSubstitution { .. } => {
                self.beyond("it passes a command as a file");
                self.substitution(CommandSubstitutionSyntax::DollarParen, span);
            }
            WordPart::ArithmeticExpansion { expression_word_ast, .. } => self.arithmetic(expression_word_ast, span),
            WordPart::Parameter(parameter) => self.within(span, |walk| walk.parameter(parameter)),
            WordPart::ParameterExpansion { operand_word_ast, operator, .. } => self.within(span, |walk| {
                walk.words(operand_word_ast.as_deref());
                walk.operator(operator);
            }),
            _ => self.text(span),
        }
    }

    fn parameter(&mut self, parameter: &ParameterExpansion) {
        match parameter.bourne() {
            Some(BourneParameterExpansion::Operation { operator, operand_word_ast, .. }) => {
                self.words(operand_word_ast.as_deref());
                self.operator(operator);
            }
            Some(BourneParameterExpansion::Slice { offset_word_ast, length_word_ast, .. }) => {
                self.words([&**offset_word_ast].into_iter().chain(length_word_ast.as_deref()));
            }
            _ => {}
        }
    }

    fn operator(&mut self, operator: &ParameterOp) {
        self.words(operator.replacement_word_ast());
    }

    /// Walks through an expansion that can have commands where `walk` does not look.
    fn within(&mut self, span: Span, walk: impl FnOnce(&mut Self)) {
        let before = self.found.simple.len();
        walk(self);
        if self.found.simple.len() == before {
            self.text(span);
        }
    }

    /// Text that is not walked through: it must not contain a command.
    pub(crate) fn text(&mut self, span: Span) {
        let has_command =
            |text: &str| ["$(", "`", "<(", ">("].iter().any(|mark| text.replace("$((", "").contains(mark));
        if self.slice(span).is_none_or(has_command) {
            self.undecided("it has a command in an expression");
        }
    }

    pub(crate) fn slice(&self, span: Span) -> Option<&'a str> {
        self.source.get(span.start.offset()..span.end.offset())
    }
}

/// Whether each `)` has a `(` before it.
fn is_balanced(text: &str) -> bool {
    let step = |open: usize, c| match c {
        '(' => Some(open + 1),
        ')' => open.checked_sub(1),
        _ => Some(open),
    };
    text.chars().try_fold(0, step) == Some(0)
}

/// The script in backquotes after the first reading: a backslash before `$`, a backquote or a backslash is removed.
fn without_backslashes(text: &str) -> String {
    let (mut script, mut chars) = (String::new(), text.chars().peekable());
    while let Some(c) = chars.next() {
        match chars.next_if(|next| c == '\\' && matches!(next, '$' | '`' | '\\')) {
            Some(quoted) => script.push(quoted),
            None => script.push(c),
        }
    }
    script
}
