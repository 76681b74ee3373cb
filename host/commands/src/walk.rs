//! Walks through the syntax tree of a command line and collects the simple commands in it, wherever they are: in lists, pipelines, groups, loops,
//! functions, substitutions and here-documents.

use std::collections::BTreeSet;
use std::ops::Range;

use shuck_ast::{
    BinaryCommand, BinaryOp, BuiltinCommand, Command, CompoundCommand, Redirect, SimpleCommand, Stmt, StmtSeq,
    StmtTerminator, Word as Syntax,
};
use shuck_parser::parser::Parser;
use shuck_parser::{ShellDialect, parser::ParseStatus};

use crate::listed;
use crate::values::{MAX_WAYS, Values};
use crate::word::{Part, Word};
use crate::work::{ITEM, Work, of_words};
use crate::wrapper;

/// The deepest nesting of substitutions and of scripts that are arguments.
pub(crate) const MAX_DEPTH: usize = 12;
/// The most words of all commands of a line, those included that commands run in turn.
const MAX_WORDS: usize = 10_000;
/// The same of the commands that it runs if its expansions are what the line says that they can be.
pub(crate) const MAX_WAY_WORDS: usize = 50_000;

/// What is known of a command line.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The commands that it runs, as far as the text tells.
    pub(crate) simple: Vec<Simple>,
    /// How many words they have.
    pub(crate) words: usize,
    /// How many words those have that it runs if its expansions are what the line says that they can be.
    pub(crate) way_words: usize,
    /// The most of them, where there was no place for more.
    pub(crate) is_full: Option<usize>,
    /// Where commands that others run were found, and whether they run for certain: what begins where one did is that one.
    pub(crate) seen: BTreeSet<((usize, usize), bool)>,
    /// Why it can run commands that are not among them.
    pub(crate) undecided: Option<String>,
    /// Whether these can be spelt so that they are only found in its text.
    pub(crate) is_odd: bool,
    /// What it does besides, which a permission to run commands does not cover.
    pub(crate) beyond: Option<&'static str>,
    /// What is listed next to the commands, each before the command of this index: assignments, and which command gets the output of which.
    pub(crate) notes: Vec<(usize, String)>,
    /// Scripts that cannot be parsed, or are not walked through because of a limit, each with the reason.
    pub(crate) unread: Vec<(String, String)>,
    /// What the line itself says of its expansions.
    pub(crate) values: Values,
    /// What is done for the line.
    pub(crate) work: Work,
    /// Texts that commands get as their input, each with the index of the command.
    pub(crate) inputs: Vec<(usize, Option<String>)>,
    /// How many of them were passed to commands.
    pub(crate) reads: usize,
    /// Where the text of here-documents was cut out, and no document was found yet.
    pub(crate) cuts: BTreeSet<usize>,
    /// Where it was, and one was found.
    pub(crate) cut: BTreeSet<usize>,
    /// The commands that are added now run only if a name is that of a program that runs others.
    pub(crate) is_guess: bool,
    /// They run only if an expansion is what the line says that it can be.
    pub(crate) is_way: bool,
}

impl Found {
    /// A script is not read, or not all of it.
    pub(crate) fn not_read(&mut self, script: &str, why: impl Into<String>) {
        let why = why.into();
        undecided(self, why.as_str());
        // Where it takes too much work, the whole line is not read.
        if !self.work.take(ITEM + 2 * script.len()) {
            return;
        }
        self.unread.push((script.to_owned(), why));
    }
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
    /// Whether it runs only if a name that is only known when it runs is that of a program that runs others.
    pub(crate) is_guess: bool,
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
        return found.not_read(source, format!("commands are nested deeper than {MAX_DEPTH}"));
    }
    if !found.work.parse(source) {
        return;
    }
    let is_broken = has_broken_word(source);
    if is_broken {
        found.not_read(source, "a line ends in the middle of a word");
    }
    let parsed = Parser::with_dialect(source, dialect).parse();
    if parsed.status != ParseStatus::Clean {
        let why = parsed.diagnostics.first().map_or("its syntax", |one| one.message.as_str());
        found.not_read(source, format!("it cannot be parsed: {why}"));
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
    found.is_odd = true;
    found.undecided.get_or_insert_with(|| why.into());
}

impl Walk<'_> {
    pub(crate) fn undecided(&mut self, why: impl Into<String>) {
        undecided(self.found, why);
    }

    /// A command is named by what is only known when it runs.
    pub(crate) fn is_unnamed(&mut self) {
        self.found.undecided.get_or_insert_with(|| "the name of a command is only known when it runs".to_owned());
    }

    /// Something of this script cannot be known, so that it counts as not read.
    pub(crate) fn unread(&mut self, why: impl Into<String>) {
        self.found.not_read(self.source, why);
    }

    pub(crate) fn beyond(&mut self, what: &'static str) {
        self.found.beyond.get_or_insert(what);
    }

    /// Walks through a script that is an argument of this program.
    pub(crate) fn argument(&mut self, text: &str, program: &str) {
        let is_own = matches!(program, "bash" | "rbash" | "ksh" | "ksh93" | "mksh" | "zsh" | "fish");
        script(text, if is_own { ShellDialect::Bash } else { self.dialect }, self.depth + 1, self.found);
    }

    /// Whether a text can be a script.
    pub(crate) fn is_script(&self, text: &str) -> bool {
        self.found.work.parse(text) && Parser::with_dialect(text, self.dialect).parse().status == ParseStatus::Clean
    }

    fn sequence(&mut self, statements: &StmtSeq) {
        for statement in statements.iter() {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Stmt) {
        if self.found.work.is_spent() {
            return;
        }
        if matches!(statement.terminator, Some(StmtTerminator::Background(_))) {
            self.beyond("it starts a command in the background");
        }
        let mut targets = Vec::new();
        for redirect in &statement.redirects {
            targets.push(self.redirect(redirect));
            if let Command::Simple(simple) = &statement.command {
                self.split(redirect, simple);
            }
        }
        let first = self.found.simple.len();
        self.command(&statement.command);
        self.input(statement.redirects.iter().zip(&targets), first);
    }

    fn command(&mut self, command: &Command) {
        match command {
            Command::Simple(simple) => self.simple(simple),
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
                self.piped(&stages);
            }
            Command::Binary(BinaryCommand { left, right, .. }) => {
                self.statement(left);
                self.statement(right);
            }
            Command::Compound(compound) => self.compound(compound),
            Command::Function(function) => {
                self.beyond("it defines a function");
                function.static_names().for_each(|name| self.found.values.define(name.as_str()));
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

    pub(crate) fn note(&mut self, line: String) {
        if self.found.is_guess || !self.found.work.take(ITEM + line.len()) {
            return;
        }
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
        if let Some(words) = self.found.values.of_alias(&words) {
            self.add_way(&words);
        }
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
                let words: Vec<Word> = one.words.iter().flatten().map(|word| self.word(word)).collect();
                let names = one.targets.iter().filter_map(|target| target.name.as_ref());
                names.for_each(|name| self.iterates(name.as_str(), &words));
                self.sequence(&one.body);
            }
            CompoundCommand::Select(one) => {
                let words: Vec<Word> = one.words.iter().map(|word| self.word(word)).collect();
                self.iterates(one.variable.as_str(), &words);
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
                    case.patterns.iter().for_each(|pattern| self.pattern(pattern));
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
            CompoundCommand::Conditional(one) => self.within(one.span, |walk| walk.conditional(&one.expression)),
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

    /// Adds a command, and those that it runs; then what it is where the line says what its expansions are.
    fn add(&mut self, words: &[Word], written: Option<String>) {
        self.add_one(words, written);
        let is_known = |word: &Word| word.parts.iter().all(|part| matches!(part, Part::Text(_) | Part::Files(_)));
        if words.iter().all(is_known) || self.found.is_full.is_some() {
            return;
        }
        match self.found.values.fill(words) {
            Some(ways) => ways.iter().for_each(|words| self.add_way(words)),
            None if self.found.work.is_spent() => {}
            None => self.unread(format!("the variables of a command have more than {MAX_WAYS} values together")),
        }
    }

    /// Adds what a command can be.
    pub(crate) fn add_way(&mut self, words: &[Word]) {
        let was_way = std::mem::replace(&mut self.found.is_way, true);
        self.add_one(words, None);
        self.found.is_way = was_way;
    }

    fn add_one(&mut self, words: &[Word], written: Option<String>) {
        let first = self.found.simple.len();
        if self.has_place(words) {
            let is_guess = self.found.is_guess;
            let is_certain = !is_guess && !self.found.is_way;
            self.found.simple.push(Simple { words: words.to_vec(), written, is_certain, within: None, is_guess });
            wrapper::inner(self, words, (first, 0));
        }
    }

    /// Adds a command that another one runs. Returns whether it is new, and there was a place for it.
    pub(crate) fn add_inner(&mut self, words: &[Word], is_certain: bool, within: (usize, usize)) -> bool {
        let is_certain = is_certain && !self.found.is_guess && !self.found.is_way;
        if !self.found.seen.insert((within, is_certain)) {
            return false;
        }
        let has_place = self.has_place(words);
        if has_place {
            let (within, is_guess) = (Some(within), self.found.is_guess);
            self.found.simple.push(Simple { words: words.to_vec(), written: None, is_certain, within, is_guess });
        }
        has_place
    }

    /// A variable gets each of these words in turn.
    fn iterates(&mut self, name: &str, words: &[Word]) {
        let ways = self.found.values.fill(words).unwrap_or_default();
        for word in words.iter().chain(ways.iter().flatten()) {
            if !self.found.values.follows(word) {
                self.found.values.assign(name, None);
            }
            // The file names that a pattern matches are not known; the pattern is listed in their place.
            if let Some(text) = word.as_written() {
                self.found.values.assign(name, Some(vec![text]));
            }
        }
    }

    fn has_place(&mut self, words: &[Word]) -> bool {
        // It is copied, listed and looked at several times.
        let has_place = !self.is_full(words.len()) && self.found.work.take(4 * of_words(words));
        *self.count() += words.len();
        has_place
    }

    /// Whether there is no place for so many words more, which is noted.
    pub(crate) fn is_full(&mut self, words: usize) -> bool {
        let most = if self.found.is_way { MAX_WAY_WORDS } else { MAX_WORDS };
        let is_full = *self.count() + words > most;
        if is_full {
            *self.count() = most + 1;
            self.found.is_full = Some(most);
            self.undecided(format!("its commands have more than {most} words"));
        }
        is_full
    }

    fn count(&mut self) -> &mut usize {
        if self.found.is_way { &mut self.found.way_words } else { &mut self.found.words }
    }
}
