//! The other end of standard output.

use std::fs::File;
use std::io::{self, stdout};
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileTypeExt as _;
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

/// Calls `then`, on a thread of its own, when nobody reads standard output any more, where that is a pipe or a socket: a program that
/// writes seldom would not notice for a long time.
///
/// # Errors
/// There is no other thread.
pub(crate) fn when_unread(then: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let output = File::from(stdout().as_fd().try_clone_to_owned()?);
    let kind = output.metadata()?.file_type();
    if !kind.is_fifo() && !kind.is_socket() {
        return Ok(());
    }
    let watch = move || {
        let mut polled = [PollFd::new(&output, PollFlags::empty())];
        while let Err(Errno::INTR) = poll(&mut polled, None) {}
        if polled[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) {
            then();
        }
    };
    thread::Builder::new().name("output".into()).spawn(watch).map(drop)
}
