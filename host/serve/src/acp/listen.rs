//! Websockets: one server, and one connection of the protocol for each.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::access::Access;
use super::hosts::Hosts;
use super::{ConnectionError, Server, connection, handshake, sdk, socket};

/// The most connections at a time. More of them wait.
const MAX_CONNECTIONS: usize = 64;

/// The maximum number of clients that are not admitted yet, or wait for a connection: clients without a token take none of the connections.
const MAX_WAITING: usize = 64;

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
        let (places, handshakes) = (Places::default(), Arc::new(Semaphore::new(MAX_WAITING)));
        tokio::pin!(stop);
        loop {
            let accepted = async {
                // The semaphore is never closed.
                let waiting = Arc::clone(&handshakes).acquire_owned().await.ok();
                (listener.accept().await, waiting)
            };
            tokio::select! {
                () = &mut stop => break,
                (accepted, waiting) = accepted => match accepted {
                    Ok((stream, _)) => {
                        let (hosts, access, stopped) = (Arc::clone(&hosts), Arc::clone(&access), stopped.clone());
                        connections.spawn(serve(stream, (access, places.clone(), waiting), hosts, stopped));
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

/// The permits for connections.
#[derive(Clone)]
struct Places(Arc<Semaphore>);

impl Default for Places {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_CONNECTIONS)))
    }
}

impl Places {
    /// Waits for a permit, which is returned when it is dropped.
    async fn take(&self) -> Option<OwnedSemaphorePermit> {
        let free = Arc::clone(&self.0).try_acquire_owned();
        if let Ok(place) = free {
            return Some(place);
        }
        tracing::warn!(
            "{MAX_CONNECTIONS} clients are connected, and no more at a time: another one waits until one leaves"
        );
        // The semaphore is never closed.
        Arc::clone(&self.0).acquire_owned().await.ok()
    }
}

async fn serve(
    stream: TcpStream,
    (access, places, waiting): (Arc<Access>, Places, Option<OwnedSemaphorePermit>),
    hosts: Arc<Hosts>,
    stopped: CancellationToken,
) {
    // Updates are small, and each is wanted at once.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!("small messages can be late: {error}");
    }
    let admitted = async {
        let socket = handshake::accepted(stream, &access).await?;
        Some((socket, places.take().await?))
    };
    let admitted = tokio::select! {
        admitted = admitted => admitted,
        () = stopped.cancelled() => return,
    };
    let Some((socket, _place)) = admitted else { return };
    drop(waiting);
    let served = socket::bridged(socket, |output, input| {
        connection(hosts, stopped.cancelled(), async |agent| sdk::streams(agent, output, input).await)
    });
    if let Err(error) = served.await {
        tracing::warn!("{error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_client_waits_for_a_place() {
        let places = Places::default();
        let mut taken = Vec::new();
        for _ in 0..MAX_CONNECTIONS {
            taken.extend(places.take().await);
        }
        assert_eq!(taken.len(), MAX_CONNECTIONS);
        let waits = tokio::time::timeout(Duration::from_millis(20), places.take()).await;
        assert!(waits.is_err());
        drop(taken.pop());
        assert!(places.take().await.is_some());
    }
}
