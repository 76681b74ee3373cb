// An application with `HttpAgent` of `@ag-ui/client` that leaves a run in the middle of an answer, and runs again. It prints its messages.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [server] = process.argv.slice(2);
const require = createRequire(join(process.env.TIDEGATE_TEST_NODE_MODULES, 'package.json'));
const { HttpAgent } = await import(pathToFileURL(require.resolve('@ag-ui/client')));

const headers = { 'content-type': 'application/json' };
const session = await (await fetch(`${server}/v1/sessions`, { method: 'POST', headers, body: '{}' })).json();
const agent = new HttpAgent({ url: `${server}/v1/sessions/${session.id}/ag-ui`, threadId: session.id });
agent.addMessage({ id: 'm-1', role: 'user', content: 'Hello' });
let left;
agent.subscribe({
  onTextMessageContentEvent: ({ event }) => {
    if (left) return;
    left = event.delta;
    agent.abortRun();
  },
});
await agent.runAgent().catch(() => {});
console.log(JSON.stringify({ left }));
agent.subscribe({ onRunStartedEvent: () => void console.log('again') });
await agent.runAgent();
console.log(JSON.stringify(agent.messages));
