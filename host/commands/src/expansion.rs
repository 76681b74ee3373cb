//! Walks through what a word or a redirection contains: substitutions, expressions, parameters and here-documents.

use shuck_ast::{
    BinaryCommand, BinaryOp, BourneParameterExpansion, Command, CommandSubstitutionSyntax, ConditionalExpr, Heredoc,
    HeredocBodyPart, ParameterExpansion, ParameterOp, Pattern, PatternPart, Redirect, RedirectKind, RedirectTarget,
    Span, Stmt, StmtSeq, Word as Syntax, WordPart,
};

use shuck_parser::parser::Parser;

use crate::output::output;
use crate::walk::{MAX_DEPTH, Walk, script};
use crate::word::Word;
use crate::work::ITEM;

/// The delimiter of a here-document that is read alone.
const END_ALONE: &str = "END_OF_DOCUMENT_READ_ALONE";

impl<'a> Walk<'a> {
    /// Walks through a redirection. Returns what it names, or passes to the command.
    pub(crate) fn redirect(&mut self, redirect: &Redirect) -> Option<Word> {
        let target = match &redirect.target {
            RedirectTarget::Word(word) => {
                let word = self.word(word);
                // Some shells expand the target of `>&` twice.
                if word.has_quoted_command() || word.is_split {
                    self.undecided("it has a command in the name of a file");
                }
                Some(word)
            }
            RedirectTarget::Heredoc(document) => {
                self.here_document(document);
                None
            }
        };
        let word = target.as_ref().and_then(Word::exact);
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
        target
    }

    /// Walks through the expansions of a here-document. The parser takes the second one of a line for quoted, so that it is read again, alone.
    fn here_document(&mut self, document: &Heredoc) {
        if self.is_cut(document) {
            return;
        }
        let is_quoted = self.slice(document.delimiter.span).is_some_and(|written| written.contains(['\'', '"', '\\']));
        if is_quoted || document.body.mode.expands() {
            return document.body.parts.iter().for_each(|part| self.document(&part.kind, part.span));
        }
        match self.slice(document.body.span) {
            Some(text) => self.alone(text),
            None => self.undecided("it has a here-document that cannot be found"),
        }
    }

    /// Whether this is a here-document whose text was cut out before the line was parsed.
    pub(crate) fn is_cut(&mut self, document: &Heredoc) -> bool {
        let span = document.body.span;
        let is_cut =
            self.depth == 0 && span.start.offset() == span.end.offset() && self.found.cuts.remove(&span.start.offset());
        if is_cut {
            self.found.cut.insert(span.start.offset());
        }
        self.depth == 0 && self.found.cut.contains(&span.start.offset())
    }

    /// Walks through the expansions of a text, each of which a shell would expand as in a here-document.
    fn alone(&mut self, text: &str) {
        if !self.found.work.parse(text) {
            return;
        }
        let source = format!(": <<{END_ALONE}\n{text}\n{END_ALONE}\n");
        let parsed = Parser::with_dialect(&source, self.dialect).parse();
        let statement = parsed.file.body.iter().next();
        let alone = statement.and_then(|statement| match &statement.redirects.first()?.target {
            RedirectTarget::Heredoc(document) if document.body.mode.expands() => Some(document.body.parts.as_slice()),
            _ => None,
        });
        let depth = self.depth + 1;
        let Some(parts) = alone.filter(|_| !text.contains(END_ALONE) && depth <= MAX_DEPTH) else {
            return self.found.not_read(text, "it has a text with commands that cannot be read");
        };
        let mut walk = Walk { source: &source, found: self.found, dialect: self.dialect, depth };
        parts.iter().for_each(|part| walk.document(&part.kind, part.span));
    }

    /// Walks through an expression of `[[ … ]]`.
    pub(crate) fn conditional(&mut self, expression: &ConditionalExpr) {
        match expression {
            ConditionalExpr::Binary(one) => {
                self.conditional(&one.left);
                self.conditional(&one.right);
            }
            ConditionalExpr::Unary(one) => self.conditional(&one.expr),
            ConditionalExpr::Parenthesized(one) => self.conditional(&one.expr),
            ConditionalExpr::Word(word) | ConditionalExpr::Regex(word) => drop(self.word(word)),
            ConditionalExpr::Pattern(pattern) => self.pattern(pattern),
            ConditionalExpr::VarRef(reference) => self.reference(reference),
        }
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
        if !self.slice(span).is_some_and(|text| self.found.work.take(4 * text.len()) && is_expression(text)) {
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
            return self.found.not_read(text, "it has a substitution whose text is not plain");
        };
        if syntax != CommandSubstitutionSyntax::DollarParen && inner.contains('\\') {
            // In backquotes a backslash quotes for two readings: another substitution can be inside.
            self.undecided("it has a backslash in backquotes");
            return script(&without_backslashes(inner), self.dialect, self.depth + 1, self.found);
        }
        script(inner, self.dialect, self.depth + 1, self.found);
    }

    /// Keeps what a substitution is replaced by, where its commands say what they write. `first`: the first of them.
    fn writes(&mut self, body: &StmtSeq, span: Span, first: usize) {
        let Some(text) = self.slice(span) else { return };
        let mut statements = body.iter();
        let outputs = match (statements.next(), statements.next()) {
            (None, _) => vec![Some(String::new())],
            (Some(only), None) if is_one_output(only) => {
                let commands = self.found.simple.get(first..).unwrap_or_default();
                commands.iter().filter(|simple| simple.within.is_none()).map(output).collect()
            }
            _ => return,
        };
        for output in outputs {
            self.found.values.assign(text, output.map(|output| vec![output]));
        }
    }

    /// Walks through what an expansion contains.
    pub(crate) fn expansion(&mut self, part: &WordPart, span: Span) {
        match part {
            WordPart::CommandSubstitution { syntax, body } => {
                let first = self.found.simple.len();
                self.substitution(*syntax, span);
                self.writes(body, span, first);
            }
            WordPart::ProcessSubstitution { body, .. } => {
                self.beyond("it passes a command as a file");
                let first = self.found.simple.len();
                self.substitution(CommandSubstitutionSyntax::DollarParen, span);
                self.writes(body, span, first);
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
        match operator {
            ParameterOp::RemovePrefixShort { pattern }
            | ParameterOp::RemovePrefixLong { pattern }
            | ParameterOp::RemoveSuffixShort { pattern }
            | ParameterOp::RemoveSuffixLong { pattern }
            | ParameterOp::ReplaceFirst { pattern, .. }
            | ParameterOp::ReplaceAll { pattern, .. } => self.pattern(pattern),
            _ => {}
        }
    }

    /// Walks through a pattern that a text is compared with.
    pub(crate) fn pattern(&mut self, pattern: &Pattern) {
        self.within(pattern.span, |walk| {
            for part in &pattern.parts {
                match &part.kind {
                    PatternPart::Word(word) => drop(walk.word(word)),
                    PatternPart::Group { patterns, .. } => patterns.iter().for_each(|one| walk.pattern(one)),
                    _ => {}
                }
            }
        });
    }

    /// Walks through an expansion that can have commands where `walk` does not look.
    pub(crate) fn within(&mut self, span: Span, walk: impl FnOnce(&mut Self)) {
        let before = self.found.simple.len();
        walk(self);
        if self.found.simple.len() == before {
            self.text(span);
        }
    }

    /// Text of which only the expansions are walked through: where a shell takes a command in it for quoted, it does not run.
    pub(crate) fn text(&mut self, span: Span) {
        let has_command = |text: &str| {
            let text = text.replace("$((", "");
            ["$(", "`", "<(", ">("].iter().any(|mark| text.contains(mark))
        };
        let text = self.slice(span);
        if !self.found.work.take(ITEM + 4 * text.unwrap_or_default().len()) {
            return;
        }
        if text.is_none_or(has_command) {
            self.undecided("it has a command in an expression");
            text.into_iter().for_each(|text| self.alone(within_marks(text)));
        }
    }

    pub(crate) fn slice(&self, span: Span) -> Option<&'a str> {
        self.source.get(span.start.offset()..span.end.offset())
    }
}

/// Whether what one command writes, or another one in its place, is all that a statement writes.
fn is_one_output(statement: &Stmt) -> bool {
    let is_null = |redirect: &Redirect| match &redirect.target {
        RedirectTarget::Word(word) => {
            matches!(redirect.kind, RedirectKind::Output | RedirectKind::DupOutput)
                && redirect.fd == Some(2)
                && !word.parts.is_empty()
        }
        RedirectTarget::Heredoc(_) => false,
    };
    match &statement.command {
        Command::Simple(_) => statement.redirects.iter().all(is_null),
        Command::Binary(BinaryCommand { op: BinaryOp::Or, left, right, .. }) => {
            is_one_output(left) && is_one_output(right)
        }
        _ => false,
    }
}

/// An expansion without its marks: what is in it can be read on its own.
fn within_marks(text: &str) -> &str {
    let marks = [("${", "}"), ("$((", "))"), ("$[", "]")];
    marks.iter().find_map(|(start, end)| text.strip_prefix(start)?.strip_suffix(end)).unwrap_or(text)
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
