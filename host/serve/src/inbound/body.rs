//! Reading the body of a request within limits.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::Body;
use hyper::header::HeaderMap;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::LAST_BYTES;

/// The reason why a body is not read to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BodyFault {
    /// It exceeds the limit, in bytes.
    Size { limit: usize },
    /// It did not arrive in time.
    Slow { limit: Duration },
    /// The server closes.
    Closing,
    /// It has broken off (the cause).
    Broken(String),
}

/// Reads the body of a request, which arrives in chunks, and its trailers. `closing`: cancelled when the server closes.
///
/// # Errors
/// It is too large, a part of it does not come in time, the server closes before it is complete, or the client disconnects.
pub(crate) async fn read<B>(
    body: B,
    limit: usize,
    patience: Duration,
    closing: &CancellationToken,
) -> Result<(Bytes, HeaderMap), BodyFault>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: std::fmt::Display,
{
    let closed = async {
        closing.cancelled().await;
        tokio::time::sleep(LAST_BYTES).await;
    };
    tokio::select! {
        biased;
        read = whole(body, limit, patience) => read,
        () = closed => Err(BodyFault::Closing),
    }
}

async fn whole<B>(mut body: B, limit: usize, patience: Duration) -> Result<(Bytes, HeaderMap), BodyFault>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: std::fmt::Display,
{
    // A body whose length is too large is not read. Until the first read, a client that sent `Expect: 100-continue` gets no response.
    if body.size_hint().lower() > limit as u64 {
        return Err(BodyFault::Size { limit });
    }
    let (mut read, mut trailers) = (BytesMut::new(), HeaderMap::new());
    loop {
        let Ok(frame) = timeout(patience, body.frame()).await else {
            return Err(BodyFault::Slow { limit: patience });
        };
        match frame {
            None => return Ok((read.freeze(), trailers)),
            Some(Err(error)) => return Err(BodyFault::Broken(error.to_string())),
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) if read.len() + data.len() > limit => return Err(BodyFault::Size { limit }),
                Ok(data) => read.extend_from_slice(&data),
                Err(frame) => trailers.extend(frame.into_trailers().unwrap_or_default()),
            },
        }
    }
}
