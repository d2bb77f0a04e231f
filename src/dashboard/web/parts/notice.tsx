// Notices: what is well, what is not, and what kept a page from what it asked for.

import type { ComponentChildren } from "preact";
import { problemsOf } from "../app/api.ts";
import type { Resource } from "../app/resource.ts";
import { clockTime } from "../format.ts";
import { Mark } from "./marks.tsx";

interface NoticeProps {
  tone: "good" | "bad" | "warn";
  isAlert?: boolean;
  children: ComponentChildren;
}

export function Notice({ tone, isAlert = false, children }: NoticeProps) {
  return (
    <p class={`notice ${tone}`} role={isAlert ? "alert" : undefined}>
      <Mark tone={tone} />
      <span>{children}</span>
    </p>
  );
}

/** What kept a page from what it asked for, and since when it is stale; nothing where all is well. */
export function Trouble({ of }: { of: readonly Resource<unknown>[] }) {
  const failed = of.filter(({ error }) => error.value !== undefined);
  const messages = new Set(failed.map(({ error }) => error.value?.message ?? ""));
  const shown = failed.flatMap(({ data, loadedAtMs }) => (data.value === undefined ? [] : (loadedAtMs.value ?? [])));
  return (
    <>
      {[...messages].map((message) => (
        <Notice key={message} tone="bad" isAlert>
          {message}
          {shown.length > 0 && ` What is shown is stale since ${clockTime(Math.min(...shown))}.`}
        </Notice>
      ))}
    </>
  );
}

/** The problems of a refused change, field by field. */
export function Problems({ of }: { of: unknown }) {
  return <ProblemList problems={problemsOf(of)} />;
}

interface ShownProblem {
  field: string;
  message: string;
  line?: number | undefined;
}

export function ProblemList({ problems }: { problems: readonly ShownProblem[] }) {
  if (problems.length === 0) return null;
  return (
    <ul class="problems">
      {problems.map(({ field, message, line }) => (
        <li key={`${line} ${field} ${message}`}>
          {line !== undefined && `line ${line}: `}
          {field !== "" && <code>{field}</code>} {message}
        </li>
      ))}
    </ul>
  );
}
