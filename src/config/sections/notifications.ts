// Section notifications: which addresses receive which events (docs/notifications.md).

import { z } from "zod";
import { headerName, headerValue, text } from "./fields.ts";
import { defineSection } from "./section.ts";

export const NOTIFICATION_EVENTS = [
  "budget",
  "backend_down",
  "backend_up",
  "circuit_open",
  "circuit_closed",
  "route_rollback",
  "config_changed",
  "config_refused",
  "key_expiring",
  "storage_problem",
] as const;

const MOST_TARGETS = 50;
/** The gateway sets these itself. */
const OWN_HEADER = /^(host|content-.*|transfer-encoding|connection|user-agent|webhook-.*)$/i;

/** Others are those of mail, databases and the like (src/media/links.ts). */
function hasUsualPort(text: string): boolean {
  const port = Number(URL.parse(text)?.port || 443);
  return port === 80 || port === 443 || port >= 1024;
}

const targetSchema = z.strictObject({
  name: text()
    .max(64)
    .regex(/^[A-Za-z0-9._-]+$/, "expected letters, digits, dots, hyphens and underscores")
    .describe("Its name in logs, metrics and the admin API."),
  url: z
    .string()
    .max(2048)
    .regex(/^https?:\/\/[^\s/?#\\@]+([/?#]\S*)?$/i, "expected an http or https URL without credentials")
    .refine((url) => URL.canParse(url), "expected an http or https URL")
    .refine(hasUsualPort, "must have the port 80, 443, or one from 1024 on")
    .describe("Receives the events by POST. A secret: it is masked in views, and logs show none of it."),
  events: z
    .array(z.enum(NOTIFICATION_EVENTS))
    .min(1, "name at least one event")
    .default([...NOTIFICATION_EVENTS])
    .describe(`Events that are sent: ${NOTIFICATION_EVENTS.join(", ")}. Default: all of them.`),
  format: z
    .enum(["json", "slack"])
    .default("json")
    .describe("json: the event with its data. slack: a text, as incoming webhooks of Slack take it."),
  secret: text()
    .optional()
    .describe(
      "Signs each request (webhook-signature, HMAC-SHA256): a text, or whsec_ and base64. Default: no signature.",
    ),
  allow_private: z
    .boolean()
    .default(false)
    .describe("true: the address may be local or private. Only the configuration file may set it."),
  headers: z
    .record(
      headerName().refine((name) => !OWN_HEADER.test(name), "is set by the gateway itself"),
      headerValue(),
    )
    .optional()
    .describe("Further headers of each request. Their values are secrets."),
});

export const notificationsSection = defineSection({
  isExtension: true,
  reload: "immediate",
  description: "Webhooks that receive events of the gateway, such as a spent budget or a backend that is down.",
  schema: z.array(targetSchema).max(MOST_TARGETS, `must be at most ${MOST_TARGETS} targets`).prefault([]),
  secretPaths: ["*.url", "*.secret", "*.headers.*"],
  sentTo: ["url"],
  entryNames: { "": ["name"] },
});

export type NotificationTarget = z.output<typeof targetSchema>;
export type NotificationEvent = (typeof NOTIFICATION_EVENTS)[number];
