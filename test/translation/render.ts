// The matrix as the page docs/compatibility.md: one table per client, features as rows, backends as columns.

import { join } from "node:path";
import type { BackendKind } from "../../src/backends/kind.ts";
import { BACKEND_KINDS } from "../../src/backends/kinds.ts";
import { type Operation, servedBy } from "../../src/backends/operations.ts";
import { BACKEND_KIND_NAMES } from "../../src/names.ts";
import { BACKEND_NAMES, type BackendName } from "./backends.ts";
import { FEATURES } from "./features/all.ts";
import type { Outcome, Verdict } from "./features/feature.ts";
import { type Cell, CLIENTS, isOwnEndpoint, type Matrix } from "./run.ts";

export const PAGE = join(import.meta.dir, "..", "..", "docs", "compatibility.md");

const CLIENT_TITLES = {
  chat: ["Chat completions", "`POST /v1/chat/completions`"],
  responses: ["Responses", "`POST /v1/responses`"],
  messages: ["Messages", "`POST /v1/messages`, `POST /anthropic/v1/messages`"],
  "generate-content": [
    "generateContent",
    "`POST /v1beta/models/{model}:generateContent`, `POST /v1beta/models/{model}:streamGenerateContent`",
  ],
  completions: ["Legacy completions", "`POST /v1/completions`"],
  "ollama-api": ["Ollama", "`POST /api/chat`; backends of type `ollama` get these requests untouched"],
} as const;

const COLUMNS: Record<BackendName, string> = {
  chat: "chat (OpenAI)",
  local: "chat (local engine)",
  responses: "Responses",
  messages: "Messages",
  "generate-content": "generateContent",
  "vertex-claude": "Vertex AI: Claude",
  "vertex-gemini": "Vertex AI: Gemini",
  converse: "Converse",
  "bedrock-claude": "Bedrock: Claude",
};

const WORDS: Record<Outcome, string> = {
  kept: "kept",
  changed: "changed",
  dropped: "dropped",
  refused: "refused",
  absent: "–",
  failed: "FAILED",
};

const INTRODUCTION = `# Compatibility

Which feature of which client format survives at which backend format. This page is written by the matrix test
(\`sh bin/bun scripts/compatibility.ts\`), which sends every feature through a running gateway, whole and streamed, to
backends that check requests as strictly as the vendors do; a test fails when the page says something else than the run
found. The stream and the plain answer say the same, unless a note tells the difference.

| Word | Means |
|---|---|
| kept | arrives as it was; between two ends of one format the bytes pass untouched |
| changed | arrives in another form, told in the note |
| dropped | left out; the debug log (\`a translation could not carry all\`) and, of plain answers, the header \`X-Signalbox-Dropped\` name it, or the note says why |
| refused | answered with 400 before the backend is asked; the note is the message |
| – | the backend's format has nothing of the kind |

The columns are backends by the format they are asked in: \`chat (OpenAI)\` is the hosted API, \`chat (local engine)\` a
llama.cpp server, \`Messages\` is Anthropic's and \`generateContent\` Gemini's API. Features that a client's format has no
words for are not in its table.
`;

export function renderPage({ cells, moves }: Matrix): string {
  const sections = CLIENTS.map(({ name }) => renderClient(name, cells));
  return [INTRODUCTION, ...sections, renderMoves(moves.length), renderMedia()].join("\n");
}

const MEDIA: readonly (readonly [title: string, operation: Operation])[] = [
  ["Images", "images"],
  ["Edits", "image-edits"],
  ["Variations", "image-variations"],
  ["Speech", "speech"],
  ["Transcriptions", "transcriptions"],
  ["Translations", "translations"],
  ["Moderations", "moderations"],
];

/** By the table of types, not by the run. */
function renderMedia(): string {
  const rows = BACKEND_KIND_NAMES.map((name) => {
    const kind = BACKEND_KINDS[name];
    const cells = MEDIA.map(([, operation]) => wayOf(kind, operation));
    return `| \`${name}\` | ${[...cells, kind.keepsFiles ? "also its own" : "the gateway's"].join(" | ")} |`;
  });
  return `## Images, audio, moderations and files

Which type of backend has what. Nothing but images is translated; a type without the endpoint is refused with 400
\`unsupported_operation\`. Files are the gateway's own on every type ([files.md](files.md)); ids that it does not know go on to
types with a Files API of their own.

| Type | ${MEDIA.map(([title]) => title).join(" | ")} | Files |
|---|${MEDIA.map(() => "---|").join("")}---|
${rows.join("\n")}
`;
}

function wayOf({ paths }: BackendKind, operation: Operation): string {
  const served = servedBy(paths, operation);
  if (served === undefined) return WORDS.absent;
  return served === operation ? "passes" : "translated";
}

function renderClient(name: keyof typeof CLIENT_TITLES, all: readonly Cell[]): string {
  const client = CLIENTS.find((candidate) => candidate.name === name);
  if (client === undefined) throw new Error(`no client ${name}`);
  const [title, path] = CLIENT_TITLES[name];
  const columns = BACKEND_NAMES.filter((backend) => !isOwnEndpoint(client, { id: backend }));
  const untouched = columns.length < BACKEND_NAMES.length;
  const notes: string[] = [];
  const lines = [
    `## ${title} clients`,
    "",
    `${path}.${untouched ? " Backends of the chat format have this endpoint themselves: such requests pass untouched." : ""}`,
    "",
    `| | ${columns.map((backend) => COLUMNS[backend]).join(" | ")} |`,
    `|---|${columns.map(() => "---|").join("")}`,
  ];
  let group: string | undefined;
  for (const feature of FEATURES) {
    const cells = columns.map((backend) =>
      all.find((cell) => cell.client.name === name && cell.backend === backend && cell.feature.id === feature.id),
    );
    if (cells.every((cell) => cell === undefined)) continue;
    if (feature.group !== group) lines.push(`| **${feature.group}** |${columns.map(() => " |").join("")}`);
    group = feature.group;
    lines.push(`| ${feature.title} | ${cells.map((cell) => renderCell(cell?.verdict, notes)).join(" | ")} |`);
  }
  lines.push("", ...notes.map((note, index) => `${index + 1}. ${note}`), "");
  return lines.join("\n");
}

function renderCell(verdict: Verdict | undefined, notes: string[]): string {
  if (verdict === undefined) return "";
  const { outcome, note } = verdict;
  // That a drop is listed under the feature's own name says nothing new.
  if (note === undefined || note.startsWith("listed as ")) return WORDS[outcome];
  if (!notes.includes(note)) notes.push(note);
  return `${WORDS[outcome]} (${notes.indexOf(note) + 1})`;
}

function renderMoves(count: number): string {
  return `## Conversations that move

A tool turn with thoughts at one backend, its result sent to another: after a fallback, after a change of the model, or
by load balancing. The run moved ${count} conversations, from every backend to every other in every client format but
legacy completions, plain and streamed. Each was accepted, with the call and its result; proofs of thoughts (signatures,
sealed forms) reached no backend but the one that made them.
`;
}
