"""A model that says a forbidden word until a rule reminds it, in three wire formats.

Prints its address, then serves until it is ended. `GET /requests` lists what it was asked: path, whether it was reminded, whether the
client broke off, and the key.
"""

import json
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

REQUESTS = []
BAD = "Hello.\nNow the forbidden words come.\n"
GOOD = "These are fine.\n"


def pieces(text):
    return [text[at : at + 5] for at in range(0, len(text), 5)]


def anthropic(text):
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []}
    usage = {"input_tokens": 10, "output_tokens": 1}
    yield {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None, "usage": usage}}
    yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    for piece in pieces(text):
        yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}
    yield {"type": "content_block_stop", "index": 0}
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn", "stop_sequence": None},
        "usage": {"output_tokens": 9},
    }
    yield {"type": "message_stop"}


def chat(text):
    def chunk(delta, reason=None):
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        head = {"id": f"c{len(REQUESTS)}", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        return {**head, "choices": [choice]}

    yield chunk({"role": "assistant", "content": ""})
    for piece in pieces(text):
        yield chunk({"content": piece})
    yield chunk({}, "stop")


def responses(text):
    number = iter(range(1000))
    item_id, part = f"i{len(REQUESTS)}", {"type": "output_text", "text": text, "annotations": []}

    def event(kind, **fields):
        return {"type": kind, "sequence_number": next(number), **fields}

    def item(status, content):
        return {"id": item_id, "type": "message", "role": "assistant", "status": status, "content": content}

    at = {"item_id": item_id, "output_index": 0, "content_index": 0}
    yield event("response.created", response=response("in_progress", []))
    yield event("response.output_item.added", output_index=0, item=item("in_progress", []))
    yield event("response.content_part.added", **at, part={**part, "text": ""})
    for piece in pieces(text):
        yield event("response.output_text.delta", **at, delta=piece, logprobs=[])
    yield event("response.output_text.done", **at, text=text, logprobs=[])
    yield event("response.content_part.done", **at, part=part)
    yield event("response.output_item.done", output_index=0, item=item("completed", [part]))
    yield event("response.completed", response=response("completed", [item("completed", [part])]))


def response(status, output):
    usage = {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 9,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 19,
    }
    head = {"id": f"r{len(REQUESTS)}", "object": "response", "created_at": 1, "model": "m", "status": status}
    rest = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "output": output}
    return {**head, **rest, "usage": usage if status == "completed" else None}


def whole(path, text):
    if path.endswith("messages"):
        content = [{"type": "text", "text": text}]
        usage = {"input_tokens": 10, "output_tokens": 9}
        head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": content}
        return {**head, "stop_reason": "end_turn", "stop_sequence": None, "usage": usage}
    if path.endswith("completions"):
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    part = {"type": "output_text", "text": text, "annotations": []}
    item = {"id": "i", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    return response("completed", [item])


class Model(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.json(REQUESTS if self.path == "/requests" else {"data": [{"id": "m", "object": "model"}]})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        path = self.path.split("?")[0]
        said = json.dumps(body)
        key = self.headers.get("x-api-key") or self.headers.get("authorization")
        about = {"path": self.path, "reminded": "Never say that word." in said, "cut": False, "key": key}
        REQUESTS.append(about)
        if path.endswith("count_tokens"):
            return self.json({"input_tokens": 10})
        text = GOOD if about["reminded"] or "politely" in said else BAD
        if not body.get("stream"):
            return self.json(whole(path, text))
        make = anthropic if path.endswith("messages") else chat if path.endswith("completions") else responses
        events = [json.dumps(event) for event in make(text)]
        names = [json.loads(event).get("type") for event in events]
        frames = [(f"event: {name}\n" if name else "") + f"data: {event}\n\n" for name, event in zip(names, events)]
        frames += ["data: [DONE]\n\n"] if make is chat else []
        try:
            self.stream(frames, endless="for ever" in said)
        except OSError:
            about["cut"] = True

    def stream(self, frames, endless):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for frame in frames:
            self.chunk(frame)
        while endless:
            self.chunk(": still here\n\n")
            time.sleep(0.01)
        self.wfile.write(b"0\r\n\r\n")

    def chunk(self, text):
        data = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def json(self, value):
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
server.serve_forever()
