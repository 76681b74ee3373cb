"""OtelTap, an OpenTelemetry receiver, behind a recorder of what is sent to it: `python otel_receiver.py PORT`.

`POST /v1/…` is recorded and handed to OtelTap. `GET /received` answers with what OtelTap made of it, and with the requests as they came.
"""

import asyncio
import json
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from oteltap import OtelTapHttpProtobufReceiver, OtelTapHttpProtobufReceiverSettings

# How long OtelTap may take to hand out what it was sent.
PATIENCE = 60


class Received:
    """What OtelTap handed out, and the requests that it was sent."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.ready = threading.Event()
        self.spans, self.metrics = [], []
        self.requests = []

    async def collect(self) -> None:
        settings = OtelTapHttpProtobufReceiverSettings(http_port=self.port)
        async with OtelTapHttpProtobufReceiver(settings) as receiver:

            async def keep(stream, kept) -> None:
                async for message in stream:
                    kept.append(message)

            streams = [(receiver.stream_traces(), self.spans), (receiver.stream_metrics(), self.metrics)]
            tasks = [asyncio.create_task(keep(stream, kept)) for stream, kept in streams]
            await asyncio.sleep(0)  # they are subscribed from here on
            self.ready.set()
            await asyncio.gather(*tasks)

    def send(self, path: str, headers, body: bytes) -> int:
        """Records a request and hands it to OtelTap; gives the status of its answer."""
        self.requests.append((path, dict(headers), body))
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", body, method="POST")
        request.add_header("Content-Type", headers["Content-Type"])
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    def decoded(self, path: str, kind) -> list:
        return [kind.FromString(body) for at, _, body in list(self.requests) if at == path]

    def as_json(self) -> dict:
        """What was received, once OtelTap has handed out as much as the generated messages find in the requests."""
        traces = self.decoded("/v1/traces", ExportTraceServiceRequest)
        metrics = self.decoded("/v1/metrics", ExportMetricsServiceRequest)
        resources = [resource for request in traces for resource in request.resource_spans]
        spans = sum(len(scope.spans) for resource in resources for scope in resource.scope_spans)
        scopes = [scope for request in metrics for resource in request.resource_metrics for scope in resource.scope_metrics]
        points = sum(len(scope.metrics) for scope in scopes)
        until = time.monotonic() + PATIENCE
        while len(self.spans) < spans or len(self.metrics) < points:
            if time.monotonic() > until:
                raise TimeoutError(f"OtelTap gave {len(self.spans)} of {spans} spans, {len(self.metrics)} of {points} metrics")
            time.sleep(0.01)
        return {
            "spans": [MessageToDict(span) for span in self.spans],
            "metrics": [MessageToDict(metric) for metric in self.metrics],
            "resources": [MessageToDict(resource.resource) for resource in resources],
            "requests": [
                {"path": path, "headers": headers, "hex": body.hex()} for path, headers, body in list(self.requests)
            ],
        }


def handler(received: Received):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if self.path == "/health":
                self.answer(200 if received.ready.is_set() else 503, b"{}")
            elif self.path == "/received":
                try:
                    self.answer(200, json.dumps(received.as_json()).encode())
                except Exception as error:
                    self.answer(500, str(error).encode())
            else:
                self.answer(404, b"")

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.answer(received.send(self.path, self.headers, body), b"")

        def answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def main() -> None:
    if len(sys.argv) != 2 or not sys.argv[1].isdigit():
        sys.exit("usage: otel_receiver.py PORT")
    received = Received(free_port())
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), handler(received))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    asyncio.run(received.collect())


if __name__ == "__main__":
    main()
