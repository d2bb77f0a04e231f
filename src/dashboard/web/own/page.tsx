// The page for holders of keys: what a key may do, what is left of its budgets, what it has used, and its latest requests.

import { useSignal } from "@preact/signals";
import type { OwnRequests, OwnUsage } from "../../../api/me-usage.ts";
import { count, dateTime, duration, grouped, money, percent, words } from "../format.ts";
import { Button, Choice } from "../parts/button.tsx";
import { Bar, Card, Facts, Head, Tile } from "../parts/card.tsx";
import { DayChart } from "../parts/day-chart.tsx";
import { Field } from "../parts/field.tsx";
import { Marked, type MarkTone } from "../parts/marks.tsx";
import { Notice } from "../parts/notice.tsx";
import { Table } from "../parts/table.tsx";
import { type BudgetLeft, type OwnData, type OwnKey, type OwnView, WINDOWS } from "./own-view.ts";

type OwnRequest = OwnRequests["requests"][number];

const MOST_MODELS = 200;

const TONES: Readonly<Record<OwnRequest["outcome"], MarkTone>> = {
  succeeded: "good",
  failed: "bad",
  stream_broken: "bad",
  refused: "warn",
  client_left: "quiet",
  running: "busy",
};

export function OwnPage({ view }: { view: OwnView }) {
  const { value: data } = view.data;
  return (
    <div class="app">
      <header class="topbar">
        <span class="brand">Signalbox</span>
        <span class="host">{location.host}</span>
      </header>
      <main>{data === undefined ? <KeyForm view={view} /> : <Shown view={view} data={data} />}</main>
    </div>
  );
}

function KeyForm({ view }: { view: OwnView }) {
  const text = useSignal("");
  const { value: trouble } = view.trouble;
  return (
    <form
      class="sign-in card"
      onSubmit={(event) => {
        event.preventDefault();
        const key = text.peek().trim();
        if (key !== "") void view.show(key);
      }}
    >
      <Head title="Your key" />
      <p>Enter an API key or token to see its limits, budgets and usage. It stays in the memory of this page only.</p>
      {trouble !== undefined && (
        <Notice tone="bad" isAlert>
          {trouble}
        </Notice>
      )}
      <Field
        id="key"
        label="API key or token"
        type="password"
        value={text.value}
        set={(value) => {
          text.value = value;
        }}
        isRequired
        isFirst
      />
      <div class="row end">
        <button type="submit" class="main" disabled={view.isBusy.value}>
          Show
        </button>
      </div>
    </form>
  );
}

function Shown({ view, data }: { view: OwnView; data: OwnData }) {
  const { key, models, days, requests } = data;
  const { value: trouble } = view.trouble;
  return (
    <div class="page">
      <Head title={key.id} tab="Your key">
        <Choice
          label="Time of the usage"
          options={WINDOWS}
          chosen={view.window.value}
          choose={(window) => void view.choose(window)}
        />
        <Button onClick={() => void view.again()}>Refresh</Button>
        <Button onClick={view.forget}>Forget the key</Button>
      </Head>
      {trouble !== undefined && (
        <Notice tone="bad" isAlert>
          {trouble}
        </Notice>
      )}
      <Card title="Key">
        <Facts of={factsOf(key)} />
      </Card>
      <Budgets of={key.budgets} />
      {models === undefined ? <Notice tone="warn">This gateway counts no usage.</Notice> : <Totals usage={models} />}
      {days !== undefined && <DayChart rows={days.rows} />}
      {models !== undefined && <ByModel usage={models} />}
      <Requests view={view} of={requests} />
      <Card title="Models">
        <p>{key.models.slice(0, MOST_MODELS).join(", ") || "None is served now."}</p>
      </Card>
    </div>
  );
}

function factsOf({ user, organization, scopes, expires_at, limits }: OwnKey) {
  return [
    ["User", user ?? "–"],
    ["Organization", organization ?? "–"],
    ["Scopes", scopes.join(", ") || "none"],
    ["Expires", expires_at === null ? "never" : dateTime(expires_at)],
    ["Requests", limitText(limits)],
  ] as const;
}

function limitText({ requests_per_minute, requests_per_second, burst = 0 }: OwnKey["limits"]): string {
  if (requests_per_minute !== undefined) return `${grouped(requests_per_minute)} a minute`;
  if (requests_per_second !== undefined) return `${grouped(requests_per_second)} a second, ${grouped(burst)} at once`;
  return "no limit";
}

function Budgets({ of }: { of: readonly BudgetLeft[] }) {
  return (
    <Card title="Budgets">
      <Table<BudgetLeft>
        caption="Budgets"
        rows={of}
        keyOf={({ id }) => id}
        empty="No budget limits this key."
        columns={[
          { title: "Budget", cell: ({ id }) => <span class="strong">{id}</span> },
          { title: "Window", cell: ({ window }) => window },
          { title: "Models", cell: ({ models }) => models?.join(", ") ?? "all" },
          { title: "Left", cell: ({ limits }) => limits.map(Left) },
          { title: "Begins again", cell: ({ until }) => dateTime(until) },
        ]}
      />
    </Card>
  );
}

function Left({ amount, spent, limit, remaining, currency }: BudgetLeft["limits"][number]) {
  const [left, whole] = [remaining, limit].map((value) => (currency === undefined ? grouped(value) : money(value)));
  const share = limit === 0 ? 1 : spent / limit;
  return (
    <div key={amount}>
      <Bar share={share} text={`${left} of ${whole} ${currency ?? words(amount)} left, ${percent(share)} spent`} />
    </div>
  );
}

function Totals({ usage: { total, currency } }: { usage: OwnUsage }) {
  return (
    <div class="tiles">
      <Tile name="Cost" value={`${money(total.cost)} ${currency}`} />
      <Tile name="Requests" value={count(total.requests)} />
      <Tile name="Tokens in" value={count(total.prompt_tokens)} />
      <Tile name="Cached tokens" value={count(total.cached_tokens)} />
      <Tile name="Tokens out" value={count(total.completion_tokens)} />
    </div>
  );
}

function ByModel({ usage: { rows, currency } }: { usage: OwnUsage }) {
  return (
    <Card title="Usage by model">
      <Table<OwnUsage["rows"][number]>
        caption="Usage by model"
        rows={rows}
        keyOf={({ model_id = "" }) => model_id}
        empty="No usage in this time."
        columns={[
          { title: "Model", cell: ({ model_id }) => model_id },
          { title: "Requests", isNumber: true, cell: ({ requests }) => grouped(requests) },
          { title: "Tokens in", isNumber: true, cell: ({ prompt_tokens }) => grouped(prompt_tokens) },
          { title: "Tokens out", isNumber: true, cell: ({ completion_tokens }) => grouped(completion_tokens) },
          { title: "Cost", isNumber: true, cell: ({ cost }) => `${money(cost)} ${currency}` },
        ]}
      />
    </Card>
  );
}

function Requests({ view, of }: { view: OwnView; of: OwnRequests }) {
  const tokens = (value: number | null) => (value === null ? "–" : grouped(value));
  return (
    <Card title="Latest requests">
      <Table<OwnRequest>
        caption="Latest requests"
        rows={of.requests}
        keyOf={({ id }) => id}
        empty="This key has sent no request that is still kept."
        columns={[
          { title: "Time", cell: ({ started_at }) => dateTime(started_at) },
          {
            title: "Model",
            cell: ({ model, answered_by }) => (answered_by === null ? model : `${model}, by ${answered_by}`),
          },
          { title: "Outcome", cell: Outcome },
          { title: "Attempts", isNumber: true, cell: ({ attempts }) => grouped(attempts.length) },
          { title: "Tokens in", isNumber: true, cell: ({ prompt_tokens }) => tokens(prompt_tokens) },
          { title: "Tokens out", isNumber: true, cell: ({ completion_tokens }) => tokens(completion_tokens) },
          {
            title: "Cost",
            isNumber: true,
            cell: ({ cost }) => (cost === null ? "–" : `${money(cost)} ${of.currency}`),
          },
          { title: "Duration", isNumber: true, cell: ({ duration_ms }) => duration(duration_ms) },
        ]}
      />
      {of.next_cursor !== null && (
        <div class="row">
          <Button onClick={() => void view.older()}>Older requests</Button>
        </div>
      )}
    </Card>
  );
}

function Outcome({ outcome, status, code, cached }: OwnRequest) {
  const text = [status, words(outcome), code, cached ? "cached answer" : null].filter((part) => part !== null);
  return <Marked tone={TONES[outcome]} text={text.join(", ")} />;
}
