// /admin/notifications: the receivers of events with how their deliveries go, and a test of each.

import { NOTIFICATION_EVENTS, type NotificationTarget } from "../config/sections/notifications.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { changed, entryDryRun } from "../openapi/change-schemas.ts";
import {
  component,
  count,
  described,
  flag,
  list,
  namedShape,
  number,
  oneOfTexts,
  orNull,
  schemasOf,
  shape,
  text,
  time,
  type ValueOf,
} from "../openapi/json-schema.ts";
import { type DescribedEndpoint, jsonAnswer, pathParameter } from "../openapi/operation.ts";
import { entryPatch, entrySchema } from "../openapi/section-schemas.ts";
import { createCollection } from "./collection.ts";
import { adminGroup, answer, dryRun, toTimestamp, versioned } from "./endpoint.ts";
import type { AdminParts } from "./parts.ts";
import { shortened } from "./refusals.ts";

const NotificationState = namedShape("Notification", {
  name: text,
  host: described(text, "Of its url, whose path may be a secret."),
  format: oneOfTexts("json", "slack"),
  events: list(oneOfTexts(...NOTIFICATION_EVENTS)),
  signed: described(flag, "Whether it has a secret."),
  allow_private: flag,
  waiting: described(count, "Events in its queue."),
  delivered: count,
  failed: described(count, "Events that were given up after the last attempt."),
  dropped: described(count, "Events that made room for later ones."),
  last_delivery: orNull(time),
  last_error: orNull(shape({ time, message: text })),
});
export type NotificationState = ValueOf<typeof NotificationState>;

const NotificationList = namedShape("NotificationList", { notifications: list(NotificationState) });

const NotificationChange = component("NotificationChange", () =>
  described(entryPatch(entrySchema("notifications")), "Fields of an entry of notifications; null removes one."),
);
const NotificationChanged = namedShape(
  "NotificationChanged",
  { ...changed, notification: NotificationState },
  entryDryRun,
);
const NotificationRemoved = namedShape(
  "NotificationRemoved",
  { ...changed, removed_notification: NotificationState },
  entryDryRun,
);

const NotificationTest = namedShape("NotificationTest", {
  delivered: flag,
  status: described(orNull(count), "Of the receiver's answer; null: there was none."),
  answer: described(orNull(text), "How the answer begins."),
  error: orNull(text),
  duration_ms: number,
});
export type NotificationTest = ValueOf<typeof NotificationTest>;

const endpoint = adminGroup(
  "Notifications",
  schemasOf(
    NotificationState,
    NotificationList,
    NotificationChange,
    NotificationChanged,
    NotificationRemoved,
    NotificationTest,
  ),
);
const targetName = pathParameter("name", "Name of a receiver.");

export function notificationRoutes(parts: Pick<AdminParts, "notifications" | "store" | "clock">): DescribedEndpoint[] {
  const { notifications, store, clock } = parts;
  const stateOf = (name: string) =>
    notifications()
      .states()
      .find((state) => state.name === name);
  const targets = createCollection(store, {
    noun: "notification",
    place: "/admin/notifications",
    idField: "name",
    fixedId: "cannot be changed: add a receiver with the new name, and remove this one",
    path: ["notifications"],
    read: (written) => written,
    positionOf: (name, list) => list.findIndex((target) => target.name === name),
    shown({ after, position }) {
      const settings = after.notifications[position] as NotificationTarget;
      return shown({ ...(stateOf(settings.name) ?? UNUSED), name: settings.name, settings });
    },
    shownGone: (name) => shown(stateOf(name) as ReceiverState),
  });
  return [
    endpoint("GET /admin/notifications", {
      id: "listNotifications",
      role: "viewer",
      summary: "Receivers of events, and how their deliveries go",
      answers: [versioned(NotificationList, "The receivers.")],
      handle(call) {
        const rows = notifications().states().map(shown);
        return answer(call, { notifications: rows }, { version: store.current.version });
      },
    }),
    endpoint("POST /admin/notifications", {
      id: "createNotification",
      role: "admin",
      summary: "Add a receiver",
      parameters: [dryRun],
      body: {
        schema: NotificationChange,
        isChecked: false,
        example: { name: "ops", url: "https://hooks.example.com/signalbox", events: ["budget", "backend_down"] },
      },
      changes: true,
      answers: [versioned(NotificationChanged, "Added.", 201), versioned(NotificationChanged, "What would be added.")],
      handle: async (call, read) => await targets.create(call, targets.read(await read())),
    }),
    endpoint("PUT /admin/notifications/{name}", {
      id: "updateNotification",
      role: "admin",
      summary: "Change a receiver; a changed url needs its secrets again",
      parameters: [targetName, dryRun],
      body: { schema: NotificationChange, isChecked: false, example: { events: ["budget"] } },
      changes: true,
      answers: [versioned(NotificationChanged, "Changed.")],
      handle: async (call, read) => await targets.update(call, call.parameters.name, targets.read(await read())),
    }),
    endpoint("DELETE /admin/notifications/{name}", {
      id: "deleteNotification",
      role: "admin",
      summary: "Remove a receiver; events that wait for it are dropped",
      parameters: [targetName, dryRun],
      changes: true,
      answers: [versioned(NotificationRemoved, "Removed.")],
      handle: (call) => targets.remove(call, call.parameters.name),
    }),
    endpoint("POST /admin/notifications/{name}/test", {
      id: "testNotification",
      role: "operator",
      summary: "Send one test event",
      description: "One attempt, without the queue and whatever events the receiver gets.",
      parameters: [targetName],
      answers: [jsonAnswer(NotificationTest, "What the receiver answered.")],
      async handle(call) {
        const { name } = call.parameters;
        const begunMs = clock.now();
        const outcome = await notifications().test(name);
        if (outcome === undefined) {
          const message = `There is no notification '${shortened(name)}'; GET /admin/notifications lists them.`;
          throw new GatewayError(ERRORS.routeNotFound, message, { param: "name" });
        }
        const { isDelivered: delivered, status = null, answer: said = null, error = null } = outcome;
        const duration_ms = Math.round(clock.now() - begunMs);
        return answer(call, { delivered, status, answer: said, error, duration_ms });
      },
    }),
  ];
}

type ReceiverState = ReturnType<ReturnType<AdminParts["notifications"]>["states"]>[number];

/** A receiver of a dry run. */
const UNUSED = { waiting: 0, delivered: 0, failed: 0, dropped: 0, lastDeliveryMs: undefined, lastError: undefined };

function shown(state: ReceiverState): NotificationState {
  const { name, settings, waiting, delivered, failed, dropped, lastDeliveryMs, lastError } = state;
  const { url, format, events, secret, allow_private } = settings;
  return {
    ...{ name, host: new URL(url).host, format, events, signed: secret !== undefined, allow_private },
    ...{ waiting, delivered, failed, dropped },
    last_delivery: lastDeliveryMs === undefined ? null : toTimestamp(lastDeliveryMs),
    last_error: lastError === undefined ? null : { time: toTimestamp(lastError.atMs), message: lastError.message },
  };
}
