"""An editor with the Python SDK of the protocol.

python client.py WORKSPACE PROGRAM [ARGUMENT...]: exits with 0 if everything was as expected.
"""

import asyncio
import sys
from pathlib import Path

import acp
from acp import schema

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="


class Editor(acp.Client):
    """What the user does, and what the editor was sent."""

    def __init__(self):
        self.decide, self.updates, self.buffers, self.asked = "reject_once", [], {}, 0
        self.begun = asyncio.Event()

    async def request_permission(self, session_id, tool_call, options, **_):
        self.asked += 1
        option = next(one for one in options if one.kind == self.decide)
        outcome = schema.AllowedOutcome(outcome="selected", option_id=option.option_id)
        return schema.RequestPermissionResponse(outcome=outcome)

    async def session_update(self, session_id, update, **_):
        self.updates.append(update)
        if update.session_update == "agent_message_chunk":
            self.begun.set()

    async def read_text_file(self, session_id, path, line=None, limit=None, **_):
        if path not in self.buffers:
            raise acp.RequestError.resource_not_found(path)
        return schema.ReadTextFileResponse(content=self.buffers[path])

    async def write_text_file(self, session_id, path, content, **_):
        self.buffers[path] = content
        return schema.WriteTextFileResponse()

    def text(self):
        chunks = (one for one in self.updates if one.session_update == "agent_message_chunk")
        return "".join(one.content.text for one in chunks)

    def kinds(self):
        return {one.session_update for one in self.updates}


async def refused(request):
    try:
        await request
    except acp.RequestError as error:
        return error.code
    raise AssertionError("the request was not refused")


async def connected(workspace, command, run):
    editor = Editor()
    async with acp.spawn_agent_process(editor, *command, cwd=workspace) as (connection, _):
        files = schema.FileSystemCapabilities(read_text_file=True, write_text_file=True)
        await connection.initialize(
            protocol_version=acp.PROTOCOL_VERSION,
            client_capabilities=schema.ClientCapabilities(fs=files),
            client_info=schema.Implementation(name="python-client", version="1"),
        )

        async def prompt(session, *blocks):
            editor.updates = []
            editor.begun.clear()
            blocks = [acp.text_block(one) if isinstance(one, str) else one for one in blocks]
            return (await connection.prompt(session_id=session, prompt=blocks)).stop_reason

        return await run(editor, connection, prompt)


async def first(workspace, editor, connection, prompt):
    session = (await connection.new_session(cwd=workspace, mcp_servers=[])).session_id
    assert await prompt(session, "think Good morning") == "end_turn"
    assert editor.text() == "Good morning", editor.text()
    assert "agent_thought_chunk" in editor.kinds() and "user_message_chunk" not in editor.kinds()

    assert await prompt(session, "write denied.txt one") == "end_turn"
    assert not editor.buffers and not Path(workspace, "denied.txt").exists()
    editor.decide = "allow_once"
    buffer = str(Path(workspace, "buffer.txt"))
    editor.buffers[buffer] = "not saved\n"
    Path(buffer).write_text("on the disk\n")
    assert await prompt(session, "read buffer.txt") == "end_turn"
    assert "not saved" in editor.text(), editor.text()
    assert await prompt(session, "write buffer.txt changed") == "end_turn"
    assert editor.buffers[buffer] == "changed" and Path(buffer).read_text() == "on the disk\n"
    assert editor.asked == 2, editor.asked

    await connection.cancel(session_id=session)
    running = asyncio.create_task(prompt(session, "hang"))
    await asyncio.sleep(0)
    await editor.begun.wait()
    await connection.cancel(session_id=session)
    assert await running == "cancelled"
    assert await prompt(session, "say after") == "end_turn"
    assert editor.text() == "after", editor.text()

    assert await prompt(session, acp.image_block(data=PNG, mime_type="image/png"), "image") == "end_turn"
    assert editor.text() == f"image/png {len(PNG)}", editor.text()

    assert await refused(connection.prompt(session_id="none", prompt=[acp.text_block("say no")])) == -32002
    assert await refused(connection.set_session_mode(session_id=session, mode_id="none")) == -32602
    assert await refused(connection.new_session(cwd="relative", mcp_servers=[])) == -32602
    await connection.set_session_mode(session_id=session, mode_id="deny")
    asked = editor.asked
    assert await prompt(session, "write never.txt one") == "end_turn"
    assert editor.asked == asked and str(Path(workspace, "never.txt")) not in editor.buffers

    outcome = await connection.ext_method(
        "session/steering", {"sessionId": session, "prompt": [{"type": "text", "text": "say steered"}]}
    )
    assert outcome["outcome"] == "startedNewTurn", outcome
    assert await prompt(session, "say last") == "end_turn"
    await connection.close_session(session_id=session)
    return session


async def second(workspace, session, editor, connection, prompt):
    sessions = (await connection.list_sessions(cwd=workspace)).sessions
    assert session in [one.session_id for one in sessions]
    await connection.load_session(cwd=workspace, session_id=session, mcp_servers=[])
    assert editor.text().startswith("Good morning"), editor.text()
    users = [one for one in editor.updates if one.session_update == "user_message_chunk"]
    assert users[0].content.text == "think Good morning"
    assert any(one.content.type == "image" and one.content.data == PNG for one in users)
    assert "tool_call" in editor.kinds()
    await connection.close_session(session_id=session)

    editor.updates = []
    await connection.resume_session(cwd=workspace, session_id=session, mcp_servers=[])
    assert editor.text() == "", "a resumed session is not replayed"
    assert await prompt(session, "history") == "end_turn"
    assert editor.text().endswith(" messages"), editor.text()
    assert await refused(connection.load_session(cwd=workspace, session_id="none", mcp_servers=[])) == -32002


async def main():
    workspace, *command = sys.argv[1:]
    session = await connected(workspace, command, lambda *of: first(workspace, *of))
    await connected(workspace, command, lambda *of: second(workspace, session, *of))
    print("all as expected")


asyncio.run(main())
