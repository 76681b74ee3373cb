//! The functions that JavaScript calls. Strings cross in two buffers of this memory: JavaScript writes UTF-8 where [`input`] says, and reads
//! where [`output`] says. A function that gives an output returns its length, 0 for none.
#![allow(unsafe_code, reason = "a function is exported by its name alone")]

use std::cell::RefCell;

use chat::BlockKind;
use flow::RunPosition;

use crate::{Fed, Instance, Options, Output};

thread_local! {
    static INPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static OUTPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static INSTANCES: RefCell<Vec<Option<Instance>>> = const { RefCell::new(Vec::new()) };
}

/// Reserves memory for an input of `len` bytes, and returns where it is.
#[unsafe(no_mangle)]
pub extern "C" fn input(len: usize) -> *mut u8 {
    INPUT.with_borrow_mut(|buffer| {
        if buffer.len() < len {
            buffer.resize(len, 0);
        }
        buffer.as_mut_ptr()
    })
}

/// Where the last output is.
#[unsafe(no_mangle)]
pub extern "C" fn output() -> *const u8 {
    OUTPUT.with_borrow(|buffer| buffer.as_ptr())
}

/// Makes an instance with the options of the input, and returns its number; -1: the output says why not.
#[unsafe(no_mangle)]
pub extern "C" fn create(len: usize) -> i32 {
    match text(len, crate::instance::value::<Options>) {
        Ok(options) => INSTANCES.with_borrow_mut(|all| {
            let free = all.iter().position(Option::is_none).unwrap_or_else(|| {
                all.push(None);
                all.len() - 1
            });
            all[free] = Some(Instance::new(&options));
            i32::try_from(free).unwrap_or(-1)
        }),
        Err(error) => {
            give(&Output { error: Some(error), ..Output::default() });
            -1
        }
    }
}

/// Frees an instance.
#[unsafe(no_mangle)]
pub extern "C" fn destroy(number: usize) {
    INSTANCES.with_borrow_mut(|all| {
        if let Some(slot) = all.get_mut(number) {
            *slot = None;
        }
    });
}

/// The whole state of an instance, as a change.
#[unsafe(no_mangle)]
pub extern "C" fn start(number: usize) -> usize {
    with(number, |instance| give(&instance.start())).unwrap_or(0)
}

/// Takes the line of the input as an event of the thread.
#[unsafe(no_mangle)]
pub extern "C" fn event(number: usize, len: usize) -> usize {
    with(number, |instance| give(&text(len, |line| instance.event(line)))).unwrap_or(0)
}

/// Takes the line of the input as an event of a child.
#[unsafe(no_mangle)]
pub extern "C" fn child(number: usize, len: usize) -> usize {
    with(number, |instance| give(&text(len, |line| instance.child(line)))).unwrap_or(0)
}

/// Does the action of the input.
#[unsafe(no_mangle)]
pub extern "C" fn act(number: usize, len: usize) -> usize {
    with(number, |instance| give(&text(len, |action| instance.act(action)))).unwrap_or(0)
}

/// Takes a delta with the text of the input. Returns the index of the message that it was added to, -1 where it changed nothing, and else -2
/// minus the length of the output.
#[unsafe(no_mangle)]
pub extern "C" fn delta(
    number: usize,
    reasoning: i32,
    seq: f64,
    ts: f64,
    turn: u32,
    step: u32,
    attempt: u32,
    len: usize,
) -> i32 {
    let kind = if reasoning == 0 { BlockKind::Text } else { BlockKind::Reasoning };
    let place = RunPosition { turn, step, attempt };
    let fed = with(number, |instance| text(len, |text| instance.delta(kind, seq as u64, ts as u64, place, text)));
    match fed {
        None | Some(Fed::Nothing) => -1,
        Some(Fed::Added(index)) => i32::try_from(index).unwrap_or(-1),
        Some(Fed::Other(output)) => i32::try_from(give(&output)).map_or(-1, |len| -2 - len),
    }
}

fn with<T>(number: usize, use_it: impl FnOnce(&mut Instance) -> T) -> Option<T> {
    INSTANCES.with_borrow_mut(|all| all.get_mut(number).and_then(Option::as_mut).map(use_it))
}

/// The first bytes of the input, as JavaScript has encoded them.
fn text<T>(len: usize, read: impl FnOnce(&str) -> T) -> T {
    INPUT.with_borrow(|buffer| read(&String::from_utf8_lossy(buffer.get(..len).unwrap_or_default())))
}

fn give(output: &Output) -> usize {
    let json = output.json().unwrap_or_default();
    OUTPUT.with_borrow_mut(|buffer| {
        *buffer = json;
        buffer.len()
    })
}
