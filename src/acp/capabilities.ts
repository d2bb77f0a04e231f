// What the agent can do, for ACP clients and the admin API. Images and sound also depend on the model of a session.

/** Of the answer to `initialize`; both of its forms are made of it. */
export const AGENT_CAPABILITIES = {
  loadSession: true,
  image: true,
  audio: true,
  embeddedContext: true,
  mcp: true,
  mcpCapabilities: { acp: true, http: true, sse: true },
} as const;
