// What the agent can do, for ACP clients and the admin API. Images and sound also depend on the model of a session.

/** Both forms of the answer to `initialize` are made from these. */
export const AGENT_CAPABILITIES = {
  loadSession: true,
  image: true,
  audio: true,
  embeddedContext: true,
  mcp: true,
  mcpCapabilities: { acp: true, http: true, sse: true },
} as const;
