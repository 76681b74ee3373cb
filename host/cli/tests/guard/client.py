"""An agent that knows nothing of a gateway: the official SDKs, with their addresses from the environment.

Prints what it got as JSON, and ends with the code 7. `UPSTREAM`: the address of the model itself.
"""

import http.client
import json
import os
import sys
import time
import urllib.request
from urllib.parse import urlsplit

import anthropic
import openai

claude, gpt = anthropic.Anthropic(api_key="a-key"), openai.OpenAI(api_key="o-key")
ASKED = [{"role": "user", "content": "case: text"}]
seen = {}

with claude.messages.stream(model="m", max_tokens=100, messages=ASKED) as stream:
    stream.until_done()
    message = stream.get_final_message()
seen["anthropic"] = "".join(block.text for block in message.content)
assert message.stop_reason == "end_turn" and message.usage.output_tokens > 9
message = claude.messages.create(model="m", max_tokens=100, messages=ASKED)
seen["anthropic whole"] = message.content[0].text
seen["count"] = claude.messages.count_tokens(model="m", messages=ASKED).input_tokens

with gpt.chat.completions.stream(model="m", messages=ASKED) as stream:
    stream.until_done()
    choice = stream.get_final_completion().choices[0]
seen["chat"] = choice.message.content
assert (choice.message.role, choice.finish_reason) == ("assistant", "stop")
seen["chat whole"] = gpt.chat.completions.create(model="m", messages=ASKED).choices[0].message.content

with gpt.responses.stream(model="m", input="case: text") as stream:
    numbers = [event.sequence_number for event in stream]
    answer = stream.get_final_response()
seen["responses"] = answer.output_text
assert numbers == list(range(len(numbers))) and answer.status == "completed" and len(answer.output) == 2
seen["responses whole"] = gpt.responses.create(model="m", input="case: text").output_text
seen["models"] = [model.id for model in gpt.models.list()]


def raw(base, path, body, **headers):
    """The bytes that are answered to a request."""
    headers = {"content-type": "application/json", **headers}
    request = urllib.request.Request(base + path, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as response:
        return response.status, dict(response.headers).get("Content-Type"), response.read()


polite = [{"role": "user", "content": "case: passed"}]
gateway, model = os.environ["ANTHROPIC_BASE_URL"], os.environ["UPSTREAM"]
seen["same"] = all(
    raw(gateway, path, body)[:2] == raw(model, path, body)[:2] and raw(gateway, path, body)[2] == raw(model, path, body)[2]
    for path, body in [
        ("/v1/messages?beta=true", {"stream": True, "messages": polite}),
        ("/v1/messages", {"messages": polite}),
        ("/v1/chat/completions", {"messages": polite}),
    ]
)


def status(method, path, **headers):
    connection = http.client.HTTPConnection(urlsplit(gateway).netloc)
    connection.request(method, path, headers=headers)
    return connection.getresponse().status


seen["websocket"] = status("GET", "/v1/responses", Connection="Upgrade", Upgrade="websocket")
seen["other host"] = status("GET", "/v1/models", Host="attacker.example")

# A client that breaks off: the model must not go on.
endless = {"stream": True, "messages": [{"role": "user", "content": "case: endless"}]}
connection = http.client.HTTPConnection(urlsplit(gateway).netloc)
connection.request("POST", "/v1/messages", json.dumps(endless), {"content-type": "application/json"})
connection.getresponse().read(10)
connection.sock.close() if connection.sock else None
connection.close()


def requests():
    with urllib.request.urlopen(model + "/requests") as response:
        return json.load(response)


while not requests()[-1]["cut"]:
    time.sleep(0.01)
seen["requests"] = [[one["path"], one["reminders"] > 0, one["key"]] for one in requests()][:14]
print(json.dumps(seen))
sys.exit(7)
