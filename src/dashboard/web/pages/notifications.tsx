// Notifications: the receivers of events, how their deliveries go, and a test of each.

import type { NotificationState, NotificationTest } from "../../../admin/notifications.ts";
import { useApp } from "../app/context.ts";
import { type Collection, readSection, requestsAt } from "../collections/collection.ts";
import { CollectionPage } from "../collections/collection-page.tsx";
import { dateTime, grouped } from "../format.ts";
import { Button } from "../parts/button.tsx";
import type { EntryValues, FieldSchema } from "../schema-form.ts";

const PATH = "admin/notifications";

const TARGETS: Collection<NotificationState> = {
  page: "notifications",
  title: "Notifications",
  article: "a",
  noun: "notification",
  about: "Webhooks that receive events of the gateway.",
  empty: "There is no receiver: events are in the log and the metrics only.",
  list: {
    path: PATH,
    rowsOf: ({ notifications }: { notifications: readonly NotificationState[] }) => notifications,
    columns: [
      { title: "Name", value: ({ name }) => name, cell: ({ name }) => <span class="strong">{name}</span> },
      { title: "Host", value: ({ host }) => host, cell: ({ host }) => host },
      { title: "Format", value: ({ format }) => format, cell: ({ format }) => format },
      {
        title: "Events",
        class: "wide",
        value: ({ events }) => events.join(" "),
        cell: ({ events }) => events.join(", "),
      },
      {
        title: "Delivered",
        isNumber: true,
        value: ({ delivered }) => delivered,
        cell: (row) => grouped(row.delivered),
      },
      { title: "Failed", isNumber: true, value: ({ failed }) => failed, cell: ({ failed }) => grouped(failed) },
      { title: "Waiting", isNumber: true, value: ({ waiting }) => waiting, cell: ({ waiting }) => grouped(waiting) },
      { title: "Dropped", isNumber: true, value: ({ dropped }) => dropped, cell: ({ dropped }) => grouped(dropped) },
      { title: "Last delivery", cell: ({ last_delivery: at }) => (at === null ? "–" : dateTime(at)) },
      {
        title: "Last error",
        class: "wide",
        cell: ({ last_error: error }) => (error === null ? "–" : `${dateTime(error.time)}: ${error.message}`),
      },
      { title: "Test", cell: (row) => <SendTest {...row} /> },
    ],
  },
  idOf: ({ name }) => name,
  idField: "name",
  async read(get, id) {
    const { schema, config, version } = await readSection<EntryValues[]>(get, "notifications");
    return {
      schema: (schema.items ?? {}) as FieldSchema,
      version,
      ids: config.map(({ name }) => String(name)),
      entry: config.find(({ name }) => name === id),
    };
  },
  ...requestsAt(PATH),
  removal: "It receives nothing from now on; events that wait for it are dropped.",
};

export function NotificationsPage() {
  return <CollectionPage of={TARGETS} />;
}

function SendTest({ name, host }: NotificationState) {
  const { actions } = useApp();
  const test = () =>
    actions.act({
      title: `Send a test to ${name}`,
      text: `One test event goes to ${host}.`,
      verb: "Send test",
      asked: () => ({ method: "POST", path: `${PATH}/${encodeURIComponent(name)}/test` }),
      done: (answer) => outcomeText(answer as NotificationTest),
    });
  return (
    <Button kind="small" label={`Send a test to ${name}`} onClick={test}>
      Send test
    </Button>
  );
}

function outcomeText({ delivered, status, answer, error, duration_ms: durationMs }: NotificationTest): string {
  if (!delivered) return `Not delivered: ${error}`;
  const words = answer === null || answer === "" ? "" : `: ${answer}`;
  return `The receiver answered with HTTP ${status} after ${durationMs} ms${words}`;
}
