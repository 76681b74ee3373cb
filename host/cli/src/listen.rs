//! `tidegate acp --listen`: the protocol of editors over websockets.

use std::io::Write as _;
use std::net::SocketAddr;

use serve::acp::{Access, Server};
use tokio::net::TcpListener;

use crate::args::Listen;
use crate::ending::Ending;
use crate::exit::Failure;
use crate::screen::clean::flat;
use crate::{say, screen};

/// A listener, and who may connect to it.
pub(crate) struct Listener {
    listener: TcpListener,
    access: Access,
    /// The token was made here: nobody else can know it.
    is_new: bool,
}

impl Listener {
    /// Opens the listener, where the arguments ask for one. What cannot work is found before anything runs.
    pub(crate) async fn open(args: &Listen) -> Result<Option<Self>, Failure> {
        let Some(address) = args.listen else { return Ok(None) };
        if !address.ip().is_loopback() && !args.allow_remote {
            return Err(Failure::setup(format_args!(
                "--listen {address}: other machines can reach this address, and whoever has the token can run commands here\n\
                 help: use 127.0.0.1, and `ssh -L` from another machine; --allow-remote takes the address as it is, without encryption"
            )));
        }
        let origins: Vec<String> = args.allow_origin.iter().map(|text| origin(text)).collect::<Result<_, _>>()?;
        let access = access(args)?.origins(origins);
        let bound = TcpListener::bind(address).await;
        let listener = bound.map_err(|error| Failure::setup(format_args!("cannot listen at {address}: {error}")))?;
        Ok(Some(Self { listener, access, is_new: args.token_env.is_none() }))
    }

    /// Serves until a signal ends the program.
    pub(crate) async fn serve(self, server: Server, ending: &Ending) -> Result<(), Failure> {
        let Self { listener, access, is_new } = self;
        let address = listener.local_addr().map_err(Failure::late)?;
        let mut out = screen::out();
        writeln!(out, "{}", url(address, is_new.then(|| access.token())))?;
        out.flush()?;
        let requested = async {
            ending.requested().await;
        };
        server.listen(listener, access, requested).await.map_err(Failure::late)
    }
}

fn access(args: &Listen) -> Result<Access, Failure> {
    let Some(name) = &args.token_env else { return Access::random().map_err(Failure::setup) };
    let given = tidegate::environment::variable(name).and_then(|token| token.into_string().ok());
    let Some(token) = given else {
        return Err(Failure::setup(format_args!("--token-env {}: the variable is not set, or is no text", flat(name))));
    };
    Access::new(token).map_err(|error| Failure::setup(format_args!("--token-env {}: {error}", flat(name))))
}

/// An origin as browsers send it: scheme, host and port. Anything else would match no page.
fn origin(text: &str) -> Result<String, Failure> {
    let origin = text.trim_end_matches('/');
    let parts = origin.split_once("://").filter(|(scheme, host)| !scheme.is_empty() && !host.is_empty());
    let is_odd = |host: &str| host.contains(['/', '?', '#', '@', '*']) || host.contains(char::is_whitespace);
    if parts.is_none_or(|(_, host)| is_odd(host)) {
        let text = flat(text);
        return Err(Failure::setup(format_args!(
            "--allow-origin {text}: no origin; it looks like http://localhost:3000"
        )));
    }
    Ok(origin.to_owned())
}

/// What a client connects to. A token that the user has given is not printed.
fn url(address: SocketAddr, token: Option<&str>) -> String {
    match token {
        Some(token) => format!("ws://{address}/?token={token}"),
        None => {
            say::note("note: clients give the token as `Authorization: Bearer TOKEN`, or as `?token=TOKEN` of the URL");
            format!("ws://{address}/")
        }
    }
}
