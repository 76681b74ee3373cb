"""A model that says what it is asked to say, in three wire formats: `python scripted.py PORT`, with the standard library alone.

The last `case: NAME` in the messages of a request names the answer (`CASES`). A case with a forbidden word says it until a reminder is in
the request. The cases of `scripted_agent.py` are for agents, whose tools they call. `GET /requests` lists what was asked: path, case, reminders, whether it streams, whether the client
broke off, and the key; `DELETE /requests` forgets it.
"""

import json
import re
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# No files are left next to the source.
sys.dont_write_bytecode = True
from scripted_agent import FAIL, agent  # noqa: E402

REMINDER = "Never say that word."
REQUESTS = []

BAD = "Hello.\nNow the forbidden words come.\n"
GOOD = "These are fine.\n"
CALL = ("call", "write", {"path": "a.txt", "content": "harmless"})
BAD_CALL = ("call", "write", {"path": "a.txt", "content": "the forbidden word"})

# The blocks of an answer, before and after a reminder.
CASES = {
    "text": ([("text", BAD)], [("text", GOOD)]),
    "passed": ([("text", GOOD)],) * 2,
    "reasoning": ([("reasoning", "Let me see."), ("text", GOOD)],) * 2,
    "thought": ([("reasoning", "I say forbidden words."), ("text", GOOD)], [("reasoning", "I see."), ("text", GOOD)]),
    "calls": ([("text", "I write.\n"), CALL, ("call", "read", {"path": "b.txt"})],) * 2,
    "argument": ([("text", "I write.\n"), BAD_CALL], [("text", "Again.\n"), CALL]),
    "always": ([("text", BAD)],) * 2,
    "stop": ([("text", "Hello.\nThis is poison for you.\n")],) * 2,
    "unreadable": ([("text", "Hello.\n"), ("broken",), ("text", GOOD)],) * 2,
}


def pieces(text):
    return [text[at : at + 5] for at in range(0, len(text), 5)]


def anthropic(blocks, number, _):
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "m", "content": []}
    usage = {"input_tokens": 10, "output_tokens": 1}
    yield {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None, "usage": usage}}
    for index, (kind, *rest) in enumerate(blocks):
        if kind == "broken":
            yield None
            continue
        start, delta, key, text = {
            "text": lambda text: ({"type": "text", "text": ""}, "text_delta", "text", text),
            "reasoning": lambda text: (
                {"type": "thinking", "thinking": "", "signature": ""},
                "thinking_delta",
                "thinking",
                text,
            ),
            "call": lambda name, input: (
                {"type": "tool_use", "id": f"toolu_{number}_{index}", "name": name, "input": {}},
                "input_json_delta",
                "partial_json",
                json.dumps(input),
            ),
        }[kind](*rest)
        yield {"type": "content_block_start", "index": index, "content_block": start}
        for piece in pieces(text):
            yield {"type": "content_block_delta", "index": index, "delta": {"type": delta, key: piece}}
        if kind == "reasoning":
            signature = {"type": "signature_delta", "signature": "c2lnbmVk"}
            yield {"type": "content_block_delta", "index": index, "delta": signature}
        yield {"type": "content_block_stop", "index": index}
    reason = "tool_use" if any(block[0] == "call" for block in blocks) else "end_turn"
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": None},
        "usage": {"output_tokens": 9},
    }
    yield {"type": "message_stop"}


def chat(blocks, number, body):
    def chunk(delta, reason=None):
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        head = {"id": f"c{number}", "object": "chat.completion.chunk", "created": number, "model": "m"}
        return {**head, "choices": [choice]}

    yield chunk({"role": "assistant", "content": ""})
    calls = 0
    for kind, *rest in blocks:
        if kind == "broken":
            yield None
        elif kind == "call":
            name, arguments = rest
            call = {"index": calls, "id": f"call_{number}_{calls}", "type": "function"}
            yield chunk({"tool_calls": [{**call, "function": {"name": name, "arguments": ""}}]})
            for piece in pieces(json.dumps(arguments)):
                yield chunk({"tool_calls": [{"index": calls, "function": {"arguments": piece}}]})
            calls += 1
        else:
            key = "content" if kind == "text" else "reasoning_content"
            for piece in pieces(rest[0]):
                yield chunk({key: piece})
    yield chunk({}, "tool_calls" if calls else "stop")
    if (body.get("stream_options") or {}).get("include_usage"):
        usage = {"prompt_tokens": 10, "completion_tokens": 9, "total_tokens": 19}
        yield {**chunk({}), "choices": [], "usage": usage}


def item(block, number, index, is_done):
    """An item of the Responses API, and the text that streams of it."""
    kind, *rest = block
    status = "completed" if is_done else "in_progress"
    if kind == "text":
        part = {"type": "output_text", "text": rest[0], "annotations": [], "logprobs": []}
        content = [part] if is_done else []
        head = {"id": f"msg_{number}_{index}", "type": "message", "role": "assistant"}
        return {**head, "status": status, "content": content}, rest[0]
    if kind == "reasoning":
        summary = [{"type": "summary_text", "text": rest[0]}] if is_done else []
        return {"id": f"rs_{number}_{index}", "type": "reasoning", "summary": summary}, rest[0]
    if kind == "custom":
        text = rest[1]
        head = {"id": f"ctc_{number}_{index}", "type": "custom_tool_call", "call_id": f"call_{number}_{index}"}
        return {**head, "name": rest[0], "status": status, "input": text if is_done else ""}, text
    text = json.dumps(rest[1])
    head = {"id": f"fc_{number}_{index}", "type": "function_call", "call_id": f"call_{number}_{index}"}
    return {**head, "name": rest[0], "status": status, "arguments": text if is_done else ""}, text


def responses(blocks, number, _):
    count = iter(range(1000000))

    def event(kind, **fields):
        return {"type": kind, "sequence_number": next(count), **fields}

    yield event("response.created", response=response("in_progress", [], number))
    for index, block in enumerate(blocks):
        if block[0] == "broken":
            yield None
            continue
        begun, text = item(block, number, index, False)
        at = {"item_id": begun["id"], "output_index": index}
        yield event("response.output_item.added", output_index=index, item=begun)
        yield from (event(kind, **at, **fields) for kind, fields in parts(block, text))
        yield event("response.output_item.done", output_index=index, item=item(block, number, index, True)[0])
    items = [item(block, number, index, True)[0] for index, block in enumerate(blocks) if block[0] != "broken"]
    yield event("response.completed", response=response("completed", items, number))


def parts(block, text):
    """The events between the beginning and the end of an item."""
    kind = block[0]
    if kind == "text":
        part, more = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}, {"logprobs": []}
        yield "response.content_part.added", {"content_index": 0, "part": part}
        for piece in pieces(text):
            yield "response.output_text.delta", {"content_index": 0, "delta": piece, **more}
        yield "response.output_text.done", {"content_index": 0, "text": text, **more}
        yield "response.content_part.done", {"content_index": 0, "part": {**part, "text": text}}
    elif kind == "reasoning":
        yield "response.reasoning_summary_part.added", {"summary_index": 0, "part": {"type": "summary_text", "text": ""}}
        for piece in pieces(text):
            yield "response.reasoning_summary_text.delta", {"summary_index": 0, "delta": piece}
        yield "response.reasoning_summary_text.done", {"summary_index": 0, "text": text}
        part = {"type": "summary_text", "text": text}
        yield "response.reasoning_summary_part.done", {"summary_index": 0, "part": part}
    else:
        event, key = ("custom_tool_call_input", "input") if kind == "custom" else ("function_call_arguments", "arguments")
        for piece in pieces(text):
            yield f"response.{event}.delta", {"delta": piece}
        yield f"response.{event}.done", {key: text, **({} if kind == "custom" else {"name": block[1]})}


def response(status, output, number):
    usage = {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 9,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 19,
    }
    head = {"id": f"r{number}", "object": "response", "created_at": number, "model": "m", "status": status}
    rest = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "output": output}
    return {**head, **rest, "usage": usage if status == "completed" else None}


def whole(make, blocks, number):
    """The same as one body."""
    if any(block[0] == "broken" for block in blocks):
        return None
    texts = "".join(block[1] for block in blocks if block[0] == "text")
    calls = [block for block in blocks if block[0] == "call"]
    if make is anthropic:
        content = []
        for index, (kind, *rest) in enumerate(blocks):
            if kind == "text":
                content.append({"type": "text", "text": rest[0]})
            elif kind == "reasoning":
                content.append({"type": "thinking", "thinking": rest[0], "signature": "c2lnbmVk"})
            else:
                call = {"type": "tool_use", "id": f"toolu_{number}_{index}", "name": rest[0], "input": rest[1]}
                content.append(call)
        usage = {"input_tokens": 10, "output_tokens": 9}
        head = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "m", "content": content}
        reason = "tool_use" if calls else "end_turn"
        return {**head, "stop_reason": reason, "stop_sequence": None, "usage": usage}
    if make is chat:
        message = {"role": "assistant", "content": texts, "refusal": None}
        if calls:
            message["tool_calls"] = [
                {
                    "id": f"call_{number}_{index}",
                    "type": "function",
                    "function": {"name": name, "arguments": json.dumps(arguments)},
                }
                for index, (_, name, arguments) in enumerate(calls)
            ]
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop", "logprobs": None}
        head = {"id": f"c{number}", "object": "chat.completion", "created": number, "model": "m"}
        usage = {"prompt_tokens": 10, "completion_tokens": 9, "total_tokens": 19}
        return {**head, "choices": [choice], "usage": usage}
    return response("completed", [item(block, number, index, True)[0] for index, block in enumerate(blocks)], number)


def frames(make, events):
    for event in events:
        if event is None:
            yield 'data: {"type":"content_block_delta","delta":{"text":"forb\n\n'
            continue
        name = event.get("type")
        yield (f"event: {name}\n" if name else "") + f"data: {json.dumps(event)}\n\n"
    if make is chat:
        yield "data: [DONE]\n\n"


class Model(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        models = {"object": "list", "data": [{"id": "m", "object": "model", "created": 1, "owned_by": "o"}]}
        self.json({"/requests": REQUESTS, "/health": {}}.get(self.path, models))

    def do_DELETE(self):
        REQUESTS.clear()
        self.json({})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        path = self.path.split("?")[0]
        said = json.dumps(body.get("messages") or body.get("input"))
        named = re.findall(r"case: (\w+)", said)
        about = {
            "path": self.path,
            "case": named[-1] if named else None,
            "reminders": said.count(REMINDER),
            "stream": bool(body.get("stream")),
            "cut": False,
            "key": self.headers.get("x-api-key") or self.headers.get("authorization"),
        }
        REQUESTS.append(about)
        if path.endswith("count_tokens"):
            return self.json({"input_tokens": 10})
        make = anthropic if path.endswith("messages") else chat if path.endswith("completions") else responses
        # Each attempt at an answer has ids of its own; agents confuse calls that have those of another answer.
        number = about["reminders"] if about["case"] in CASES else len(REQUESTS)
        try:
            blocks = self.blocks(about, body)
            if blocks is FAIL:
                return self.fail(make, number, body)
            if not about["stream"]:
                value = whole(make, blocks, number)
                return self.json(value, "{not JSON" if value is None else None)
            self.stream(frames(make, make(blocks, number, body)), endless=about["case"] == "endless")
        except OSError:
            about["cut"] = True

    def blocks(self, about, body):
        reminded = min(about["reminders"], 1)
        earlier = [one for one in REQUESTS[:-1] if one["case"] == about["case"]]
        own = agent(about["case"], body, reminded, bool(earlier))
        return own or CASES.get(about["case"], CASES["passed"])[reminded]

    def fail(self, make, number, body):
        """Begins an answer and reports in its middle that it has failed."""
        error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
        if make is responses:
            cause = {"code": "server_error", "message": "It failed."}
            failed = {**response("failed", [], number), "error": cause}
            error = {"type": "response.failed", "sequence_number": 9, "response": failed}
        elif make is chat:
            error = {"error": {"message": "Overloaded", "type": "server_error", "code": None}}
        begun = list(frames(make, make([("text", "It begins.\n")], number, body)))[:4]
        name = f"event: {error['type']}\n" if "type" in error else ""
        self.stream([*begun, f"{name}data: {json.dumps(error)}\n\n"])

    def stream(self, frames, endless=False):
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

    def json(self, value, text=None):
        data = (text or json.dumps(value)).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Model).serve_forever()
