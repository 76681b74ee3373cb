// Writes the types that Rust has schemas of: `node generate.mjs`; with `check`, it only finds out whether they are up to date.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { compile } from "json-schema-to-typescript";
import ts from "typescript";

/** Each file with its schemas, and the names of those that are written with all that they refer to; without names, all are. */
const FILES = [
  { file: "chat", schemas: read("chat/schema/chat.schema.json").definitions },
  {
    file: "server",
    schemas: read("serve/openapi.json").components.schemas,
    names: ["CommandBody", "NewFork", "NewSession", "Problem", "Receipts", "SessionList", "Shown"],
  },
];

/** What says of a schema which type it is. */
const TYPES = ["type", "oneOf", "anyOf", "allOf", "const", "enum", "properties", "tsType"];

for (const { file, schemas, names = Object.keys(schemas) } of FILES) {
  const to = new URL(`src/schema/${file}.ts`, import.meta.url);
  const types = await typesOf(schemas, names);
  if (process.argv[2] !== "check") {
    mkdirSync(new URL(".", to), { recursive: true });
    writeFileSync(to, types);
  } else if (readFileSync(to, "utf8") !== types) {
    console.error(`src/schema/${file}.ts is not what its schema gives: \`node generate.mjs\` in sdk/js/client writes it`);
    process.exitCode = 1;
  }
}

function read(file) {
  return JSON.parse(readFileSync(new URL(`../../../host/${file}`, import.meta.url), "utf8"));
}

async function typesOf(schemas, names) {
  const definitions = JSON.parse(JSON.stringify(reachable(schemas, names), plain));
  const options = { additionalProperties: false, bannerComment: "", unreachableDefinitions: true };
  const style = { printWidth: 150 };
  const source = await compile({ definitions }, "Root", { ...options, style });
  const types = source
    .replace(/export interface Root \{[^}]*\}\n/, "")
    .replaceAll(/(\n \*)?\n \* This interface was referenced by `Root`'s JSON-Schema\n \* via the `definition` "\w+"\./g, "")
    .replaceAll(/\/\*\*\n *\* (.*)\n *\*\//g, "/** $1 */");
  return `// Generated from the schemas of Rust by generate.mjs.\n\n${immutable(types.trimStart())}`;
}

/** The schemas with these names, and all that they refer to. */
function reachable(schemas, names) {
  const found = new Set();
  const add = (name) => {
    if (found.has(name)) return;
    found.add(name);
    JSON.stringify(schemas[name], (key, value) => (key === "$ref" ? add(value.split("/").at(-1)) : value));
  };
  names.forEach(add);
  return Object.fromEntries([...found].sort().map((name) => [name, schemas[name]]));
}

/** A part of a schema as the compiler is to take it. What is absent is never `null`, and a link of Rust's documentation is none here. */
function plain(key, value) {
  if (typeof value === "string") return key === "description" ? value.replaceAll(/\[(`[^`]+`|[^\]]+)\](\([^)]*\))?/g, "$1") : value;
  if (key === "minItems" || key === "maxItems") return undefined;
  if (key === "type" && Array.isArray(value)) return value.find((type) => type !== "null");
  const { description, ...schema } = single(value);
  if (typeof schema.$ref === "string") return { description, tsType: schema.$ref.split("/").at(-1) };
  if (schema.oneOf && schema.properties) {
    const { oneOf, ...common } = schema;
    return { description, allOf: [common, { oneOf }] };
  }
  const isAny = typeof description === "string" && !Object.keys(schema).some((word) => TYPES.includes(word));
  return isAny ? { description, tsType: "unknown" } : value;
}

/** The one schema that a choice leaves, with what is said of it at its place. */
function single(schema) {
  const choice = (schema?.anyOf ?? schema?.allOf)?.filter((one) => one.type !== "null");
  return choice?.length === 1 ? { ...choice[0], description: schema.description } : { ...schema };
}

/** Makes all properties and arrays `readonly`. */
function immutable(source) {
  const places = [];
  const visit = (node) => {
    if (ts.isPropertySignature(node) || ts.isIndexSignatureDeclaration(node)) places.push(node.getStart());
    if (ts.isArrayTypeNode(node) || ts.isTupleTypeNode(node)) places.push(node.getStart());
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile("types.ts", source, ts.ScriptTarget.Latest, true));
  return places.sort((one, other) => other - one).reduce((text, at) => `${text.slice(0, at)}readonly ${text.slice(at)}`, source);
}
