// Writes the reference of the API as Markdown, from openapi/openapi.json. It has more than
// 1 MB, of which a visitor reads a page. Viewers of such files load all of it, and as much of their own.

import { readFileSync } from "node:fs";
import { ROOT } from "../pages.mjs";

const api = JSON.parse(readFileSync(`${ROOT}openapi/openapi.json`, "utf8"));
const { schemas } = api.components;
const METHODS = ["get", "put", "post", "patch", "delete"];
const PROBLEM = "application/problem+json";

const found = (thing) => (thing?.$ref ? thing.$ref.split("/").slice(1).reduce((at, key) => at[key], api) : thing);
const named = (thing) => /^#\/components\/schemas\/(.*)/.exec(thing?.$ref ?? "")?.[1];
const anchor = (name) => name.toLowerCase();
const cell = (text) => (text ?? "").replace(/\s*\n\s*/g, " ").replaceAll("|", "\\|");
const code = (language, text) => `\`\`\`${language}\n${text.trimEnd()}\n\`\`\`\n`;
const table = (head, rows) =>
  `| ${head.join(" | ")} |\n|${head.map(() => "---|").join("")}\n${rows.map((row) => `| ${row.map(cell).join(" | ")} |\n`).join("")}\n`;

/** All operations, in the order of the description. */
const operations = Object.entries(api.paths).flatMap(([path, item]) =>
  METHODS.filter((method) => item[method]).map((method) => ({ ...item[method], path, method: method.toUpperCase() })),
);

/** Calls a function with the name of each schema that a part of the description mentions, also by way of others. */
function eachSchema(part, visit) {
  if (part === null || typeof part !== "object") return;
  const name = named(part);
  if (name && visit(name)) eachSchema(schemas[name], visit);
  for (const value of Object.values(part)) eachSchema(value, visit);
}

/** The groups whose types have a page of their own, because both would be too long for one. */
const DIVIDED = ["boards"];
/** The group of operations with which each schema is described: the first that uses it. */
const home = new Map();
for (const { name: tag } of api.tags) {
  eachSchema(
    operations.filter(({ tags }) => tags[0] === tag),
    (name) => !home.has(name) && home.set(name, tag),
  );
}

const pageOfTypes = (tag) => (DIVIDED.includes(tag) ? `${tag}-types` : tag);

/** Returns what a value is, such as "list of [Increment](increments.md#increment)". */
function typeOf(schema) {
  if (schema === true || schema === undefined) return "any";
  const name = named(schema);
  if (name) return `[${name}](${pageOfTypes(home.get(name))}.md#${anchor(name)})`;
  const choices = schema.oneOf ?? schema.anyOf ?? schema.allOf;
  if (choices) return choices.map(typeOf).join(" or ");
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``;
  if (schema.enum) return schema.enum.map((value) => `\`${JSON.stringify(value)}\``).join(", ");
  const types = [schema.type ?? "any"].flat().map((type) => {
    if (type === "array") return `list of ${typeOf(schema.items)}`;
    if (type === "object" && typeof schema.additionalProperties === "object") return `object of ${typeOf(schema.additionalProperties)}`;
    return schema.format === "date-time" && type === "string" ? "time" : type;
  });
  return types.join(" or ");
}

/** Returns the bounds of a value as text. */
function bounds({ minimum, maximum, minLength, maxLength, minItems, maxItems, pattern, default: usual } = {}) {
  const between = (from, to, unit) =>
    from === undefined && to === undefined ? [] : [`${from === undefined ? "up" : from.toLocaleString("en")}${to === undefined ? " or more" : ` to ${to.toLocaleString("en")}`}${unit}`];
  return [
    ...between(minimum, maximum, ""),
    ...between(minLength, maxLength, " characters"),
    ...between(minItems, maxItems, " elements"),
    ...(pattern ? [`\`${pattern}\``] : []),
    ...(usual === undefined ? [] : [`default \`${JSON.stringify(usual)}\``]),
  ].join("; ");
}

const typeAndBounds = (schema) => [typeOf(schema), bounds(schema === true ? {} : schema)].filter(Boolean).join(", ");

/** Returns the types and examples of a body. */
function body(content) {
  return Object.entries(content ?? {})
    .filter(([type]) => type !== PROBLEM)
    .map(([type, { schema, example, examples }]) => {
      const shown = example ?? found(Object.values(examples ?? {})[0])?.value;
      const text = typeof shown === "string" ? shown : JSON.stringify(shown, null, 2);
      const language = type.endsWith("json") && text?.startsWith("{\n") ? "json" : "text";
      const what = named(schema) || schema?.oneOf ? `: ${typeOf(schema)}` : "";
      return `\`${type}\`${what}\n\n${shown === undefined ? "" : code(language, text)}`;
    })
    .join("\n");
}

/** The codes of problems: what each means, by the operations that answer with it. */
const problems = new Map();

/** Returns the refusals of an operation, by status. Their codes are described on a page of their own. */
function refusals(responses) {
  const rows = [];
  for (const [status, given] of Object.entries(responses)) {
    const response = found(given);
    if (!response.content?.[PROBLEM]) continue;
    const codes = [...response.description.matchAll(/`(\w+)`: ((?:(?!\n- `).)*)/gs)];
    for (const [, name, text] of codes) if (!problems.has(name)) problems.set(name, { status, text: text.trim() });
    const links = codes.map(([, name]) => `[${name}](problems.md#${name})`).join(", ");
    rows.push([status, links || response.description]);
  }
  return rows.length === 0 ? "" : `Refusals:\n\n${table(["status", "codes"], rows)}`;
}

function operation({ method, path, summary, description, parameters = [], requestBody, responses }) {
  let text = `## ${summary}\n\n${code("http", `${method} ${path}`)}\n${description ?? ""}\n\n`;
  if (parameters.length > 0) {
    const rows = parameters.map(found).map(({ name, in: place, required, schema, description }) =>
      [`\`${name}\``, `${place}: ${typeAndBounds(schema)}${required && place !== "path" ? ", required" : ""}.<br>${description ?? ""}`]);
    text += `${table(["parameter", "meaning"], rows)}`;
  }
  if (requestBody) text += `Body, ${found(requestBody).required ? "required" : "optional"}: ${body(found(requestBody).content)}\n`;
  for (const [status, given] of Object.entries(responses)) {
    const response = found(given);
    if (response.content?.[PROBLEM]) continue;
    text += `Answer **${status}**: ${response.description}\n\n${body(response.content)}\n`;
    const headers = Object.entries(response.headers ?? {}).map(([name, header]) => [`\`${name}\``, found(header).description]);
    if (headers.length > 0) text += table(["header", "meaning"], headers);
  }
  return text + refusals(responses);
}

function schema(name) {
  const given = schemas[name];
  let text = `### ${name}\n\n${given.description ?? ""}\n\n`;
  const members = Object.entries(given.properties ?? {});
  if (members.length === 0) return `${text}${typeAndBounds({ ...given, description: undefined })}\n\n`;
  const required = new Set(given.required);
  const rows = members.map(([key, value]) => [`\`${key}\``, `${typeAndBounds(value)}${required.has(key) ? "" : ", optional"}.${value.description ? `<br>${value.description}` : ""}`]);
  return text + table(["member", "meaning"], rows);
}

/** Returns the pages: `{ name, title, text }`. */
export function pages() {
  const groups = api.tags.map(({ name, description }) => {
    const title = name[0].toUpperCase() + name.slice(1);
    const own = operations.filter(({ tags }) => tags[0] === name);
    const types = [...home].filter(([, tag]) => tag === name).map(([type]) => type).sort();
    const text = `# ${title}: reference\n\n${description}\n\n${own.map(operation).join("\n")}`;
    return { name, text, description, title, own, types: types.map(schema).join("") };
  });
  const list = groups.map(({ name, title, description, own }) =>
    `## [${title}](${name}.md)\n\n${description}\n\n${table(["call", "purpose"], own.map(({ method, path, summary }) => [`\`${method} ${path}\``, summary]))}`);
  const index = `# Reference of the API\n\nFor authors of clients: every call with its parameters, bodies, answers and refusals, written from
\`openapi.json\`. [The API](../../docs/api.md) explains them with examples. A running service has the same at \`/swagger-ui/\`, to try,
and the description itself at \`/openapi.json\`.\n\n${list.join("\n")}\n## [Problems](problems.md)\n\nThe codes of refusals.\n`;
  const rows = [...problems].sort(([a], [b]) => a.localeCompare(b)).map(([name, { status, text }]) => [`<a id="${name}"></a>\`${name}\``, status, text]);
  const codes = `# Problems: reference\n\nA refusal is \`application/problem+json\` (RFC 9457). Its \`code\` says what was wrong and never changes its meaning.\n
${table(["code", "status", "meaning"], rows)}`;
  const pages = groups.flatMap(({ name, title, text, types }) =>
    DIVIDED.includes(name)
      ? [{ name, title, text }, { name: pageOfTypes(name), title: `${title}: types`, text: `# ${title}: types\n\nWhat bodies and answers of [the calls](${name}.md) have.\n\n${types}` }]
      : [{ name, title, text: `${text}${types && `## Types\n\n${types}`}` }]);
  return [{ name: "index", title: "Reference of the API", text: index }, ...pages, { name: "problems", title: "Problems", text: codes }];
}
