//! A small server, for the demo.

use std::io;
use std::net::TcpListener;

fn main() -> io::Result<()> {
    let listener = listen()?;
    println!("listening on {}", listener.local_addr()?);
    Ok(())
}

fn listen() -> io::Result<TcpListener> {
    TcpListener::bind(("127.0.0.1", 8080))
}
