// Section hooks: code of the operator that sees, changes and refuses requests and answers (docs/hooks.md).

import { z } from "zod";
import { headerName, headerValue, oneOrMore, positiveDuration, text, whole } from "./fields.ts";
import { defineSection } from "./section.ts";

export const HOOK_EVENTS = ["request", "attempt", "answer", "chunk", "end"] as const;

/** Modules that come with the gateway. */
const BUILTIN_HOOKS = ["redact", "words", "json_schema", "max_size", "injection_score", "moderation"] as const;

export const BUILTIN_PREFIX = "builtin:";

const MOST_HOOKS = 50;
const MEBIBYTE = 1024 * 1024;
/** The gateway sets these itself. */
const OWN_HEADER = /^(host|content-.*|transfer-encoding|connection|user-agent|webhook-.*)$/i;

const names = () => oneOrMore(text().max(256));

const matchSchema = z.strictObject({
  key: names().optional().describe("Ids of API keys."),
  organization: names().optional().describe("Ids of organisations."),
  model: names().optional().describe("Models as clients name them; * stands for any characters."),
  route: names().optional().describe("Names of routes."),
  operation: names().optional().describe("What is asked for: chat, messages, responses, embeddings and the like."),
});

function isModule(name: string): boolean {
  if (!name.startsWith(BUILTIN_PREFIX)) return true;
  return (BUILTIN_HOOKS as readonly string[]).includes(name.slice(BUILTIN_PREFIX.length));
}

const hookSchema = z
  .strictObject({
    name: text()
      .max(64)
      .regex(/^[A-Za-z0-9._-]+$/, "expected letters, digits, dots, hyphens and underscores")
      .describe("Its name in the story of a request, in logs and in metrics."),
    module: text()
      .max(1024)
      .refine(
        isModule,
        `expected a path, a package, or one of ${BUILTIN_HOOKS.map((name) => BUILTIN_PREFIX + name).join(", ")}`,
      )
      .optional()
      .describe("A file such as ./hooks/redact.ts, a package, or builtin: and a name. Run in a process of its own."),
    url: z
      .string()
      .max(2048)
      .regex(/^https?:\/\/[^\s/?#\\@]+([/?#]\S*)?$/i, "expected an http or https URL without credentials")
      .refine((url) => URL.canParse(url), "expected an http or https URL")
      .optional()
      .describe("Receives the events by POST instead of a module."),
    events: z
      .array(z.enum(HOOK_EVENTS))
      .min(1, "name at least one event")
      .optional()
      .describe(`Events it receives: ${HOOK_EVENTS.join(", ")}. Default: all that the module has. Required with url.`),
    match: matchSchema.prefault({}).describe("Requests it is called for. Default: all of them."),
    timeout: positiveDuration()
      .refine((durationMs) => durationMs <= 600_000, "must be at most 10m")
      .prefault("200ms")
      .describe("Time for each call; a later verdict is ignored."),
    on_error: z
      .enum(["refuse", "pass"])
      .default("refuse")
      .describe("What a failed or late call means. refuse: the request gets 503. pass: as if there were no such hook."),
    max_memory: whole(64 * MEBIBYTE)
      .default(256 * MEBIBYTE)
      .describe("Bytes of the process of the module; beyond it the process is ended and started again."),
    secret: text()
      .optional()
      .describe("With url: signs each request (webhook-signature, HMAC-SHA256): a text, or whsec_ and base64."),
    headers: z
      .record(
        headerName().refine((name) => !OWN_HEADER.test(name), "is set by the gateway itself"),
        headerValue(),
      )
      .optional()
      .describe("With url: further headers of each request. Their values are secrets."),
    options: z.record(z.string(), z.unknown()).prefault({}).describe("Given to the hook as they are."),
  })
  .superRefine(({ module, url, events, secret, headers }, context) => {
    const problem = (path: string, message: string) => context.addIssue({ code: "custom", path: [path], message });
    if (module === undefined && url === undefined) problem("module", "name a module or a url");
    if (module !== undefined && url !== undefined) problem("url", "cannot stand beside module; name one of them");
    if (url !== undefined && events === undefined) problem("events", "is required with url");
    if (url === undefined && secret !== undefined) problem("secret", "belongs to url");
    if (url === undefined && headers !== undefined) problem("headers", "belongs to url");
  });

export const hooksSection = defineSection({
  isExtension: true,
  reload: "immediate",
  description: "Code of the operator that sees, changes and refuses requests and answers.",
  schema: z.array(hookSchema).max(MOST_HOOKS, `must be at most ${MOST_HOOKS} hooks`).prefault([]),
  secretPaths: ["*.secret", "*.headers.*"],
  sentTo: ["url"],
  entryNames: { "": ["name"] },
});

export type HookSettings = z.output<typeof hookSchema>;
export type HookEvent = (typeof HOOK_EVENTS)[number];
export type BuiltinHook = (typeof BUILTIN_HOOKS)[number];
