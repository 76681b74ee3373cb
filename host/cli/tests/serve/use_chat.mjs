// An application with `useChat` of `@ai-sdk/react`, and nothing of ours: a turn in which a rule stops the answer, a call that is approved, one
// that is denied, and a page that is loaded again. It prints what its user sees.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [server, way] = process.argv.slice(2);
const require = createRequire(join(process.env.TIDEGATE_TEST_NODE_MODULES, 'package.json'));
const load = async name => {
  const module = await import(pathToFileURL(require.resolve(name)));
  return module.default?.createElement || module.default?.createRoot || module.default?.GlobalRegistrator ? module.default : module;
};
const { Window } = await load('happy-dom');
const window = new Window({ url: server });
Object.assign(globalThis, { window, document: window.document, IS_REACT_ACT_ENVIRONMENT: false });
const React = await load('react');
const { createRoot } = await load('react-dom/client');
const { useChat } = await load('@ai-sdk/react');
const { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } = await load('ai');

const headers = { 'content-type': 'application/json' };
const session = await (await fetch(`${server}/v1/sessions`, { method: 'POST', headers, body: '{}' })).json();

// Renders a page with the chat, and returns what it shows.
function page(options) {
  let shown;
  const watching = [];
  function Chat() {
    shown = useChat({
      id: session.id,
      transport: new DefaultChatTransport({ api: `${server}/v1/sessions/${session.id}/ui-messages` }),
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
      ...options,
    });
    React.useEffect(() => watching.splice(0).forEach(watch => watch()));
    return React.createElement('p', null, shown.status);
  }
  const root = createRoot(window.document.body.appendChild(window.document.createElement('div')));
  root.render(React.createElement(Chat));
  return {
    now: () => shown,
    close: () => root.unmount(),
    // Waits until what is shown is as wanted.
    async until(what, is) {
      const late = setTimeout(() => {
        console.error(`${what} is not shown: ${JSON.stringify(shown)}`);
        process.exit(1);
      }, 60_000);
      while (!shown || !is(shown)) await new Promise(resolve => watching.push(resolve));
      clearTimeout(late);
      return shown;
    },
  };
}

const parts = (chat, state) => chat.messages.flatMap(message => message.parts).filter(part => part.state === state);
const asked = chat => parts(chat, 'approval-requested');
const text = message => message.parts.filter(part => part.type === 'text').map(part => part.text).join('|');
const seen = chat => ({
  status: chat.status,
  error: chat.error?.message,
  texts: chat.messages.map(message => `${message.role}: ${text(message)}`),
  tools: chat.messages.flatMap(message => message.parts).filter(part => part.type === 'dynamic-tool')
    .map(({ toolName, state, output, errorText }) => ({ toolName, state, output, errorText })),
  data: [...new Set(chat.messages.flatMap(message => message.parts).map(part => part.type).filter(type => type.startsWith('data-')))],
  metadata: chat.messages.at(-1).metadata,
});

let chat = page({});
await chat.until('the page', shown => shown.status === 'ready');
chat.now().sendMessage({ text: 'Write' });
if (way === 'stopped') {
  // The stream is left, and followed again: the turn continues meanwhile.
  const ends = word => shown => text(shown.messages.at(-1) ?? { parts: [] }).endsWith(word);
  for (const word of ['One', 'Two']) {
    await chat.until(word, ends(word));
    await chat.now().stop();
    await chat.until('the stop', shown => shown.status === 'ready');
    chat.now().resumeStream();
    await chat.until('the rest', shown => shown.status === 'streaming' && ends(word)(shown));
    console.log(JSON.stringify(seen(chat.now())));
  }
  await chat.until('the end', shown => shown.status === 'ready' && shown.messages.at(-1).metadata?.status === 'completed');
  // There is nothing to follow.
  await chat.now().resumeStream();
  await chat.until('nothing', shown => shown.status === 'ready');
  console.log(JSON.stringify(seen(chat.now())));
  process.exit(0);
}
await chat.until('a question', shown => asked(shown).length === 2 && shown.status === 'ready');
if (way === 'again') {
  // Another page of the same chat, which has the message of the user and nothing of the turn.
  const messages = chat.now().messages.filter(message => message.role === 'user');
  chat.close();
  chat = page({ messages, resume: true });
  await chat.until('a question', shown => asked(shown).length === 2 && shown.status === 'ready');
}
const [first, second] = asked(chat.now());
console.log(JSON.stringify({ questions: [first, second].map(({ toolName, input, approval }) => ({ toolName, input, reason: approval.requestReason })) }));
chat.now().addToolApprovalResponse({ id: first.approval.id, approved: true });
await chat.until('the first answer', shown => asked(shown).length === 1);
chat.now().addToolApprovalResponse({ id: second.approval.id, approved: false, reason: 'not that file' });
await chat.until('the end', shown => shown.status === 'ready' && shown.messages.at(-1).metadata?.status === 'completed');
console.log(JSON.stringify(seen(chat.now())));
process.exit(0);
