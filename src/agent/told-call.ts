// A call of a tool as the client sees it: once when it is known, then its changes, and nothing after its end.

import { compact, type JsonObject } from "../lib/json.ts";
import type { Outlet } from "./outlet.ts";
import { boundedRaw } from "./result-limits.ts";
import type { ToolPreview } from "./tool.ts";
import type { ToolCallView, ToolKind } from "./updates.ts";

type CallChange = Partial<Omit<ToolCallView, "toolCallId">>;

const MAX_TITLE_LENGTH = 200;

export class ToldCall {
  readonly #outlet: Outlet;
  readonly #toolCallId: string;
  #view: ToolCallView | undefined;
  #isOver = false;

  constructor(outlet: Outlet, toolCallId: string) {
    this.#outlet = outlet;
    this.#toolCallId = toolCallId;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  begin(
    { title, content = [], locations = [] }: ToolPreview,
    kind: ToolKind,
    rawInput: JsonObject | undefined,
  ): ToolCallView {
    const view: ToolCallView = {
      toolCallId: this.#toolCallId,
      title: oneLine(title),
      kind,
      status: "pending",
      content,
      locations,
      ...compact({ rawInput: boundedRaw(rawInput) }),
    };
    this.#view = view;
    this.#outlet.tell({ type: "tool-call", call: view });
    return view;
  }

  change(change: CallChange): void {
    if (this.#view === undefined || this.#isOver) return;
    this.#outlet.tell({ type: "tool-call-change", toolCallId: this.#toolCallId, change });
  }

  /** A call that was not shown ends without a message. */
  end(status: "completed" | "failed", change: CallChange = {}): void {
    this.change({ ...change, status });
    this.#isOver = true;
  }
}

function oneLine(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > MAX_TITLE_LENGTH ? `${line.slice(0, MAX_TITLE_LENGTH - 1)}…` : line;
}
