//! Walks through assignments: values and indexes have commands, and some are read as commands later.

use shuck_ast::{Assignment, AssignmentValue, DeclOperand, VarRef, Word as Syntax};

use crate::listed;
use crate::walk::Walk;
use crate::word::Word;
use crate::wrapper;

impl Walk<'_> {
    pub(crate) fn operand(&mut self, operand: &DeclOperand) -> Word {
        match operand {
            DeclOperand::Flag(word) | DeclOperand::Dynamic(word) => self.word(word),
            DeclOperand::Name(reference) => {
                self.reference(reference);
                Word::unknown()
            }
            DeclOperand::Assignment(assignment) => {
                self.assignment(assignment);
                Word::unknown()
            }
        }
    }

    pub(crate) fn assignments(&mut self, assignments: &[Assignment]) {
        for assignment in assignments {
            self.beyond("it sets a variable");
            self.assignment(assignment);
        }
    }

    fn assignment(&mut self, assignment: &Assignment) {
        self.reference(&assignment.target);
        match &assignment.value {
            AssignmentValue::Scalar(word) => {
                let value = self.value(word);
                let name = assignment.target.name.as_str();
                self.assign(assignment, std::slice::from_ref(&value));
                wrapper::variable(self, name, &value);
                self.note(format!("{}={}", name, listed::word(&value)));
            }
            AssignmentValue::Compound(array) => {
                let is_plain = |text: &str| text.ends_with(')') && !text.contains([';', '&', '|', '<', '>']);
                if !self.slice(array.span).is_some_and(is_plain) {
                    self.undecided("it has an array that can be commands");
                }
                let words: Vec<Word> = array.elements.iter().map(|element| self.value(element.value())).collect();
                self.assign(assignment, &words);
            }
        }
    }

    /// Keeps what a variable is set to.
    fn assign(&mut self, assignment: &Assignment, words: &[Word]) {
        let name = assignment.target.name.as_str();
        let values = &mut self.found.values;
        // The value of a variable is not split into words.
        let quoted: Vec<Word> = words.iter().map(Word::quoted).collect();
        let ways = values.fill(&quoted);
        let lists =
            ways.into_iter().flatten().chain(quoted.iter().all(|word| values.follows(word)).then_some(quoted.clone()));
        let lists: Vec<Option<Vec<String>>> = lists.map(|words| words.iter().map(Word::exact).collect()).collect();
        let exact: Vec<Vec<String>> = lists.into_iter().flatten().collect();
        if exact.is_empty() || !quoted.iter().all(|word| values.follows(word)) {
            values.assign(name, None);
        }
        for list in exact {
            if assignment.append { values.append(name, Some(list)) } else { values.assign(name, Some(list)) }
        }
    }

    /// What a variable is set to: some are read as commands again (`PS4`, arithmetic, `${x@P}`).
    fn value(&mut self, word: &Syntax) -> Word {
        let word = self.word(word);
        if word.has_quoted_command() {
            self.undecided("it stores a command in a variable");
        }
        if word.is_split {
            self.undecided("it has a word that a shell would end elsewhere");
        }
        word
    }

    pub(crate) fn reference(&mut self, reference: &VarRef) {
        if let Some(subscript) = &reference.subscript {
            self.text(subscript.span());
            // A shell without arrays has words in it.
            if self
                .slice(subscript.span())
                .is_none_or(|text| text.contains([' ', '\t', '\n', ';', '&', '|', '<', '>', '(']))
            {
                self.undecided("it has an index that can be commands");
            }
        }
    }
}
