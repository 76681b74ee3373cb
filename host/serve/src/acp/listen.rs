//! Websockets: one server, and one connection of the protocol for each.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::access::Access;
use super::hosts::Hosts;
use super::{ConnectionError, Server, connection, sdk, socket};

/// The most connections at a time. More of them wait.
const MAX_CONNECTIONS: usize = 64;

/// How long nobody is accepted after that failed, as where the process has too many files open.
const PAUSE: Duration = Duration::from_secs(1);

impl Server {
    /// Serves each client that connects to `listener` with a websocket and is admitted, until `stop` completes. Each connection has sessions of
    /// its own, on the engine that all of them share. What ends with a connection is as for [`Server::stdio`].
    ///
    /// # Errors
    /// The listener cannot be used at all.
    pub async fn listen(
        self,
        listener: TcpListener,
        access: Access,
        stop: impl Future<Output = ()>,
    ) -> Result<(), ConnectionError> {
        listener.local_addr().map_err(|error| ConnectionError(error.to_string()))?;
        let (hosts, access, stopped) = (self.hosts, Arc::new(access), CancellationToken::new());
        let mut connections = JoinSet::new();
        tokio::pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => break,
                accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => match accepted {
                    Ok((stream, _)) => {
                        let (hosts, access, stopped) = (Arc::clone(&hosts), Arc::clone(&access), stopped.clone());
                        connections.spawn(serve(stream, access, hosts, stopped));
                    }
                    Err(error) => refused(&error).await,
                },
                Some(_ended) = connections.join_next() => {}
            }
        }
        drop(listener);
        stopped.cancel();
        while connections.join_next().await.is_some() {}
        Ok(())
    }
}

/// A client could not be accepted.
async fn refused(error: &io::Error) {
    tracing::error!("a client cannot be accepted: {error}");
    tokio::time::sleep(PAUSE).await;
}

async fn serve(stream: TcpStream, access: Arc<Access>, hosts: Arc<Hosts>, stopped: CancellationToken) {
    // Updates are small, and each is wanted at once.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!("small messages can be late: {error}");
    }
    let socket = tokio::select! {
        socket = socket::accepted(stream, &access) => socket,
        () = stopped.cancelled() => return,
    };
    let Some(socket) = socket else { return };
    let served = socket::bridged(socket, |output, input| {
        connection(hosts, stopped.cancelled(), async |agent| sdk::streams(agent, output, input).await)
    });
    if let Err(error) = served.await {
        tracing::warn!("{error}");
    }
}
