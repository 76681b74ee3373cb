//! The answer of a server, as it is received.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Body as _;
use hyper::header::HeaderMap;
use hyper::{Response, StatusCode};
use tokio::time::timeout;

/// The time limit for the trailers of an answer whose message has ended.
const PATIENCE: Duration = Duration::from_secs(1);

/// The answer of a server. reqwest's own type drops the trailers.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    body: reqwest::Body,
    trailers: HeaderMap,
}

impl Answer {
    pub(super) fn of(response: reqwest::Response) -> Self {
        let (head, body) = Response::<reqwest::Body>::from(response).into_parts();
        Self { status: head.status, headers: head.headers, body, trailers: HeaderMap::new() }
    }

    /// Returns the next chunk; `None` at the end.
    ///
    /// # Errors
    /// The answer breaks off.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, reqwest::Error> {
        std::future::poll_fn(|cx| self.poll_chunk(cx)).await
    }

    /// As [`Answer::chunk`], for a body that is made of it.
    pub(super) fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, reqwest::Error>> {
        while let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(cx)) {
            match frame?.into_data() {
                Ok(data) => return Poll::Ready(Ok(Some(data))),
                Err(frame) => self.trailers.extend(frame.into_trailers().unwrap_or_default()),
            }
        }
        Poll::Ready(Ok(None))
    }

    /// Returns whether nothing of its body follows.
    pub(super) fn is_at_its_end(&self) -> bool {
        self.body.is_end_stream()
    }

    /// Returns the trailers of an answer that was read to its end.
    pub(super) fn trailers(&mut self) -> HeaderMap {
        std::mem::take(&mut self.trailers)
    }

    /// Reads an answer whose message has ended to its end, and returns its trailers; none if it does not end soon.
    pub(super) async fn end(&mut self) -> HeaderMap {
        let rest = async { while let Ok(Some(_)) = self.chunk().await {} };
        match timeout(PATIENCE, rest).await {
            Ok(()) => self.trailers(),
            Err(_) => HeaderMap::new(),
        }
    }
}
