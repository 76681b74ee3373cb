//! Walks through the syntax tree of a command line and collects the simple commands in it, wherever they are: in lists, pipelines, groups, loops,
//! functions, substitutions and here-documents.

use std::collections::BTreeSet;
use std::ops::Range;

use shuck_ast::{
    BinaryCommand, BinaryOp, BuiltinCommand, Command, CompoundCommand, Redirect, RedirectKind, RedirectTarget,
    SimpleCommand, Stmt, StmtSeq, StmtTerminator, Word as Syntax,
};
use shuck_parser::parser::Parser;
use shuck_parser::{ShellDialect, parser::ParseStatus};

use crate::listed;
use crate::word::Word;
use crate::wrapper;

/// The deepest nesting of substitutions and of scripts that are arguments.
const MAX_DEPTH: usize = 12;
/// The most words of all commands of a line, those included that commands run in turn.
pub(crate) const MAX_WORDS: usize = 10_000;

/// What is known of a command line.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The commands that it runs, as far as the text tells.
    pub(crate) simple: Vec<Simple>,
    /// How many words they have.
    pub(crate) words: usize,
    /// Where commands that others run were found, and whether they run for certain: what begins where one did is that one.
    pub(crate) seen: BTreeSet<((usize, usize), bool)>,
    /// Why it can run commands that are not among them.
    pub(crate) undecided: Option<String>,
    /// What it does besides, which a permission to run commands does not cover.
    pub(crate) beyond: Option<&'static str>,
    /// What is listed next to the commands, each before the command of this index: assignments, and which command gets the output of which.
    pub(crate) notes: Vec<(usize, String)>,
    /// Scripts that cannot be parsed, or are not walked through because of a limit.
    pub(crate) unread: Vec<String>,
}

/// A simple command, after its assignments and without redirections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Simple {
    pub(crate) words: Vec<Word>,
    /// As it is written.
    pub(crate) written: Option<String>,
    /// Whether it runs for certain where the line runs it, and is not perhaps only an argument.
    pub(crate) is_certain: bool,
    /// Where another command runs it: the index of the first one, and how many words of that lead to its name, which is the last of them.
    pub(crate) within: Option<(usize, usize)>,
}

/// A walk through one script.
pub(crate) struct Walk<'a> {
    pub(crate) source: &'a str,
    pub(crate) found: &'a mut Found,
    pub(crate) dialect: ShellDialect,
    pub(crate) depth: usize,
}

/// Walks through a script.
pub(crate) fn script(source: &str, dialect: ShellDialect, depth: usize, found: &mut Found) {
    if depth > MAX_DEPTH {
        found.unread.push(source.to_owned());
        return undecided(found, format!("commands are nested deeper than {MAX_DEPTH}"));
    }
    let is_broken = has_broken_word(source);
    if is_broken {
        undecided(found, "a line ends in the middle of a word");
    }
    let parsed = Parser::with_dialect(source, dialect).parse();
    if parsed.status != ParseStatus::Clean {
        let why = parsed.diagnostics.first().map_or("its syntax", |one| one.message.as_str());
        undecided(found, format!("it cannot be parsed: {why}"));
    }
    if is_broken || parsed.status != ParseStatus::Clean {
        found.unread.push(source.to_owned());
    }
    Walk { source, found, dialect, depth }.sequence(&parsed.file.body);
}

/// Whether a line is continued in the middle of a word, which the parser does not join: `cas\` and `e` are a keyword.
fn has_broken_word(source: &str) -> bool {
    source.match_indices("\\\n").any(|(at, _)| {
        let is_word = |c: char| !c.is_whitespace();
        source[..at].ends_with(is_word) && source[at + 2..].starts_with(is_word)
    })
}

fn is_pipe(binary: &BinaryCommand) -> bool {
    matches!(binary.op, BinaryOp::Pipe | BinaryOp::PipeAll)
}

fn undecided(found: &mut Found, why: impl Into<String>) {
    found.undecided.get_or_insert_with(|| why.into());
}

impl Walk<'_> {
    pub(crate) fn undecided(&mut self, why: impl Into<String>) {
        undecided(self.found, why);
    }

    pub(crate) fn beyond(&mut self, what: &'static str) {
        self.found.beyond.get_or_insert(what);
    }

    /// Walks through a script that is an argument of this program.
    pub(crate) fn argument(&mut self, text: &str, program: &str) {
        let is_own = matches!(program, "bash" | "rbash" | "ksh" | "ksh93" | "mksh" | "zsh" | "fish");
        script(text, if is_own { ShellDialect::Bash } else { self.dialect }, self.depth + 1, self.found);
    }

    fn sequence(&mut self, statements: &StmtSeq) {
        for statement in statements.iter() {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Stmt) {
        if matches!(statement.terminator, Some(StmtTerminator::Background(_))) {
            self.beyond("it starts a command in the background");
        }
        for redirect in &statement.redirects {
            self.redirect(redirect);
            if let Command::Simple(simple) = &statement.command {
                self.split(redirect, simple);
            }
        }
        match &statement.command {
            Command::Simple(simple) => {
                self.simple(simple);
                self.input(&statement.redirects);
            }
            Command::Builtin(builtin) => self.builtin(builtin),
            Command::Decl(declaration) => {
                self.beyond("it sets a variable");
                let mut words = vec![Word::text(declaration.variant.as_str())];
                words.extend(declaration.operands.iter().map(|operand| self.operand(operand)));
                self.assignments(&declaration.assignments);
                self.add(&words, None);
            }
            Command::Binary(binary) if is_pipe(binary) => {
                let stages = self.pipeline(binary);
                listed::note_pipes(self, &stages);
            }
            Command::Binary(BinaryCommand { left, right, .. }) => {
                self.statement(left);
                self.statement(right);
            }
            Command::Compound(compound) => self.compound(compound),
            Command::Function(function) => {
                self.beyond("it defines a function");
                self.statement(&function.body);
            }
            Command::AnonymousFunction(function) => {
                self.beyond("it defines a function");
                self.statement(&function.body);
            }
        }
    }

    /// Walks through the stages of a pipeline. Returns which commands each has.
    fn pipeline(&mut self, binary: &BinaryCommand) -> Vec<Range<usize>> {
        let mut stages = match &binary.left.command {
            Command::Binary(left) if is_pipe(left) && binary.left.redirects.is_empty() => self.pipeline(left),
            _ => vec![self.stage(&binary.left)],
        };
        stages.push(self.stage(&binary.right));
        stages
    }

    fn stage(&mut self, statement: &Stmt) -> Range<usize> {
        let first = self.found.simple.len();
        self.statement(statement);
        first..self.found.simple.len()
    }

    /// Walks through the text that a shell gets as its input: it runs it.
    fn input(&mut self, redirects: &[Redirect]) {
        let is_shell = self.found.simple.last().is_some_and(|simple| {
            let name = simple.words.first().and_then(|name| name.without_folder().exact());
            let options = simple.words.get(1..).unwrap_or_default();
            // The parser takes the number of `3<<A` for a word.
            let is_number = |word: &Word| {
                word.exact().is_some_and(|word| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()))
            };
            name.is_some_and(|name| wrapper::is_shell(&name))
                && options.iter().all(|word| word.start().starts_with('-') || is_number(word))
        });
        for redirect in redirects.iter().filter(|_| is_shell) {
            match &redirect.target {
                RedirectTarget::Heredoc(document) => {
                    if let Some(text) = self.slice(document.body.span) {
                        script(text, self.dialect, self.depth + 1, self.found);
                    }
                }
                RedirectTarget::Word(word) if redirect.kind == RedirectKind::HereString => {
                    let text = self.word(word).as_script();
                    script(&text, self.dialect, self.depth + 1, self.found);
                }
                RedirectTarget::Word(_) => {}
            }
        }
    }

    pub(crate) fn note(&mut self, line: String) {
        self.found.notes.push((self.found.simple.len(), line));
    }

    fn simple(&mut self, simple: &SimpleCommand) {
        self.assignments(&simple.assignments);
        let words: Vec<Word> = std::iter::once(&simple.name).chain(&simple.args).map(|word| self.word(word)).collect();
        let all: Vec<&Syntax> = std::iter::once(&simple.name).chain(&simple.args).collect();
        let is_joined = |pair: &[&Syntax]| pair[0].span.end.offset() == pair[1].span.start.offset();
        if words.iter().any(|word| word.is_split) || all.windows(2).any(is_joined) {
            self.undecided("it has a word that a shell would end elsewhere");
        }
        // Assignments or redirections alone have an empty name.
        if simple.args.is_empty() && simple.name.parts.is_empty() {
            return;
        }
        let end = simple.args.last().unwrap_or(&simple.name).span.end.offset();
        let written = self.source.get(simple.name.span.start.offset()..end).map(str::to_owned);
        self.add(&words, written);
    }

    /// A shell without `&>` ends the command there, and begins another one.
    fn split(&mut self, redirect: &Redirect, simple: &SimpleCommand) {
        let is_later = |word: &Syntax| word.span.start.offset() > redirect.span.start.offset();
        let is_both = self.slice(redirect.span).is_none_or(|text| text.starts_with("&>"));
        if is_both && simple.args.iter().any(is_later) {
            self.undecided("it has words after `&>`");
        }
    }

    fn builtin(&mut self, builtin: &BuiltinCommand) {
        let (name, first, more, assignments) = match builtin {
            BuiltinCommand::Break(one) => ("break", &one.depth, &one.extra_args, &one.assignments),
            BuiltinCommand::Continue(one) => ("continue", &one.depth, &one.extra_args, &one.assignments),
            BuiltinCommand::Return(one) => ("return", &one.code, &one.extra_args, &one.assignments),
            BuiltinCommand::Exit(one) => ("exit", &one.code, &one.extra_args, &one.assignments),
        };
        self.assignments(assignments);
        let mut words = vec![Word::text(name)];
        words.extend(first.iter().chain(more).map(|word| self.word(word)));
        self.add(&words, None);
    }

    fn compound(&mut self, compound: &CompoundCommand) {
        match compound {
            CompoundCommand::Subshell(body) | CompoundCommand::BraceGroup(body) => self.sequence(body),
            CompoundCommand::If(one) => {
                self.sequence(&one.condition);
                self.sequence(&one.then_branch);
                for (condition, branch) in &one.elif_branches {
                    self.sequence(condition);
                    self.sequence(branch);
                }
                one.else_branch.iter().for_each(|branch| self.sequence(branch));
            }
            CompoundCommand::For(one) => {
                self.words(one.words.iter().flatten());
                self.sequence(&one.body);
            }
            CompoundCommand::Select(one) => {
                self.words(&one.words);
                self.sequence(&one.body);
            }
            CompoundCommand::While(one) => {
                self.sequence(&one.condition);
                self.sequence(&one.body);
            }
            CompoundCommand::Until(one) => {
                self.sequence(&one.condition);
                self.sequence(&one.body);
            }
            CompoundCommand::Case(one) => {
                self.word(&one.word);
                for case in &one.cases {
                    case.patterns.iter().for_each(|pattern| self.text(pattern.span));
                    self.sequence(&case.body);
                }
            }
            CompoundCommand::Time(one) => one.command.iter().for_each(|command| self.timed(command)),
            CompoundCommand::Coproc(one) => {
                self.beyond("it starts a command in the background");
                self.statement(&one.body);
            }
            CompoundCommand::ArithmeticFor(one) => {
                [one.init_span, one.condition_span, one.step_span]
                    .into_iter()
                    .flatten()
                    .for_each(|span| self.text(span));
                self.sequence(&one.body);
            }
            CompoundCommand::Arithmetic(one) => self.text(one.span),
            CompoundCommand::Conditional(one) => self.text(one.span),
            // Of a shell that is not asked for.
            CompoundCommand::Repeat(_) | CompoundCommand::Foreach(_) | CompoundCommand::Always(_) => {
                self.undecided("it uses the syntax of another shell");
            }
        }
    }

    /// A command after `time`. With options that the shell does not have, `time` is a program.
    fn timed(&mut self, statement: &Stmt) {
        self.statement(statement);
        let mut first = &statement.command;
        while let Command::Binary(binary) = first {
            first = &binary.left.command;
        }
        let Command::Simple(simple) = first else { return };
        let mut words: Vec<Word> =
            std::iter::once(&simple.name).chain(&simple.args).map(|word| self.word(word)).collect();
        if words.first().is_some_and(|word| word.start().starts_with('-')) {
            words.insert(0, Word::text("time"));
            self.add(&words, None);
        }
    }

    pub(crate) fn words<'w>(&mut self, words: impl IntoIterator<Item = &'w Syntax>) {
        words.into_iter().for_each(|word| drop(self.word(word)));
    }

    /// Adds a command, and those that it runs.
    fn add(&mut self, words: &[Word], written: Option<String>) {
        let first = self.found.simple.len();
        if self.has_place(words.len()) {
            let simple = Simple { words: words.to_vec(), written, is_certain: true, within: None };
            self.found.simple.push(simple);
            wrapper::inner(self, words, (first, 0));
        }
    }

    /// Adds a command that another one runs. Returns whether it is new, and there was a place for it.
    pub(crate) fn add_inner(&mut self, words: &[Word], is_certain: bool, within: (usize, usize)) -> bool {
        if !self.found.seen.insert((within, is_certain)) {
            return false;
        }
        let has_place = self.has_place(words.len());
        if has_place {
            self.found.simple.push(Simple { words: words.to_vec(), written: None, is_certain, within: Some(within) });
        }
        has_place
    }

    fn has_place(&mut self, words: usize) -> bool {
        self.found.words += words;
        let has_place = self.found.words <= MAX_WORDS;
        if !has_place {
            self.undecided(format!("its commands have more than {MAX_WORDS} words"));
        }
        has_place
    }
}
