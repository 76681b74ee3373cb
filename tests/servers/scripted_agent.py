"""What the scripted model says to coding agents: a task of two turns with their own tools, and answers that begin and fail."""

import json
import re

FAIL = object()

BAD = "I look at it.\nNow the forbidden words come.\n"


def agent(case, body, reminded, is_again):
    """The blocks of an answer; `None`: the case is not for agents."""
    if case == "fallback":
        if not is_again:
            return FAIL
        return [("text", "It worked.\n" if reminded else BAD)]
    if case not in ("task1", "task2"):
        return None
    tools = names(body)
    if not tools:
        return [("text", "A title")]
    step, folder = results(body), re.findall(r"in folder (/[^\s\"\\]+)", said(body))[-1]
    if step == 0 and case == "task1" and not reminded:
        return [("text", BAD)]
    if step == 0:
        return [("text", "I write the file.\n"), edit(tools, folder, case == "task1")]
    if step == 1:
        line = "forbidden" if not reminded else "allowed"
        return [("text", "I run a command.\n"), shell(tools, f"echo {line} {case} >> {folder}/log.txt; cat {folder}/notes.txt")]
    return [("text", f"The {case} is done.\n")]


def messages(body):
    said = body.get("messages") or body.get("input") or []
    return said if isinstance(said, list) else [{"role": "user", "content": said}]


def said(body):
    return json.dumps(messages(body))


def results(body):
    """The results of tools since the user named a case."""
    count = 0
    for message in messages(body):
        text = json.dumps(message)
        if message.get("role") == "user" and "case: " in text:
            count = 0
        elif message.get("role") == "tool" or str(message.get("type")).endswith("_call_output"):
            count += 1
        elif isinstance(message.get("content"), list):
            count += sum(part.get("type") == "tool_result" for part in message["content"])
    return count


def names(body):
    tools = list(body.get("tools") or [])
    for item in messages(body):
        # codex declares the tools of newer models in the conversation.
        if item.get("type") == "additional_tools":
            tools += [tool for space in item["tools"] for tool in space.get("tools", [space])]
    return dict(map(declared, tools))


def declared(tool):
    """The name of a tool, and the names of its arguments."""
    of = tool.get("function") or tool
    schema = of.get("parameters") or of.get("input_schema") or {}
    return of.get("name"), list(schema.get("properties") or {})


def edit(tools, folder, is_new):
    """A call that writes a file, or changes it."""
    path, old, new = f"{folder}/notes.txt", "first line", "second line"
    change = ["*** Add File: notes.txt", f"+{old}"] if is_new else ["*** Update File: notes.txt", "@@", f"-{old}", f"+{new}"]
    patch = "\n".join(["*** Begin Patch", *change, "*** End Patch", ""])
    if "apply_patch" in tools:
        keys = tools["apply_patch"]
        return ("call", "apply_patch", {keys[0]: patch}) if keys else ("custom", "apply_patch", patch)
    if "exec" in tools:
        return ("custom", "exec", f"text(await tools.apply_patch({json.dumps(patch)}));")
    if "Write" in tools:
        arguments = {"content": old + "\n"} if is_new else {"old_string": old, "new_string": new}
        return ("call", "Write" if is_new else "Edit", {"file_path": path, **arguments})
    if "write" in tools:
        arguments = {"content": old + "\n"} if is_new else {"oldString": old, "newString": new}
        return ("call", "write" if is_new else "edit", {"filePath": path, **arguments})
    return shell(tools, f"echo '{old if is_new else new}' > {path}")


def shell(tools, command):
    if "exec" in tools:
        # Its tools are functions of a program.
        return ("custom", "exec", f"text((await tools.exec_command({json.dumps({'cmd': command})})).output);")
    for name, key in [("Bash", "command"), ("bash", "command"), ("exec_command", "cmd"), ("shell_command", "command")]:
        if name in tools:
            more = {"description": "Runs it"} if name.lower() == "bash" else {}
            return ("call", name, {key: command, **more})
    raise KeyError(f"no tool that runs commands among {sorted(map(str, tools))}")
