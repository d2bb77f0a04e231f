// The plan of the model, as the person sees it.

import { isObject } from "../../lib/json.ts";
import { type AgentTool, ToolError } from "../tool.ts";
import type { PlanEntry } from "../updates.ts";

const PRIORITIES: readonly PlanEntry["priority"][] = ["high", "medium", "low"];
const STATUSES: readonly PlanEntry["status"][] = ["pending", "in_progress", "completed"];
const MAX_ENTRIES = 100;
const MAX_LENGTH = 1_000;

export const updatePlan: AgentTool = {
  name: "update_plan",
  description:
    "Shows the person your plan for a task of several steps, and how far you are. Give the whole plan each time, with one step in progress.",
  parameters: {
    type: "object",
    properties: {
      entries: {
        type: "array",
        items: {
          type: "object",
          properties: {
            content: { type: "string", description: "What is done in this step." },
            status: { type: "string", enum: [...STATUSES] },
            priority: { type: "string", enum: [...PRIORITIES] },
          },
          required: ["content", "status"],
          additionalProperties: false,
        },
      },
    },
    required: ["entries"],
    additionalProperties: false,
  },
  kind: "think",

  preview: () => ({ title: "Update the plan" }),

  async run({ entries }, { editor }) {
    const given = Array.isArray(entries) ? entries : [];
    if (given.length > MAX_ENTRIES)
      throw new ToolError(`The plan has ${given.length} entries; at most ${MAX_ENTRIES} are shown.`);
    editor.tell({ type: "plan", entries: given.map(entryOf) });
    return { parts: [{ type: "text", text: "The person sees the plan." }], content: [] };
  },
};

function entryOf(value: unknown): PlanEntry {
  const { content, priority, status } = isObject(value) ? value : {};
  return {
    content: String(content).slice(0, MAX_LENGTH),
    priority: PRIORITIES.find((known) => known === priority) ?? "medium",
    status: STATUSES.find((known) => known === status) ?? "pending",
  };
}
