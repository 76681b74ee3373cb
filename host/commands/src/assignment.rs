//! Walks through assignments: values and indexes have commands, and some are read as commands later.

use shuck_ast::{Assignment, AssignmentValue, DeclOperand, VarRef, Word as Syntax};

use crate::listed;
use crate::walk::Walk;
use crate::word::Word;

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
                self.note(format!("{}={}", assignment.target.name.as_str(), listed::word(&value)));
            }
            AssignmentValue::Compound(array) => {
                let is_plain = |text: &str| text.ends_with(')') && !text.contains([';', '&', '|', '<', '>']);
                if !self.slice(array.span).is_some_and(is_plain) {
                    self.undecided("it has an array that can be commands");
                }
                array.elements.iter().for_each(|element| drop(self.value(element.value())));
            }
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

    fn reference(&mut self, reference: &VarRef) {
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
