//! An answer that is passed on as it is: its bytes go from one connection to the other when the client's connection takes them.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use hyper::body::Frame;
use hyper::header::HeaderMap;
use tokio::time::Instant;

use super::answer::{Alarm, Body};
use super::progress::Progress;
use super::received::Answer;

/// The body of an answer that is passed on. One that is dropped before its end was abandoned by the client.
struct Passing {
    answer: Answer,
    alarm: Alarm,
    /// `None`: it is over.
    progress: Option<Progress>,
    /// The number of bytes that were handed to the connection last, which it has taken when it asks for more.
    handed: usize,
    /// The reason why the body breaks off.
    failure: Option<io::Error>,
}

/// Returns the body that passes an answer on.
pub(super) fn body(answer: Answer, progress: Progress) -> Body {
    let alarm = Alarm::new(progress.silent().min(progress.late()));
    BoxBody::new(Passing { answer, alarm, progress: Some(progress), handed: 0, failure: None })
}

/// What follows in the body.
enum Follows {
    Bytes(Bytes),
    End(HeaderMap),
    /// It breaks off, for this reason and with this outcome.
    Break(String, &'static str),
}

impl Passing {
    fn follows(&mut self, progress: &mut Progress, cx: &mut Context<'_>) -> Poll<Follows> {
        // A server that always has more must not postpone it.
        if Instant::now() >= progress.late() {
            return Poll::Ready(Follows::Break(progress.limits().late_words(), "late"));
        }
        match self.answer.poll_chunk(cx) {
            Poll::Ready(Ok(Some(bytes))) => {
                progress.received();
                return Poll::Ready(Follows::Bytes(bytes));
            }
            Poll::Ready(Ok(None)) => return Poll::Ready(Follows::End(self.answer.trailers())),
            Poll::Ready(Err(error)) => return Poll::Ready(Follows::Break(net::cause(&error), "broken")),
            Poll::Pending => {}
        }
        let next = progress.late().min(progress.silent());
        ready!(self.alarm.poll_at(cx, next));
        Poll::Ready(match next == progress.late() {
            true => Follows::Break(progress.limits().late_words(), "late"),
            false => Follows::Break(progress.limits().idle_words(), "silent"),
        })
    }
}

impl hyper::body::Body for Passing {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if let Some(failure) = self.failure.take() {
            return Poll::Ready(Some(Err(failure)));
        }
        let Some(mut progress) = self.progress.take() else { return Poll::Ready(None) };
        progress.sent(std::mem::take(&mut self.handed));
        match self.follows(&mut progress, cx) {
            Poll::Pending => {
                self.progress = Some(progress);
                Poll::Pending
            }
            Poll::Ready(Follows::Bytes(bytes)) => {
                self.handed = bytes.len();
                self.progress = Some(progress);
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Poll::Ready(Follows::End(trailers)) => {
                progress.over("relayed");
                Poll::Ready((!trailers.is_empty()).then(|| Ok(Frame::trailers(trailers))))
            }
            Poll::Ready(Follows::Break(why, outcome)) => {
                progress.over(outcome);
                // On a failure the connection drops unwritten bytes: it writes them while no chunk arrives.
                self.failure = Some(io::Error::other(why));
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        // The body of an answer to HEAD, or with a status that has none, is not asked for.
        let outcome = if self.answer.is_at_its_end() { "relayed" } else { "abandoned" };
        if let Some(progress) = self.progress.take() {
            progress.over(outcome);
        }
    }
}
