"""A program with Anthropic's SDK, which knows nothing of a gateway: it asks once, and shows the answer as it comes."""

import anthropic

claude = anthropic.Anthropic(api_key="any")
question = [{"role": "user", "content": "Say something. (case: text)"}]
with claude.messages.stream(model="scripted", max_tokens=100, messages=question) as answer:
    for text in answer.text_stream:
        print(text, end="", flush=True)
