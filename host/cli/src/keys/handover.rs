//! The program starts itself again, in the same process, without variables that look like secrets. It passes them on as the bytes of a socket
//! that takes the place of standard input, together with standard input itself: no file has them, and no descriptor is left behind.

use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg, sockopt,
};
use tidegate::environment;

/// The variable that tells the program that it was started by itself; its value is the id of this process, which others cannot have.
const VARIABLE: &str = "TIDEGATE_HANDOVER";

type Variables = Vec<(OsString, OsString)>;

/// Takes the variables that look like secrets out of the environment. Returns in the program that was started again, and where there is
/// nothing to take out.
pub(super) fn hand_over() {
    let own_id = std::process::id().to_string();
    if std::env::var_os(VARIABLE).is_some_and(|id| id == *own_id) {
        match receive() {
            Ok(variables) => environment::add_taken(variables),
            Err(error) => crate::screen::note(format_args!("warning: the keys of the environment were lost: {error}")),
        }
        return;
    }
    let secrets: Variables = std::env::vars_os().filter(|(name, value)| is_taken(name, value)).collect();
    if secrets.is_empty() {
        return;
    }
    // What cannot be handed over stays where it is, and works as before.
    if let Err(error) = start_again(&secrets, &own_id) {
        crate::screen::note(format_args!("warning: the keys of the environment can be read by commands: {error}"));
    }
}

/// A proxy's password stays: the client of the provider reads it from the environment.
fn is_taken(name: &OsStr, value: &OsStr) -> bool {
    let name = name.to_string_lossy();
    !name.to_ascii_lowercase().ends_with("_proxy") && tidegate::text::looks_secret(&name, &value.to_string_lossy())
}

/// Starts the program again. Returns only where that fails.
fn start_again(secrets: &Variables, own_id: &str) -> io::Result<()> {
    let program = std::env::current_exe()?;
    let bytes = encode(secrets);
    let (mut sender, receiver) = UnixStream::pair()?;
    sockopt::set_socket_send_buffer_size(&sender, bytes.len() + 4096)?;
    // The other side reads when this program is gone: all has to fit into the buffer.
    sender.set_nonblocking(true)?;
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    send(&mut sender, &input, &bytes)?;
    let mut arguments = std::env::args_os();
    let mut again = Command::new(program);
    again.arg0(arguments.next().unwrap_or_else(|| "tidegate".into())).args(arguments).env(VARIABLE, own_id);
    for (name, _) in secrets {
        again.env_remove(name);
    }
    let error = again.stdin(OwnedFd::from(receiver)).exec();
    rustix::stdio::dup2_stdin(&input)?;
    Err(error)
}

fn send(sender: &mut UnixStream, input: &OwnedFd, bytes: &[u8]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = [input.as_fd()];
    if !control.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::Error::other("the message of the socket is too small"));
    }
    let sent = sendmsg(&*sender, &[IoSlice::new(bytes)], &mut control, SendFlags::empty())?;
    sender.write_all(&bytes[sent..])
}

/// Receives the variables, and puts standard input back in its place.
fn receive() -> io::Result<Variables> {
    let socket = io::stdin().as_fd().try_clone_to_owned()?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut first = [0; 4096];
    let got = recvmsg(&socket, &mut [IoSliceMut::new(&mut first)], &mut control, RecvFlags::empty())?;
    let mut messages = control.drain();
    let input = messages.find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    let input = input.ok_or_else(|| io::Error::other("standard input was not passed on"))?;
    rustix::stdio::dup2_stdin(&input)?;
    let mut bytes = first[..got.bytes].to_vec();
    UnixStream::from(socket).read_to_end(&mut bytes)?;
    Ok(decode(&bytes))
}

/// As the system has an environment: `NAME=value`, each with a NUL byte at its end.
fn encode(variables: &Variables) -> Vec<u8> {
    let parts = variables.iter().flat_map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes(), b"\0"]);
    parts.flatten().copied().collect()
}

fn decode(bytes: &[u8]) -> Variables {
    let pair = |entry: &[u8]| {
        let at = entry.iter().position(|byte| *byte == b'=')?;
        let (name, value) = (entry.get(..at)?, entry.get(at + 1..)?);
        Some((OsString::from_vec(name.to_vec()), OsString::from_vec(value.to_vec())))
    };
    bytes.split(|byte| *byte == 0).filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_arrive_as_they_were() {
        let all: Variables = [("A_KEY", "x=y"), ("EMPTY_TOKEN", ""), ("LINES_SECRET", "a\nb")]
            .map(|(name, value)| (name.into(), value.into()))
            .into_iter()
            .chain([("BYTES_KEY".into(), OsString::from_vec(vec![0xff, b'=', 0x80]))])
            .collect();
        assert_eq!(decode(&encode(&all)), all);
    }
}
