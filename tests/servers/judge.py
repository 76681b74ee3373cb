"""Judges request bodies by the types of the vendors' own SDKs.

Reads one JSON object a line, `{"wire": "anthropic" | "openai-chat" | "openai-responses", "body": {...}}`, and writes one
line for each: the problems, as a JSON array of strings, empty where there are none. A key that the types do not have is a
problem too.
"""

import json
import sys

from anthropic.types import message_create_params as anthropic_messages
from openai.types.chat import completion_create_params as openai_chat
from openai.types.responses import response_create_params as openai_responses
from pydantic import ConfigDict, TypeAdapter, ValidationError
from typing_extensions import get_args, get_type_hints, is_typeddict

# Some fields can be files, which no body has.
STRICT_KEYS = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

PARAMS = {
    "anthropic": anthropic_messages.MessageCreateParamsStreaming,
    "openai-chat": openai_chat.CompletionCreateParamsStreaming,
    "openai-responses": openai_responses.ResponseCreateParamsStreaming,
}


def forbid_unknown(kind, seen):
    """Makes unknown keys an error in a type and in everything that it contains."""
    if id(kind) in seen:
        return
    seen.add(id(kind))
    if is_typeddict(kind):
        kind.__pydantic_config__ = STRICT_KEYS
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


def problems(adapter, body):
    try:
        walk(adapter.validate_python(body))
    except ValidationError as error:
        return [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()]
    return []


def main():
    adapters = {}
    for line in sys.stdin:
        given = json.loads(line)
        wire = given["wire"]
        if wire not in adapters:
            forbid_unknown(PARAMS[wire], set())
            adapters[wire] = TypeAdapter(PARAMS[wire])
        print(json.dumps(problems(adapters[wire], given["body"])), flush=True)


main()
