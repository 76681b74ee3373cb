"""Reads the answers to every case with the official SDKs in Python, and prints them as JSON: `python sdks.py CASE…`, or `real` with a model's
name for a real model.

Every event and every body must have the types that the SDK declares, unknown values of known fields included.
"""

import json
import sys

import anthropic
import openai
from anthropic.types import Message, RawMessageStreamEvent
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

claude, gpt = anthropic.Anthropic(api_key="a-key", max_retries=0), openai.OpenAI(api_key="o-key", max_retries=0)
TYPES = {
    kind: TypeAdapter(kind)
    for kind in [Message, RawMessageStreamEvent, ChatCompletion, ChatCompletionChunk, Response, ResponseStreamEvent]
}
first, *rest = sys.argv[1:]
IS_REAL = first == "real"
LIMIT = 24 if IS_REAL else 60


def asked(case):
    return [{"role": "user", "content": case}]


def typed(kind, value):
    if IS_REAL:
        # Its server leaves out fields that the vendors have.
        return value
    TYPES[kind].validate_python(value.to_dict(), strict=True)
    return value


def messages(case, model):
    with claude.messages.stream(model=model, max_tokens=LIMIT, messages=asked(case)) as stream:
        message = typed(Message, stream.get_final_message())
    raw = claude.messages.create(model=model, max_tokens=LIMIT, messages=asked(case), stream=True)
    events = [typed(RawMessageStreamEvent, event).type for event in raw]
    assert (events.count("message_start"), events.count("message_stop"), events[-1]) == (1, 1, "message_stop"), events
    yield "stream", message
    yield "whole", typed(Message, claude.messages.create(model=model, max_tokens=LIMIT, messages=asked(case)))


def of_message(message):
    text = "".join(block.text for block in message.content if block.type == "text")
    thought = [(block.thinking, block.signature) for block in message.content if block.type == "thinking"]
    calls = [(block.name, block.input) for block in message.content if block.type == "tool_use"]
    return text, thought, calls, message.stop_reason


def completions(case, model):
    raw = gpt.chat.completions.create(model=model, messages=asked(case), max_tokens=LIMIT, stream=True)
    chunks = [typed(ChatCompletionChunk, chunk) for chunk in raw]
    assert len({chunk.id for chunk in chunks}) == 1
    if IS_REAL:
        # The SDK puts no message together that has reached its limit.
        yield "stream", "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    else:
        with gpt.chat.completions.stream(model=model, messages=asked(case), max_tokens=LIMIT) as stream:
            yield "stream", stream.until_done().get_final_completion()
    whole = gpt.chat.completions.create(model=model, messages=asked(case), max_tokens=LIMIT)
    yield "whole", typed(ChatCompletion, whole)


def of_completion(completion):
    if isinstance(completion, str):
        return completion, [], [], None
    choice = completion.choices[0]
    assert choice.message.role == "assistant"
    calls = [(call.function.name, json.loads(call.function.arguments)) for call in choice.message.tool_calls or []]
    # The SDK knows no reasoning in this format.
    return choice.message.content or "", [], calls, choice.finish_reason


def responses(case, model):
    if IS_REAL:
        # The events of its server have no indices, which the SDK needs to put a response together.
        raw = gpt.responses.create(model=model, input=case, max_output_tokens=LIMIT, stream=True)
        text = "".join(event.delta for event in raw if event.type == "response.output_text.delta")
        yield "stream", text
        yield "whole", gpt.responses.create(model=model, input=case, max_output_tokens=LIMIT)
        return
    with gpt.responses.stream(model=model, input=case, max_output_tokens=LIMIT) as stream:
        response = stream.until_done().get_final_response()
    raw = gpt.responses.create(model=model, input=case, max_output_tokens=LIMIT, stream=True)
    events = [typed(ResponseStreamEvent, event) for event in raw]
    numbers = [event.sequence_number for event in events]
    assert numbers == list(range(len(numbers))) and events[-1].type == "response.completed", numbers
    yield "stream", response
    yield "whole", typed(Response, gpt.responses.create(model=model, input=case, max_output_tokens=LIMIT))


def of_response(response):
    if isinstance(response, str):
        return response, [], [], None
    # Without it clients take an end for none, and ask again.
    assert IS_REAL or response.usage.total_tokens >= 0
    items = response.output
    thought = [(part.text, None) for item in items if item.type == "reasoning" for part in item.summary]
    calls = [(item.name, json.loads(item.arguments)) for item in items if item.type == "function_call"]
    return response.output_text, thought, calls, response.status


SDKS = {
    "anthropic": (messages, of_message),
    "openai chat": (completions, of_completion),
    "openai responses": (responses, of_response),
}

questions = {"real": (rest[1], rest[0])} if IS_REAL else {case: (f"case: {case}", "m") for case in [first, *rest]}
seen = {}
for case, (question, model) in questions.items():
    for name, (ask, read) in SDKS.items():
        for mode, answer in ask(question, model):
            text, thought, calls, end = read(answer)
            seen[f"{case}/{name}/{mode}"] = {"text": text, "thought": thought, "calls": calls, "end": end}
print(json.dumps(seen))
