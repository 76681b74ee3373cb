"""An agent that reads a file with keys in it and does what its model says, with the official SDKs.

Prints, for each wire format, what it was told to write, what the model said last, and what of it the model was sent. `UPSTREAM`: the address
of the model itself. `TOKEN`: the token in the file, in two parts.
"""

import json
import os
import urllib.request

import anthropic
import openai

TOKEN = "".join(os.environ["TOKEN"].split())
PEM = "-----BEGIN PRIVATE KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n" * 3 + "-----END PRIVATE KEY-----"
FILE = f"token = {TOKEN}\n{PEM}\n"
SYSTEM = f"The old token was {TOKEN}."
ASKED = {"role": "user", "content": "Copy the keys."}
PARAMETERS = {"type": "object", "properties": {"content": {"type": "string", "description": f"Such as {TOKEN}"}}}
claude, gpt = anthropic.Anthropic(api_key="a-key"), openai.OpenAI(api_key="o-key")


def messages():
    tools = [{"name": "write", "description": "Writes.", "input_schema": PARAMETERS}]
    history, written = [ASKED], []
    while True:
        asked = {"model": "m", "system": SYSTEM, "tools": tools, "messages": history}
        claude.messages.count_tokens(**asked)
        with claude.messages.stream(max_tokens=100, **asked) as stream:
            answer = stream.get_final_message()
        content = [block.model_dump(include={"type", "text", "id", "name", "input"}, exclude_none=True) for block in answer.content]
        history = [*history, {"role": "assistant", "content": content}]
        calls = [block for block in answer.content if block.type == "tool_use"]
        if not calls:
            return written, answer.content[0].text
        written += [call.input["content"] for call in calls]
        result = FILE if len(written) == 1 else f"done {len(written)}"
        given = {"type": "tool_result", "tool_use_id": calls[0].id, "content": result}
        history = [*history, {"role": "user", "content": [given]}]


def chat():
    tools = [{"type": "function", "function": {"name": "write", "parameters": PARAMETERS}}]
    history, written = [{"role": "system", "content": SYSTEM}, ASKED], []
    while True:
        with gpt.chat.completions.stream(model="m", messages=history, tools=tools) as stream:
            answer = stream.get_final_completion().choices[0].message
        if not answer.tool_calls:
            return written, answer.content
        call = answer.tool_calls[0]
        made = {"name": call.function.name, "arguments": call.function.arguments}
        calls = [{"id": call.id, "type": "function", "function": made}]
        written.append(json.loads(call.function.arguments)["content"])
        result = FILE if len(written) == 1 else f"done {len(written)}"
        history = [*history, {"role": "assistant", "content": answer.content, "tool_calls": calls}]
        history = [*history, {"role": "tool", "tool_call_id": call.id, "content": result}]


def responses():
    tools = [{"type": "function", "name": "write", "parameters": PARAMETERS, "strict": False}]
    history, written = [ASKED], []
    while True:
        with gpt.responses.stream(model="m", instructions=SYSTEM, input=history, tools=tools) as stream:
            answer = stream.get_final_response()
        keys = {"type", "role", "content", "call_id", "name", "arguments"}
        output = [item.model_dump(include=keys, exclude_none=True) for item in answer.output]
        for item in output:
            item["content"] = [{"type": "output_text", "text": part["text"]} for part in item.get("content", [])]
            item["content"] or item.pop("content")
        calls = [item for item in output if item["type"] == "function_call"]
        if not calls:
            return written, answer.output_text
        written.append(json.loads(calls[0]["arguments"])["content"])
        result = FILE if len(written) == 1 else f"done {len(written)}"
        history = [*history, *output, {"type": "function_call_output", "call_id": calls[0]["call_id"], "output": result}]


def prefix(body):
    """The bytes of a body up to the end of its last message."""
    at = min(at for at in (body.find('"messages":'), body.find('"input":')) if at >= 0)
    start = body.index("[", at)
    _, end = json.JSONDecoder().raw_decode(body, start)
    return body[: end - 1].rstrip()


seen = {}
for name, path, run in [
    ("anthropic", "/v1/messages", messages),
    ("chat", "/v1/chat/completions", chat),
    ("responses", "/v1/responses", responses),
]:
    written, last = run()
    with urllib.request.urlopen(os.environ["UPSTREAM"] + "/bodies") as response:
        sent = json.load(response)
    bodies = sent[path]
    seen[name] = {
        "requests": len(bodies),
        "written": sum(text == f'"{TOKEN}"\n{PEM}\n' for text in written[1:]),
        "last": last.replace(TOKEN, "TOKEN"),
        "leaks": [part for part in (TOKEN, TOKEN[8:20], "MIIEvQ") for of in sent.values() for body in of if part in body],
        "keeps": all(later.startswith(prefix(before)) for before, later in zip(bodies, bodies[1:])),
    }
print(json.dumps(seen))
