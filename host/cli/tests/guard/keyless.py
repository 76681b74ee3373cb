"""A model that writes into a file what it has read in one, in three wire formats, for twenty turns.

Prints its address, then serves until it is ended. `GET /bodies` lists what it was sent, by path, as it came.
"""

import json
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BODIES = {}
TURNS = 20


def pieces(text):
    return [text[at : at + 5] for at in range(0, len(text), 5)]


def anthropic(number, text, call):
    usage = {"input_tokens": 10, "output_tokens": 1}
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "m", "content": []}
    yield {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None, "usage": usage}}
    yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    for piece in pieces(text):
        yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}
    yield {"type": "content_block_stop", "index": 0}
    if call:
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": "write", "input": {}}
        yield {"type": "content_block_start", "index": 1, "content_block": block}
        for piece in pieces(call):
            yield {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": piece}}
        yield {"type": "content_block_stop", "index": 1}
    reason = "tool_use" if call else "end_turn"
    yield {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": 9}}
    yield {"type": "message_stop"}


def chat(number, text, call):
    def chunk(delta, reason=None):
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return {"id": f"c{number}", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}

    yield chunk({"role": "assistant", "content": ""})
    for piece in pieces(text):
        yield chunk({"content": piece})
    if call:
        begun = {"index": 0, "id": f"call_{number}", "type": "function", "function": {"name": "write", "arguments": ""}}
        yield chunk({"tool_calls": [begun]})
        for piece in pieces(call):
            yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
    yield chunk({}, "tool_calls" if call else "stop")


def responses(number, text, call):
    part = {"type": "output_text", "text": text, "annotations": []}
    message = {"id": f"i{number}", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    made = {"id": f"f{number}", "type": "function_call", "call_id": f"call_{number}", "name": "write", "status": "completed"}
    output = [message] + ([{**made, "arguments": call}] if call else [])
    numbers = iter(range(1000))

    def event(kind, **fields):
        return {"type": kind, "sequence_number": next(numbers), **fields}

    def response(status, output):
        details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        usage = {"input_tokens": 10, "output_tokens": 9, "total_tokens": 19, **details}
        head = {"id": f"r{number}", "object": "response", "created_at": 1, "model": "m", "status": status, "output": output}
        return {**head, "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "usage": usage}

    yield event("response.created", response=response("in_progress", []))
    yield event("response.output_item.added", output_index=0, item={**message, "content": []})
    at = {"item_id": message["id"], "output_index": 0, "content_index": 0}
    yield event("response.content_part.added", **at, part={**part, "text": ""})
    for piece in pieces(text):
        yield event("response.output_text.delta", **at, delta=piece, logprobs=[])
    yield event("response.output_text.done", **at, text=text, logprobs=[])
    yield event("response.content_part.done", **at, part=part)
    yield event("response.output_item.done", output_index=0, item=message)
    if call:
        at = {"item_id": made["id"], "output_index": 1}
        yield event("response.output_item.added", output_index=1, item={**made, "arguments": ""})
        for piece in pieces(call):
            yield event("response.function_call_arguments.delta", **at, delta=piece)
        yield event("response.function_call_arguments.done", **at, arguments=call, name="write")
        yield event("response.output_item.done", output_index=1, item=output[1])
    yield event("response.completed", response=response("completed", output))


class Model(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.send(json.dumps(BODIES).encode(), "application/json")

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        path = self.path.split("?")[0]
        all = BODIES.setdefault(path, [])
        all.append(body)
        if path.endswith("count_tokens"):
            return self.send(b'{"input_tokens": 10}', "application/json")
        names = [re.search(f"TIDEGATE_SECRET_{kind}_[A-Z0-9]+", body) for kind in ("GITHUB_TOKEN", "PRIVATE_KEY")]
        words = [name.group() if name else "nothing" for name in names]
        call = json.dumps({"path": ".env", "content": f'"{words[0]}"\n{words[1]}\n'}) if len(all) < TURNS else ""
        make = anthropic if path.endswith("messages") else chat if path.endswith("completions") else responses
        events = list(make(len(all), f"Turn {len(all)}.\nThe token is {words[0]}.", call))
        frames = [(f"event: {event['type']}\n" if "type" in event else "") + f"data: {json.dumps(event)}\n\n" for event in events]
        self.send("".join(frames + (["data: [DONE]\n\n"] if make is chat else [])).encode(), "text/event-stream")

    def send(self, data, kind):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
server.serve_forever()
