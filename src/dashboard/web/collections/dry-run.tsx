// What a dry run says: the impact, the fields that change, warnings, and problems of no field of the form.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { messageOf, problemsOf } from "../app/api.ts";
import { useApp } from "../app/context.ts";
import type { CurlRequest } from "../curl.ts";
import { FieldChanges } from "../parts/change-list.tsx";
import { Marked } from "../parts/marks.tsx";
import { Notice, ProblemList } from "../parts/notice.tsx";
import { type DryRunAnswer, dryRunOf } from "./collection.ts";
import type { FormCheck } from "./entry-form.ts";

interface DryRunProps {
  answer: DryRunAnswer | undefined;
  problems: readonly { field: string; message: string }[];
}

export function DryRun({ answer, problems }: DryRunProps) {
  return (
    <>
      <ProblemList problems={problems} />
      {answer?.estimated_impact !== undefined && <p>{answer.estimated_impact}</p>}
      {answer?.warnings?.map((warning) => (
        <Notice key={warning} tone="warn">
          {warning}
        </Notice>
      ))}
      {answer?.changes !== undefined && <FieldChanges changes={answer.changes} />}
    </>
  );
}

/** The dry run of a request, inside the dialog before it. */
export function DryRunOf({ request }: { request: CurlRequest }) {
  const { api } = useApp();
  const check = useSignal<FormCheck>({ isBusy: true });
  const { method, path } = request;
  useEffect(() => {
    let isWanted = true;
    const say = (found: FormCheck) => {
      if (isWanted) check.value = found;
    };
    void api.ask<DryRunAnswer>(dryRunOf({ method, path })).then(
      (answer) => say({ isBusy: false, answer }),
      (thrown: unknown) => say({ isBusy: false, thrown }),
    );
    return () => {
      isWanted = false;
    };
  }, [api, check, method, path]);
  const { isBusy, answer, thrown } = check.value;
  return (
    <div role="status" class="stack">
      {isBusy && <Marked tone="busy" text="Being checked…" />}
      {thrown !== undefined && <Notice tone="warn">{messageOf(thrown)}</Notice>}
      <DryRun answer={answer} problems={problemsOf(thrown)} />
    </div>
  );
}
