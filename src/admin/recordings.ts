// /admin/recordings: requests and answers that were kept, looked for, read and deleted. Viewers do not see what people have said.

import { currencyOf } from "../config/sections/currency.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { schemasOf } from "../openapi/json-schema.ts";
import { type DescribedEndpoint, jsonAnswer, pathParameter } from "../openapi/operation.ts";
import { adminGroup, answer } from "./endpoint.ts";
import type { AdminParts } from "./parts.ts";
import { queryOf } from "./query.ts";
import { cursorOf, FILTER_NAMES, filterParameters, pageParameters, readFilter, readPage } from "./recording-query.ts";
import {
  ConversationPart,
  RecordedConversation,
  Recording,
  RecordingList,
  RecordingRow,
  RecordingsDeleted,
} from "./recording-schemas.ts";
import { inStore, openedRecordings } from "./recording-storage.ts";
import { recordingRow, recordingView } from "./recording-view.ts";

const endpoint = adminGroup(
  "Recordings",
  schemasOf(RecordingRow, RecordingList, ConversationPart, RecordedConversation, Recording, RecordingsDeleted),
);
const recordingId = pathParameter("id", "Id of a recording.");

type RecordingRouteParts = Pick<AdminParts, "recordings" | "settings" | "clock">;

export function recordingRoutes({ recordings, settings, clock }: RecordingRouteParts): DescribedEndpoint[] {
  return [
    endpoint("GET /admin/recordings", {
      id: "listRecordings",
      role: "operator",
      summary: "Recorded requests, by what is looked for",
      parameters: [...filterParameters, ...pageParameters],
      answers: [jsonAnswer(RecordingList, "A page of recordings, without what was said.")],
      errors: [503],
      async handle(call) {
        const query = queryOf(call);
        const page = readPage(query);
        const filter = readFilter(query, clock.wallTime());
        const store = await openedRecordings(recordings);
        const found = store === undefined ? [] : await inStore(() => store.list(filter, page));
        const last = found.length < page.limit ? undefined : found.at(-1);
        return answer(call, {
          enabled: settings().recording.enabled,
          currency: currencyOf(settings()),
          bytes: store === undefined ? 0 : inStore(store.bytes),
          recordings: found.map(recordingRow),
          next_cursor: last === undefined ? null : cursorOf(last),
        });
      },
    }),
    endpoint("DELETE /admin/recordings", {
      id: "deleteRecordings",
      role: "operator",
      summary: "Delete the recordings of a key, a user, or any other filter",
      parameters: filterParameters,
      answers: [jsonAnswer(RecordingsDeleted, "How many there were.")],
      errors: [503],
      async handle(call) {
        const query = queryOf(call);
        const named = FILTER_NAMES.filter((name) => query.has(name));
        if (named.length === 0) {
          throw new GatewayError(ERRORS.invalidRequest, "Name at least one filter, such as key or user.");
        }
        const filter = readFilter(query, clock.wallTime());
        const store = await openedRecordings(recordings);
        const deleted = store === undefined ? 0 : await inStore(() => store.remove(filter));
        // What was looked for may be what somebody has said.
        const change = { section: "recordings", field: named.join(", "), from: deleted, to: 0 };
        call.deed = { subject: query.get("key") ?? query.get("user") ?? "recordings", changes: [change] };
        return answer(call, { deleted });
      },
    }),
    endpoint("GET /admin/recordings/{id}", {
      id: "readRecording",
      role: "operator",
      summary: "What was asked and answered in one request",
      parameters: [recordingId],
      answers: [jsonAnswer(Recording, "The recording, with its bodies and as a conversation.")],
      errors: [503],
      async handle(call) {
        const { id } = call.parameters;
        const store = await openedRecordings(recordings);
        const found = store === undefined ? undefined : inStore(() => store.find(id));
        if (store === undefined || found === undefined) throw unknownRecording();
        const bodies = await inStore(() => store.read(found));
        if (bodies === undefined) throw unreadable();
        return answer(call, recordingView(found, bodies));
      },
    }),
  ];
}

function unknownRecording(): GatewayError {
  return new GatewayError(ERRORS.recordingNotFound, "id: there is no such recording.", { param: "id" });
}

function unreadable(): GatewayError {
  const message = "The bodies of this recording cannot be opened: they are gone, or were sealed with another key.";
  return new GatewayError(ERRORS.storageUnavailable, message);
}
