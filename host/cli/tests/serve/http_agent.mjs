// An application with `HttpAgent` of `@ag-ui/client`, and nothing of ours: a turn in which a rule stops the answer, a call that is approved with
// other arguments, and one that is denied. It prints what its user sees, and writes the events.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [server] = process.argv.slice(2);
const require = createRequire(join(process.env.TIDEGATE_TEST_NODE_MODULES, 'package.json'));
const { HttpAgent, buildResumeArray } = await import(pathToFileURL(require.resolve('@ag-ui/client')));

const headers = { 'content-type': 'application/json' };
const session = await (await fetch(`${server}/v1/sessions`, { method: 'POST', headers, body: '{}' })).json();
const agent = new HttpAgent({ url: `${server}/v1/sessions/${session.id}/ag-ui`, threadId: session.id });
const custom = [];
agent.subscribe({ onCustomEvent: ({ event }) => void custom.push(event.name) });
agent.addMessage({ id: 'm-1', role: 'user', content: 'Write' });
await agent.runAgent();
const open = agent.pendingInterrupts;
console.log(JSON.stringify({ interrupts: open, messages: agent.messages }));

// The same input again is no second one: the client missed the answer, for example.
const again = new HttpAgent({ url: agent.url, threadId: session.id });
again.addMessage({ id: 'm-1', role: 'user', content: 'Write' });
await again.runAgent();
console.log(JSON.stringify({ again: again.pendingInterrupts.map(({ id }) => id) }));

const [first, second] = open.map(({ id }) => id);
const resume = buildResumeArray(open, {
  [first]: { status: 'resolved', payload: { approved: true, editedArgs: { path: 'a.txt', content: 'as edited' } } },
  [second]: { status: 'resolved', payload: { approved: false, reason: 'not that file' } },
});
await agent.runAgent({ resume });
console.log(JSON.stringify({ interrupts: agent.pendingInterrupts, messages: agent.messages, custom: [...new Set(custom)] }));
