"""Proxies, and a model's server that only they can find: `python proxy.py PORT FOLDER`.

Three proxies of `pproxy`: one that speaks HTTP and SOCKS 5, one that wants a user and a password, and one behind TLS. They reach
`provider.example`, which no other program can resolve: a server with a certificate of an authority that `trustme` makes, written to FOLDER.
`GET /facts` on PORT answers with the ports, the file of the authority, and the hosts that the proxies have connected to so far.
"""

import asyncio
import json
import os
import re
import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pproxy
import trustme

NAME = "provider.example"

ANSWER = [
    {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 1, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Reached."}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
    {"type": "message_stop"},
]


class Http(pproxy.proto.HTTP):
    """`pproxy` finds a password only under a name that is spelled as it does; names of headers have no case."""

    async def accept(self, reader, user, writer, **more):
        head = await reader.read_until(b"\r\n\r\n")
        reader.rollback(re.sub(rb"(?i)\r\n(proxy-authorization|host):", lambda name: name[0].title(), head))
        return await super().accept(reader, user, writer, **more)


class Quiet(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, kind, body):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Provider(Quiet):
    """The Messages API, as far as one answer goes."""

    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length") or 0))
        events = "".join(f"data: {json.dumps(event)}\n\n" for event in ANSWER)
        self.answer("text/event-stream", events.encode())

    def do_GET(self):
        self.answer("application/json", json.dumps({"data": [{"id": "m"}]}).encode())


def serve(handler, port=0, context=None):
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    server.daemon_threads = True
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


async def proxy(schemes, rest, context, connected):
    """Starts a proxy and returns its port."""
    direct = pproxy.Connection("direct")
    connect = direct.open_connection

    async def open_connection(host, port, *more):
        connected.append(f"{host}:{port}")
        return await connect("127.0.0.1" if host == NAME else host, port, *more)

    direct.open_connection = open_connection
    server = pproxy.Server(f"{schemes}://127.0.0.1:0{rest}")
    server.protos = [Http(None) if type(one) is pproxy.proto.HTTP else one for one in server.protos]
    if context:
        server.sslserver = context
    started = await server.start_server({"rserver": [direct], "verbose": lambda line: print(line, flush=True)})
    return started.sockets[0].getsockname()[1]


async def main():
    port, folder = int(sys.argv[1]), sys.argv[2]
    authority = trustme.CA()
    file = os.path.join(folder, f"authority-{os.getpid()}.pem")
    authority.cert_pem.write_to_path(file)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(NAME, "localhost", "127.0.0.1").configure_cert(context)
    connected = []
    facts = {
        "authority": file,
        "tls": serve(Provider, context=context),
        "plain": serve(Provider),
        "proxy": await proxy("http+socks5", "", None, connected),
        "guarded": await proxy("http+socks5", "#user:pass-word-1", None, connected),
        "behind_tls": await proxy("http+ssl", "", context, connected),
        "connected": connected,
    }

    class Control(Quiet):
        def do_GET(self):
            self.answer("application/json", json.dumps(facts).encode())

    serve(Control, port)
    await asyncio.Event().wait()


asyncio.run(main())
