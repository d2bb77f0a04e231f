// /admin/acp: what the agent is that editors start, and the sessions of those that run beside this gateway.

import { AGENT_CAPABILITIES } from "../acp/capabilities.ts";
import { SERVICE_NAME, VERSION } from "../names.ts";
import { count, described, flag, list, namedShape, schemasOf, shape, text, time } from "../openapi/json-schema.ts";
import { type DescribedEndpoint, jsonAnswer } from "../openapi/operation.ts";
import { adminGroup, answer } from "./endpoint.ts";
import type { AdminParts } from "./parts.ts";

const TRANSPORT = "stdio";

const AcpStatus = namedShape("AcpStatus", {
  enabled: described(flag, "Whether agents start: acp.enabled."),
  transport: described(text, "How editors speak with an agent: stdio."),
  capabilities: shape({
    loadSession: flag,
    image: flag,
    audio: flag,
    embeddedContext: flag,
    mcp: flag,
    mcpCapabilities: shape({ acp: flag, http: flag, sse: flag }),
  }),
});
const AcpSessions = namedShape("AcpSessions", {
  sessions: list(
    shape({
      sessionId: text,
      createdAt: time,
      updatedAt: time,
      mode: text,
      model: text,
      historyLength: described(count, "Messages of the conversation."),
      isBusy: described(flag, "A prompt is being answered."),
      pid: described(count, "The process that has it."),
    }),
  ),
  total: count,
});
const AcpAgent = namedShape("AcpAgent", {
  name: text,
  displayName: text,
  version: text,
  description: text,
  transport: list(shape({ type: text })),
  capabilities: shape({ loadSession: flag, mcp: flag }),
});

const SCHEMAS = schemasOf(AcpStatus, AcpSessions, AcpAgent);

const endpoint = adminGroup("Observation", SCHEMAS);

export function acpRoutes(parts: Pick<AdminParts, "agentSessions" | "settings">): DescribedEndpoint[] {
  return [
    endpoint("GET /admin/acp/status", {
      id: "getAcpStatus",
      role: "viewer",
      summary: "Whether agents start, and what they can do",
      answers: [jsonAnswer(AcpStatus, "The state of agent mode.")],
      handle: (call) =>
        answer(call, {
          enabled: parts.settings().acp.enabled,
          transport: TRANSPORT,
          capabilities: AGENT_CAPABILITIES,
        }),
    }),
    endpoint("GET /admin/acp/sessions", {
      id: "listAcpSessions",
      role: "viewer",
      summary: "Sessions of the agents that share the data folder",
      description: "Newest first. Sessions of a process that is gone are not among them, however it ended.",
      answers: [jsonAnswer(AcpSessions, "The sessions that are open.")],
      async handle(call) {
        const sessions = await parts.agentSessions();
        return answer(call, { sessions, total: sessions.length });
      },
    }),
    endpoint("GET /admin/acp/agent.json", {
      id: "getAcpAgent",
      role: "viewer",
      summary: "The agent as registries of agents list it",
      answers: [jsonAnswer(AcpAgent, "Who the agent is.")],
      handle(call) {
        const { loadSession, mcp } = AGENT_CAPABILITIES;
        return answer(call, {
          name: SERVICE_NAME,
          displayName: "Signalbox",
          version: VERSION,
          description: "A coding agent with every model of a Signalbox gateway behind it.",
          transport: [{ type: TRANSPORT }],
          capabilities: { loadSession, mcp },
        });
      },
    }),
  ];
}
