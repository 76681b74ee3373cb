//! A provider whose answers stream 50 deltas a second; each delta is a line with the time at which it was sent.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// Between two deltas.
const EVERY: Duration = Duration::from_millis(20);

/// Starts the server; returns its URL. Times are counted from `began`.
pub(crate) async fn start(began: Instant, answer: u64) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            // A program that closes its connection has cancelled a request.
            tokio::spawn(async move { drop(serve(socket, began, answer).await) });
        }
    });
    Ok(url)
}

async fn serve(mut socket: TcpStream, began: Instant, answer: u64) -> Result<()> {
    socket.set_nodelay(true)?;
    let (input, mut output) = socket.split();
    let mut input = BufReader::new(input);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if input.read_line(&mut line).await? == 0 {
                return Ok(());
            }
            match line.trim().split_once(':') {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => length = value.trim().parse()?,
                Some(_) => {}
                None if line.trim().is_empty() => break,
                None => {}
            }
        }
        input.read_exact(&mut vec![0; length]).await?;
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        output.write_all(head.as_bytes()).await?;
        let usage = json!({"input_tokens": 100, "output_tokens": 1});
        let message =
            json!({"id": "m", "type": "message", "role": "assistant", "model": "load", "content": [], "usage": usage});
        let block = json!({"type": "text", "text": ""});
        output.write_all(&event(&json!({"type": "message_start", "message": message}))).await?;
        output.write_all(&event(&json!({"type": "content_block_start", "index": 0, "content_block": block}))).await?;
        // Answers of different sessions are not in step.
        let phase = EVERY.mul_f64(f64::from(began.elapsed().subsec_nanos() % 1_000) / 1_000.0);
        let mut next = tokio::time::interval_at(tokio::time::Instant::now() + phase, EVERY);
        for _ in 0..answer * 50 {
            next.tick().await;
            let text = format!("sent {}\n", began.elapsed().as_micros());
            let delta = json!({"type": "text_delta", "text": text});
            output.write_all(&event(&json!({"type": "content_block_delta", "index": 0, "delta": delta}))).await?;
        }
        output.write_all(&event(&json!({"type": "content_block_stop", "index": 0}))).await?;
        let end = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}});
        output.write_all(&event(&end)).await?;
        output.write_all(&event(&json!({"type": "message_stop"}))).await?;
        output.write_all(b"0\r\n\r\n").await?;
    }
}

/// An event in a chunk of its own.
fn event(value: &Value) -> Vec<u8> {
    let text = format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap_or_default());
    format!("{:x}\r\n{text}\r\n", text.len()).into_bytes()
}
