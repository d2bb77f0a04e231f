// Very many requests to a server at which anything goes wrong at any time. Whoever is answered must have been answered right,
// nothing may be asked more often than the rule for kept connections allows, and nothing may be left open.

import type { BackendCall } from "../../src/backends/transport.ts";
import { waitFor, within } from "../support/wait-for.ts";
import { type FaultPlan, planOf, requestBody, stepsOf } from "./fault-plan.ts";
import { Collector, headOf } from "./outcome.ts";
import { ScriptedServer } from "./scripted-server.ts";
import { turns } from "./server-connection.ts";
import { ask, backendAt, MAX_IDLE, type TestClient } from "./subject.ts";

export interface FaultOptions {
  seed: number;
  requests: number;
  /** Of the server. */
  tls?: { cert: string; key: string };
}

export interface FaultReport {
  requests: number;
  /** Whole and right. */
  answered: number;
  failed: number;
  left: number;
  /** Requests that arrived at the server in whole, and how many of them arrived for the second time. */
  executions: number;
  replaced: number;
  connections: number;
  largestOpen: number;
  /** What must not be, in words. */
  wrong: string[];
}

const AT_ONCE = 64;
const CALL_MS = 60_000;
const TOLD = 20;

/** Counts how often each request arrived, and says when that was too often. */
class Executions {
  total = 0;
  replaced = 0;
  readonly #counts: Uint8Array;
  /** 1 for each request that may not arrive again: its connection was new, or it had a byte of an answer. */
  readonly #isFinal: Uint8Array;

  constructor(requests: number) {
    this.#counts = new Uint8Array(requests);
    this.#isFinal = new Uint8Array(requests);
  }

  /** What is wrong with this one; undefined: nothing. */
  begin(id: number, isFinal: boolean): string | undefined {
    this.total++;
    const count = (this.#counts[id] as number) + 1;
    this.#counts[id] = count;
    if (count > 1) this.replaced++;
    const wasFinal = this.#isFinal[id] === 1;
    if (isFinal) this.#isFinal[id] = 1;
    if (wasFinal) return `request ${id} was sent again although it could not be replaced`;
    return count > 2 ? `request ${id} was sent ${count} times` : undefined;
  }
}

/** Closes the client at the end, to see what it leaves open. */
export async function runFaults(client: TestClient, options: FaultOptions): Promise<FaultReport> {
  const { seed, requests, tls } = options;
  const report: FaultReport = {
    requests,
    answered: 0,
    failed: 0,
    left: 0,
    executions: 0,
    replaced: 0,
    connections: 0,
    largestOpen: 0,
    wrong: [],
  };
  const wrong = (what: string) => {
    if (report.wrong.length < TOLD) report.wrong.push(what);
  };
  const executions = new Executions(requests);
  using server = new ScriptedServer({
    forgets: true,
    ...(tls !== undefined && { tls }),
    script({ target, body, place, connection }) {
      const id = Number(target.slice("/".length));
      const plan = planOf(seed, id);
      const dies = connection.note as "fin" | "reset" | undefined;
      const saysNothing = dies !== undefined || plan.fault === "nothing" || plan.fault === "stall";
      const isTooOften = executions.begin(id, place === 0 || !saysNothing);
      if (isTooOften !== undefined) wrong(isTooOften);
      if (!body.equals(requestBody(plan))) wrong(`request ${id} arrived with another body`);
      return dies === undefined ? stepsOf(plan, connection) : [dies];
    },
  });
  const backend = backendAt(server.url);
  let next = 0;
  async function worker(): Promise<void> {
    while (next < requests) {
      const plan = planOf(seed, next++);
      const call = ask(client.transport, backend, { path: `/${plan.id}`, body: requestBody(plan) });
      await within(`the end of request ${plan.id} of seed ${seed}`, follow(plan, call, report, wrong), CALL_MS);
      report.largestOpen = Math.max(report.largestOpen, server.openConnections);
    }
  }
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, requests) }, worker));
  for (const [allowed, when] of [
    [MAX_IDLE, "when all calls were over"],
    [0, "when the client was closed"],
  ] as const) {
    if (allowed === 0) client.close();
    await waitFor("connections are closed", () => server.openConnections <= allowed).catch(() => {
      report.wrong.push(`${server.openConnections} connections were open ${when}`);
    });
  }
  report.wrong.push(...server.violations.slice(0, TOLD));
  return { ...report, executions: executions.total, replaced: executions.replaced, connections: server.accepted };
}

/** Waits for the end of a call, and compares it with its plan. */
async function follow(
  plan: FaultPlan,
  call: BackendCall,
  report: FaultReport,
  wrong: (what: string) => void,
): Promise<void> {
  let hasLeft = false;
  if (plan.leavesAfter !== undefined) {
    void turns(plan.leavesAfter).then(() => {
      hasLeft = true;
      call.abort();
    });
  }
  const answer = await headOf(call);
  const body = new Collector();
  if (!("code" in answer)) {
    answer.read({
      received(piece) {
        body.received(piece);
        if (plan.readerPauses === 0) return;
        answer.pause();
        void turns(plan.readerPauses).then(() => answer.resume());
      },
      ended: () => body.ended(),
      failed: (error) => body.failed(error),
    });
    await body.over;
  }
  const told = `request ${plan.id} (${plan.fault}, ${plan.framing}, ${plan.after})`;
  const bytes = body.body;
  if (body.violation !== undefined) wrong(`${told}: ${body.violation}`);
  if (!bytes.equals(plan.body.subarray(0, bytes.length))) wrong(`${told} got bytes that are not its own`);
  if (body.end === "complete") {
    report.answered++;
    if (plan.fault !== "none" || bytes.length !== plan.body.length)
      wrong(`${told} took ${bytes.length} bytes for a whole answer`);
  } else if (hasLeft) {
    report.left++;
  } else {
    report.failed++;
    const code = "code" in answer ? answer.code : body.code;
    // A reset overtakes what was sent before it.
    const isOvertaken = plan.after === "ends" && plan.ending === "reset" && plan.framing !== "close";
    if (plan.fault === "none" && !isOvertaken) wrong(`${told} failed with ${code} behind ${bytes.length} bytes`);
  }
}
