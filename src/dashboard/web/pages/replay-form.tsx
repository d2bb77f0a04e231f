// Starts a replay: which recorded requests, what is asked in place of their models, as which key, and who judges.

import type { PromptFileList } from "../../../admin/config-schemas.ts";
import type { ReplayRow } from "../../../admin/replay-schemas.ts";
import type { RouteRecord } from "../../../admin/route-schemas.ts";
import type { Action } from "../app/actions.ts";
import { useApp } from "../app/context.ts";
import { useKept } from "../app/hooks.ts";
import { useResource } from "../app/resource.ts";
import { Button } from "../parts/button.tsx";
import { Card } from "../parts/card.tsx";
import { Area, Field } from "../parts/field.tsx";
import { Link } from "../parts/link.tsx";
import { linkTo } from "../route.ts";
import { RecordingFilters, useNames, useRecordingFilters } from "./recording-filters.tsx";

const FIELDS = [
  ["model", "Asked model"],
  ["route", "Or route"],
  ["arm", "Its target"],
  ["prompt", "Prompt file"],
  ["key", "As key"],
  ["judge", "Judging model"],
  ["limit", "Most requests (100)"],
] as const;

const AREAS = [
  ["instructions", "Or instructions, in place of those of the requests"],
  ["rubric", "Rubric of the judge"],
] as const;

type Wanted = Readonly<Record<string, string>>;

export function ReplayForm() {
  const { actions } = useApp();
  const filters = useRecordingFilters();
  const wanted = useKept<Wanted>("wanted", () => ({}));
  const routes = useResource<{ routes: RouteRecord[] }>("admin/routes").data.value?.routes ?? [];
  const prompts = useResource<PromptFileList>("admin/config/prompts").data.value?.prompts ?? [];
  const names = useNames();
  const lists: Partial<Record<string, readonly string[]>> = {
    ...names,
    judge: names.model,
    route: routes.map(({ name }) => name),
    arm: routes.find(({ name }) => name === wanted.value.route)?.arms.map(({ name }) => name) ?? [],
    prompt: prompts.map(({ path }) => path),
  };
  const about = (name: string, label: string) => ({
    ...{ id: `replay-${name}`, label, value: wanted.value[name] ?? "" },
    set(value: string) {
      wanted.value = { ...wanted.peek(), [name]: value };
    },
  });
  const starting: Action = {
    title: "Start a replay",
    text: "The requests are asked again; what they cost is paid by the key.",
    verb: "Start",
    asked: () => ({ method: "POST", path: "admin/replays", body: replayBody(filters.query(), wanted.value) }),
    done(answer) {
      location.assign(linkTo("replays", (answer as ReplayRow).id));
      return "The replay has begun.";
    },
  };
  return (
    <>
      <Card
        title="Recorded requests"
        aside={
          <Link to="recordings" query={filters.values.value}>
            Show them
          </Link>
        }
      >
        <RecordingFilters filters={filters} names={names} />
      </Card>
      <Card title="Ask them again">
        <div class="filters">
          {FIELDS.map(([name, label]) => {
            const list = lists[name];
            return <Field key={name} {...about(name, label)} {...(list !== undefined && { list })} />;
          })}
        </div>
        <div class="columns">
          {AREAS.map(([name, label]) => (
            <Area key={name} {...about(name, label)} rows={3} />
          ))}
        </div>
        <div class="row end">
          <Button kind="main" onClick={() => actions.act(starting)}>
            Start…
          </Button>
        </div>
      </Card>
    </>
  );
}

/** What POST /admin/replays takes; what is empty is left out. */
function replayBody(filter: URLSearchParams, wanted: Wanted) {
  const { limit, judge, rubric, ...asked } = Object.fromEntries(Object.entries(wanted).filter(([, text]) => text));
  return {
    recordings: filter.get("id") ?? { ...Object.fromEntries(filter), ...(limit && { limit }) },
    ...asked,
    ...((judge || rubric) && { judge: { model: judge, rubric } }),
  };
}
