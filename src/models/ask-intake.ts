// Asks engines what their models take besides text, where their lists do not say it.

import type { Backend } from "../backends/backend.ts";
import { callDeadline, controlHeaders } from "../backends/control-request.ts";
import type { Transport } from "../backends/transport.ts";
import { readWholeBody } from "../backends/whole-body.ts";
import type { Intake } from "../generation/intake.ts";
import { parseJson } from "../lib/json.ts";
import { intakeInProps, intakeInShow } from "./intake.ts";
import type { ModelRecord } from "./list.ts";

/**
 * Intakes known by now, by model. Undefined: the model was asked about without a result, and is asked again only once it
 * changes.
 */
export type ToldIntakes = ReadonlyMap<string, Intake | undefined>;

/** A model that was created again may take something else. */
export function toldOf(told: ToldIntakes, model: ModelRecord): Intake | undefined {
  return model.intake ?? told.get(keyOf(model));
}

function keyOf({ id, created }: ModelRecord): string {
  return `${id}\n${created}`;
}

/** Questions about models, each of which is answered within a few milliseconds. */
const MAX_QUESTIONS = 200;
const MAX_BODY_BYTES = 4 * 1024 * 1024;

const decoder = new TextDecoder();

interface IntakeQuestion {
  backend: Backend;
  transport: Transport;
  timeoutMs: number;
  stop: AbortSignal;
}

/** Never rejects: what an engine does not tell is not known. */
export async function askIntakes(
  asking: IntakeQuestion,
  models: readonly ModelRecord[],
  before: ToldIntakes,
): Promise<ToldIntakes> {
  const { intake: question } = asking.backend.kind;
  const unknown = models.filter(({ intake }) => intake === undefined);
  if (question === undefined || unknown.length === 0) return new Map();
  const told = new Map<string, Intake | undefined>();
  const deadline = callDeadline(asking.timeoutMs, asking.stop);
  try {
    if (question.of === "server") {
      // A router of several models tells of itself.
      if (models.length > 1) return told;
      const intake = intakeInProps(await ask(asking, deadline, question.path));
      for (const model of unknown) told.set(keyOf(model), intake);
      return told;
    }
    const isKnown = (model: ModelRecord) => before.has(keyOf(model));
    for (const model of unknown.filter(isKnown)) told.set(keyOf(model), before.get(keyOf(model)));
    for (const model of unknown.filter((one) => !isKnown(one)).slice(0, MAX_QUESTIONS)) {
      const answer = await ask(asking, deadline, question.path, { model: model.id });
      if (answer === undefined) break; // the others would be answered alike
      told.set(keyOf(model), intakeInShow(answer));
    }
    return told;
  } catch {
    return told;
  } finally {
    deadline.close();
  }
}

/** Undefined for what is no answer, though something has come. */
async function ask(
  { backend, transport }: IntakeQuestion,
  deadline: ReturnType<typeof callDeadline>,
  path: string,
  body?: object,
): Promise<unknown> {
  const request = {
    method: body === undefined ? "GET" : "POST",
    headers: controlHeaders(backend, body !== undefined),
    body: body && JSON.stringify(body),
  };
  const call = deadline.watch(transport(backend, path, request));
  const head = await call.answer;
  const bytes = await readWholeBody(head, MAX_BODY_BYTES);
  if (bytes === undefined) call.abort();
  return bytes === undefined || head.status !== 200 ? undefined : parseJson(decoder.decode(bytes));
}
