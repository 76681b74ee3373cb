"""Makes answers as providers send them: `python shapes.py COUNT SEED`, so many for each wire format, a line of JSON each.

Objects are built from the types of the vendors' SDKs, those in beta included, with unknown fields among them; answers are consistent in what
they stream and repeat. Frames are written in all ways that server-sent events allow. A *wild* answer is not consistent, or no answer at all.
"""

import base64
import datetime
import json
import random
import sys
import types
import typing

import anthropic.types as claude
import anthropic.types.beta as claude_beta
import openai.types.chat as chat
import openai.types.responses as gpt
import pydantic
import typing_extensions

R = random.Random()
WORDS = [
    "Hello", " world", "é", "😀", "\n", "\\", '"', "data: x\n\n", "\r\n", "\u2028", "{}", "[DONE]", "<b>", "\t", "日本語", "\u0000", " ",
    "x" * 300, "event: ping\n", "//", "\x7f",
]  # fmt: skip


def words(most=6):
    return "".join(R.choice(WORDS) for _ in range(R.randint(1, most)))


def json_value(depth=2):
    kind = R.randint(0, 7 if depth else 4)
    simple = [None, True, R.randint(-(2**60), 2**60), R.choice([0.0, 1.5, -2e-7, 1e22]), words(2)]
    if kind < 5:
        return simple[kind]
    if kind == 5:
        return [json_value(depth - 1) for _ in range(R.randint(0, 2))]
    return {words(1): json_value(depth - 1) for _ in range(R.randint(0, 2))}


def of(kind, depth=5):
    """A value of a type."""
    while isinstance(kind, typing_extensions.TypeAliasType):
        kind = kind.__value__
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Annotated, typing_extensions.Annotated):
        return of(arguments[0], depth)
    if origin in (typing.Union, types.UnionType):
        options = [one for one in arguments if one is not type(None)] if depth > 0 else arguments
        return None if type(None) in arguments and (depth <= 0 or R.random() < 0.3) else of(R.choice(options), depth)
    if origin in (typing.Literal, typing_extensions.Literal):
        return R.choice(arguments)
    if origin in (list, typing.Iterable):
        return [of(arguments[0], depth - 1) for _ in range(R.randint(0, 2) if depth > 0 else 0)]
    if origin is dict:
        return {words(1): of(arguments[1], depth - 1) for _ in range(R.randint(0, 2) if depth > 0 else 0)}
    if isinstance(kind, type) and issubclass(kind, pydantic.BaseModel):
        return model(kind, depth)
    simple = {str: words, int: lambda: R.randint(0, 9999), float: R.random, bool: lambda: R.random() < 0.5}
    if kind is datetime.datetime:
        return "2026-01-01T00:00:00Z"
    return simple.get(kind, json_value)()


def model(kind, depth=5):
    fields = {}
    for name, field in kind.model_fields.items():
        if field.is_required() or (depth > 0 and R.random() < 0.5):
            fields[field.alias or name] = of(field.annotation, depth - 1)
    return unknown(fields)


def unknown(fields):
    """The same with fields that nobody has declared."""
    if R.random() < 0.1:
        fields["x_" + R.choice("abc")] = json_value()
    return fields


def members(union):
    """The types of a union by what their field `type` is."""
    while isinstance(union, typing_extensions.TypeAliasType):
        union = union.__value__
    if typing.get_origin(union) in (typing.Annotated, typing_extensions.Annotated):
        union = typing.get_args(union)[0]
    return {typing.get_args(one.model_fields["type"].annotation)[0]: one for one in typing.get_args(union)}


def split(text):
    parts = []
    while text:
        at = R.randint(1, max(1, min(len(text), R.choice([1, 4, 40, len(text)]))))
        parts.append(text[:at])
        text = text[at:]
    return parts or [""]


BLOCKS = {**members(claude.ContentBlock), **members(claude_beta.BetaContentBlock)}


def anthropic_block(index):
    kind = R.choice(["text", "text", "thinking", "tool_use", *BLOCKS])
    block, deltas = model(BLOCKS[kind]), []
    if kind == "text":
        block["text"], block["citations"] = "", R.choice([None, []])
        deltas = [{"type": "text_delta", "text": part} for part in split(words())]
        citation = {"type": "citations_delta", "citation": of(claude.citations_delta.CitationsDelta.model_fields["citation"].annotation)}
        deltas[R.randint(0, len(deltas)) : 0] = [citation] * R.randint(0, 1)
    elif kind == "thinking":
        block["thinking"], block["signature"] = "", ""
        deltas = [{"type": "thinking_delta", "thinking": part} for part in split(words())]
        deltas.append({"type": "signature_delta", "signature": "c2ln" * R.randint(1, 99)})
    elif kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
        block["input"] = {}
        deltas = [{"type": "input_json_delta", "partial_json": part} for part in ["", *split(json.dumps({"a": words()}))]]
    yield {"type": "content_block_start", "index": index, "content_block": block}
    for delta in deltas:
        yield unknown({"type": "content_block_delta", "index": index, "delta": unknown(delta)})
        if R.random() < 0.1:
            yield {"type": R.choice(["ping", "ping", "x_new_event"])}
    yield {"type": "content_block_stop", "index": index}


def anthropic_message():
    message = model(R.choice([claude.Message, claude_beta.BetaMessage]))
    return {**message, "role": "assistant", "type": "message", "stop_reason": None, "stop_sequence": None, "content": []}


def anthropic_stream():
    yield unknown({"type": "message_start", "message": anthropic_message()})
    if R.random() < 0.8:
        yield {"type": "ping"}
    for index in range(R.randint(0, 4)):
        yield from anthropic_block(index)
    delta = model(claude.raw_message_delta_event.Delta)
    yield unknown({"type": "message_delta", "delta": delta, "usage": model(claude.MessageDeltaUsage)})
    yield {"type": "message_stop"}


def anthropic_whole():
    kinds = [R.choice(list(BLOCKS)) for _ in range(R.randint(0, 4))]
    return {**anthropic_message(), "content": [model(BLOCKS[kind]) for kind in kinds], "stop_reason": "end_turn"}


def chat_head(kind):
    head = {"id": words(1), "object": kind, "created": R.randint(0, 2**31), "model": words(1)}
    for key in ["service_tier", "system_fingerprint", "obfuscation", "provider", "citations", "x_groq"]:
        if R.random() < 0.2:
            head[key] = json_value()
    return head


def chat_chunk(head, delta, **more):
    choice = {"index": 0, "delta": unknown(delta), "finish_reason": None, **more}
    if R.random() < 0.3:
        choice["logprobs"] = R.choice([None, model(chat.chat_completion_chunk.ChoiceLogprobs)])
    return {**head, "choices": [choice]}


def chat_deltas():
    yield {"role": "assistant", "content": R.choice(["", None])}
    for _ in range(R.randint(0, 4)):
        kind = R.choice(["content", "content", "refusal", "reasoning_content", "reasoning", "tool_calls", "audio", "annotations"])
        if kind == "tool_calls":
            index = R.randint(0, 2)
            call = {"index": index, "id": f"call_{index}", "type": "function", "function": {"name": f"write{index}", "arguments": ""}}
            yield {"tool_calls": [call]}
            for part in split(json.dumps({"a": words()})):
                yield {"tool_calls": [{"index": index, "function": {"arguments": part}}]}
            # A second one at this index would be another call.
            return
        elif kind == "audio":
            yield {"audio": {"id": "audio_1", "data": base64.b64encode(R.randbytes(600)).decode(), "expires_at": 1}}
        elif kind == "annotations":
            yield {"annotations": [model(chat.chat_completion_message.Annotation)]}
        else:
            for part in split(words()):
                yield {kind: part}


def chat_stream():
    head = chat_head("chat.completion.chunk")
    if R.random() < 0.2:
        yield {**head, "choices": [], "prompt_filter_results": [json_value()]}
    has_calls = False
    for delta in chat_deltas():
        has_calls |= "tool_calls" in delta
        yield chat_chunk(head, delta)
    yield chat_chunk(head, {}, finish_reason="tool_calls" if has_calls else R.choice(["stop", "length", "content_filter"]))
    if R.random() < 0.5:
        yield {**head, "choices": [], "usage": model(chat.chat_completion.CompletionUsage)}


def chat_whole():
    completion = {**model(chat.ChatCompletion), "object": "chat.completion"}
    choice = model(chat.chat_completion.Choice)
    choice["index"], choice["message"]["role"] = 0, "assistant"
    calls = [call.get("function") for call in choice["message"].get("tool_calls") or []]
    for call in [*calls, choice["message"].get("function_call")]:
        if call:
            call["arguments"] = json.dumps({"a": words()})
    return {**completion, "choices": [choice]}


ITEMS = members(gpt.ResponseOutputItem)
EVENTS = members(gpt.ResponseStreamEvent)


def responses_item(index):
    """An item as it is when it ends, and the events between its beginning and its end."""
    kind = R.choice(["message", "message", "reasoning", "function_call", "custom_tool_call", *ITEMS])
    item = {**model(ITEMS[kind]), "id": f"item_{index}", "type": kind}
    at, events = {"item_id": item["id"], "output_index": index}, []
    if kind == "message":
        item["role"], text = "assistant", words()
        part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
        where = {**at, "content_index": 0}
        events = [{"type": "response.content_part.added", **where, "part": {**part, "text": ""}}]
        for piece in split(text):
            more = R.choice([[], [model(gpt.response_text_delta_event.Logprob)]])
            events.append({"type": "response.output_text.delta", **where, "delta": piece, "logprobs": more, "obfuscation": "xyz"})
        note = of(dict(gpt.ResponseOutputText.model_fields.items())["annotations"].annotation)
        for number, one in enumerate(note):
            kind_of = "response.output_text.annotation.added"
            events.append({"type": kind_of, **where, "annotation_index": number, "annotation": one})
        events.append({"type": "response.output_text.done", **where, "text": text, "logprobs": []})
        events.append({"type": "response.content_part.done", **where, "part": {**part, "annotations": note}})
        item["content"] = [{**part, "annotations": note}]
    elif kind == "reasoning":
        text = words()
        item["summary"], item["content"] = [{"type": "summary_text", "text": text}], None
        where = {**at, "summary_index": 0}
        events = [{"type": "response.reasoning_summary_part.added", **where, "part": {"type": "summary_text", "text": ""}}]
        events += [{"type": "response.reasoning_summary_text.delta", **where, "delta": piece} for piece in split(text)]
        events.append({"type": "response.reasoning_summary_text.done", **where, "text": text})
        events.append({"type": "response.reasoning_summary_part.done", **where, "part": item["summary"][0]})
    elif kind in ("function_call", "custom_tool_call"):
        name, key = ("function_call_arguments", "arguments") if kind == "function_call" else ("custom_tool_call_input", "input")
        item["name"], item["call_id"] = "write", f"call_{index}"
        item[key] = json.dumps({"a": words()}) if kind == "function_call" else words()
        events = [{"type": f"response.{name}.delta", **at, "delta": piece} for piece in split(item[key])]
        events.append({"type": f"response.{name}.done", **at, key: item[key], "name": "write"})
    else:
        if kind == "tool_search_call":
            item["arguments"] = {"query": words()}
        fitting = [name for name in EVENTS if name.startswith(f"response.{kind}.")]
        events = [{**model(EVENTS[name]), "type": name, **at} for name in fitting if R.random() < 0.7]
    return item, events


def begun(item):
    empty = {"message": {"content": []}, "reasoning": {"summary": []}, "function_call": {"arguments": ""}, "custom_tool_call": {"input": ""}}
    return {**item, **empty.get(item["type"], {})}


def responses_stream():
    response = {**model(gpt.Response), "object": "response", "status": "in_progress", "output": [], "error": None}
    events = [{"type": "response.created", "response": response}, {"type": "response.in_progress", "response": response}]
    items = []
    for index in range(R.randint(0, 4)):
        item, between = responses_item(index)
        events.append({"type": "response.output_item.added", "output_index": index, "item": begun(item)})
        events += between
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
        items.append(item)
    end = R.choice(["completed", "completed", "incomplete"])
    response = {**response, "status": end, "output": items, "usage": model(gpt.ResponseUsage)}
    events.append({"type": f"response.{end}", "response": response})
    for number, event in enumerate(events):
        yield unknown({**event, "sequence_number": number})


def responses_whole():
    items = [responses_item(index)[0] for index in range(R.randint(0, 4))]
    return {**model(gpt.Response), "object": "response", "status": "completed", "output": items, "error": None}


def written(value):
    """JSON, in one of the ways to write it."""
    style = R.choice([{}, {"separators": (",", ":")}, {"ensure_ascii": False}, {"indent": 1}, {"indent": 2, "ensure_ascii": False}])
    return json.dumps(value, **style)


def frame(value, end):
    lines = []
    if isinstance(value, dict) and "type" in value and R.random() < 0.9:
        lines.append(R.choice(["event: ", "event:"]) + value["type"])
    data = value if isinstance(value, str) else written(value)
    start = R.choice(["data: ", "data: ", "data:"])
    # Lines of a value are lines of the field: the format joins them again.
    lines += [start + line for line in data.replace("\r", "\\r").split("\n")]
    for chance, extra in [(0.05, f"id: {R.randint(0, 99)}"), (0.03, "retry: 3000"), (0.03, "x-field: y"), (0.05, ": comment"), (0.02, "id")]:
        if R.random() < chance:
            lines.insert(R.randint(0, len(lines)), extra)
    return end.join(lines) + end + end


def stream(wire, events):
    end = R.choice(["\n", "\n", "\r\n", "\r"])
    out = "\ufeff" if R.random() < 0.05 else ""
    for event in events:
        if R.random() < 0.05:
            out += R.choice([f": keep-alive{end}{end}", end, f":{end}"])
        out += frame(event, end)
    if wire == "openai-chat":
        out += frame("[DONE]", end)
    return out.encode("utf-8", "surrogatepass")


def huge(events):
    """The same with more in one frame than connections read at once."""
    for event in events:
        event["x_huge"] = "y" * 200_000
        yield event
        break
    yield from events


def wild(wire):
    kind = R.randint(0, 5)
    events = list(MAKE[wire][0]())
    if kind == 0:
        R.shuffle(events)
    elif kind == 1:
        events = [of({"anthropic": claude.RawMessageStreamEvent, "openai-chat": chat.ChatCompletionChunk, "openai-responses": gpt.ResponseStreamEvent}[wire]) for _ in range(8)]
    elif kind == 2:
        return stream(wire, events)[: R.randint(0, 400)]
    elif kind == 3:
        return R.randbytes(R.randint(0, 3000))
    elif kind == 4:
        events = [R.choice(["{", "null", '"a"', "[1]", words(), '{"a":1} {"b":2}']) for _ in range(9)]
    else:
        events = [event for event in events if R.random() < 0.7]
    return stream(wire, events)


MAKE = {
    "anthropic": (anthropic_stream, anthropic_whole),
    "openai-chat": (chat_stream, chat_whole),
    "openai-responses": (responses_stream, responses_whole),
}
# What a stream is called, and a body.
EVENT_STREAM = ["text/event-stream", "text/event-stream; charset=utf-8", "Text/Event-Stream;charset=UTF-8"]
JSON = ["application/json", "application/json; charset=utf-8"]


def shape(wire, number):
    make_stream, make_whole = MAKE[wire]
    kind, status = number % 10, 200
    if kind == 9:
        body, content = wild(wire), R.choice(EVENT_STREAM)
    elif kind in (7, 8):
        body, content = written(make_whole()).encode("utf-8", "surrogatepass"), R.choice(JSON)
        body = R.choice([b"", b" ", b"\r\n"]) + body + R.choice([b"", b"\n"])
    elif kind == 6 and number % 20 == 6:
        status = R.choice([400, 401, 403, 404, 413, 422, 429, 500, 503, 529, 302])
        body, content = written({"error": {"type": "x", "message": words()}}).encode(), R.choice([*JSON, "text/html"])
    else:
        events = make_stream()
        body, content = stream(wire, huge(events) if number % 50 == 5 else events), R.choice(EVENT_STREAM)
    # What is spoken cannot be read by rules.
    is_wild = kind == 9 or (wire == "openai-chat" and b'"audio":' in body)
    return {"wire": wire, "status": status, "content_type": content, "body": body.hex(), "is_wild": is_wild}


def main():
    count, seed = int(sys.argv[1]), int(sys.argv[2])
    for wire in MAKE:
        for number in range(count):
            R.seed(f"{seed} {wire} {number}")
            print(json.dumps(shape(wire, number)))


main()
