// Section acp: the agent that an editor starts with --mode stdio (docs/agent.md).

import { z } from "zod";
import { positiveDuration, text, whole } from "./fields.ts";
import { defineSection } from "./section.ts";

const permission = () => z.enum(["allow", "ask", "deny"], { error: "expected one of allow, ask, deny" });

const LONGEST_ID = 128;

/** Two underscores separate a server's id from the name of its tool. */
const serverId = z
  .string()
  .max(LONGEST_ID, `at most ${LONGEST_ID} characters`)
  .regex(
    /^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?$/,
    "letters, digits, '-', '_' and '.' only, with a letter or a digit at both ends",
  )
  .refine((id) => !id.includes("__"), "must not contain two underscores in a row");

const mcpServer = z.strictObject({
  command: text().describe("The program: a path, or a name that is looked for in PATH."),
  args: z.array(z.string()).default([]).describe("Its arguments. Secrets belong in env: arguments are not masked."),
  env: z
    .record(z.string().regex(/^[^=\0]+$/, "expected the name of a variable"), z.string())
    .default({})
    .describe("All of the environment that it gets beside PATH, HOME and LANG."),
  cwd: text()
    .optional()
    .describe("Its working folder. Default: that of the session, or of the agent where mcp/connect names no session."),
});

export const acpSection = defineSection({
  isExtension: true,
  reload: "immediate",
  description: "The agent that editors start with --mode stdio: its sessions, what it may do, and its tool servers.",
  schema: z.strictObject({
    enabled: z.boolean().default(true).describe("false: --mode stdio ends at once."),
    model: text()
      .optional()
      .describe("The model of sessions that choose none. Default: the first chat model of the backends."),
    max_concurrent: whole(1, 1_000).default(10).describe("Most sessions of a process."),
    idle_timeout: positiveDuration()
      .prefault("1h")
      .describe("A session that was not used for this long leaves the memory, with its tool servers."),
    storage: z
      .enum(["memory", "file"], { error: "expected one of memory, file" })
      .default("memory")
      .describe(
        "memory: a session ends with its process. file: it can be loaded again; the conversation is on the disk.",
      ),
    storage_path: text()
      .default("./data/acp/sessions")
      .describe("The folder for storage file; a path below ./data lies in server.data_dir."),
    max_turns: whole(1, 1_000).default(50).describe("Most calls of a model for one prompt."),
    permissions: z
      .strictObject({
        read: permission().default("allow"),
        edit: permission().default("ask"),
        delete: permission().default("ask"),
        move: permission().default("ask"),
        search: permission().default("allow"),
        execute: permission().default("ask"),
        think: permission().default("allow"),
        fetch: permission().default("ask"),
        switch_mode: permission().default("ask"),
        other: permission().default("ask").describe("The tools of MCP servers among them."),
      })
      .prefault({})
      .describe("By kind of tool. allow: it runs; ask: the person is asked; deny: the model is told that it may not."),
    mcp: z
      .strictObject({
        max_connections: whole(1, 1_000).default(5).describe("Of mcp/connect, at a time and in a process."),
        allowed_servers: z
          .array(serverId)
          .default([])
          .describe("Servers that mcp/connect may name; empty: all that are configured."),
        spawn_timeout: positiveDuration().prefault("10s").describe("How long a server may take to start."),
        servers: z
          .record(serverId, mcpServer)
          .default({})
          .describe("MCP servers by their ids. Every session has their tools, and mcp/connect speaks with them."),
      })
      .prefault({}),
  }),
  // A session keeps to the place where it was made.
  restartFields: ["storage", "storage_path"],
  // Commands run with the rights of the user who starts an editor: a change through the API must not bring them in, nor let
  // tools run unasked.
  fileOnlyFields: ["permissions", "mcp.servers"],
  secretPaths: ["mcp.servers.*.env.*"],
  filePaths: { storage_path: { use: "data-folder" }, "mcp.servers.*.cwd": { use: "folder" } },
});
