// Node as a contender: an extension as an async function in the host's own process, called over and over with the same input.
//
// Usage: node handler.mjs CALLBACK INPUT ANSWER [copy]
// INPUT and ANSWER are files with JSON. Exits with an error unless the handler of CALLBACK answers INPUT with ANSWER. For each
// line with a number on standard input, calls it that many times and prints the nanoseconds that took on processors, those
// of the garbage collector's and the compiler's threads included. With `copy`, each call gets a copy of the input, which the
// handler can change without changing the host's own; without it, host and handler share their objects.

import { deepStrictEqual } from "node:assert";
import { readFileSync } from "node:fs";
import { argv, cpuUsage, exit, stdin } from "node:process";
import { createInterface } from "node:readline";

const handlers = {
  on_plain_text: async ({ text }) => ({ replace: text }),
  on_tag: async ({ content }) => ({ content }),
  on_input_messages: async ({ messages }) => ({ replace: messages }),
};

const [callback, inputFile, answerFile, mode] = argv.slice(2);
const handler = handlers[callback];
if (!handler || !answerFile || (mode !== undefined && mode !== "copy")) {
  console.error(`usage: node handler.mjs ${Object.keys(handlers).join("|")} INPUT ANSWER [copy]`);
  exit(2);
}
const read = (file) => JSON.parse(readFileSync(file, "utf8"));
const input = read(inputFile);

async function shared(times) {
  let answer;
  for (let i = 0; i < times; i++) answer = await handler(input);
  return answer;
}

async function copied(times) {
  let answer;
  for (let i = 0; i < times; i++) answer = await handler(structuredClone(input));
  return answer;
}

const run = mode === "copy" ? copied : shared;
deepStrictEqual(await run(1), read(answerFile));
for await (const line of createInterface({ input: stdin })) {
  const before = cpuUsage();
  await run(Number(line));
  const { user, system } = cpuUsage(before);
  console.log((user + system) * 1000);
}
