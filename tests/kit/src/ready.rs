//! Futures of fakes, which never wait.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// The value of a future that is ready at once.
///
/// # Panics
/// The future waits for something.
pub fn ready<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the future is not ready at once"),
    }
}
