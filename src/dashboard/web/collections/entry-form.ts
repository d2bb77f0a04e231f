// The form of one entry: what is typed, what the gateway says of it before it is applied, and how it is applied. Nothing
// typed is lost while the gateway refuses, is away, or has another user's change.

import { batch, computed, effect, type ReadonlySignal, signal } from "@preact/signals";
import { type Api, ApiError, mayPass, problemsOf } from "../app/api.ts";
import { atMost } from "../app/timing.ts";
import type { CurlRequest } from "../curl.ts";
import {
  changedBody,
  type EntryValues,
  type FormField,
  fieldOfProblem,
  formFields,
  formTexts,
  type Texts,
  withoutSecrets,
} from "../schema-form.ts";
import { type DryRunAnswer, dryRunOf, type EntryForms, type FormStart, withoutMasked } from "./collection.ts";

export type FormKind = "add" | "edit" | "copy";

interface FormParts {
  api: Pick<Api, "ask" | "get">;
  collection: EntryForms;
  kind: FormKind;
  /** Of the entry that is edited or copied. */
  id: string | undefined;
}

interface ShownForm {
  fields: readonly FormField[];
  /** What the fields hold of the entry in force. */
  before: Texts;
  /** What they began with: the same, but for a copy. */
  start: Texts;
  version: number | undefined;
  ids: readonly string[];
}

/** What the gateway says of the form as it stands. */
export interface FormCheck {
  isBusy: boolean;
  answer?: DryRunAnswer;
  thrown?: unknown;
}

const QUIET_MS = 500;
const RETRY_MS = 3_000;
const IDLE: FormCheck = { isBusy: false };

export type EntryForm = ReturnType<typeof createEntryForm>;

/** Long because these functions share one form. */
export function createEntryForm({ api, collection, kind, id }: FormParts) {
  const form = signal<ShownForm>();
  const texts = signal<Texts>({});
  const check = signal<FormCheck>(IDLE);
  /** Why the form could not be read. */
  const missing = signal<unknown>(undefined);
  const isApplying = signal(false);
  /** Fields whose faults are shown: those that were typed into, and all after the button was pressed. */
  const touched = signal<ReadonlySet<string>>(new Set());
  /** Answers to earlier questions are not wanted any more. */
  let latest = 0;
  let retry: ReturnType<typeof setTimeout> | undefined;

  const change = computed(() => {
    const { fields = [], before = {}, ids = [] } = form.value ?? {};
    const { body, faults } = changedBody(fields, before, texts.value);
    const own = texts.value[collection.idField]?.trim() ?? "";
    const isTaken = kind !== "edit" && ids.includes(own);
    const taken = [collection.idField, `There is ${collection.article} ${collection.noun} "${own}" already.`] as const;
    return { body, faults: isTaken ? new Map([...faults, taken]) : faults, differs: Object.keys(body).length > 0 };
  });

  function requestOf(body: EntryValues): CurlRequest {
    const { version } = form.value ?? {};
    return kind === "edit" ? collection.change(id as string, body, version) : collection.add(body, version);
  }

  /** Undefined while there is nothing to apply, or something is wrong with it. */
  const asked = computed(() => {
    const { body, faults, differs } = change.value;
    return form.value !== undefined && differs && faults.size === 0 ? requestOf(body) : undefined;
  });

  /** The problems that the gateway names, by the paths of their fields; "" for those of no field. */
  const problems = computed(() => {
    const { fields = [] } = form.value ?? {};
    return Map.groupBy(
      problemsOf(check.value.thrown).map(({ field, message }) => ({
        field: collection.fieldOf?.(field) ?? field,
        message,
      })),
      ({ field }) => fieldOfProblem(fields, field)?.path ?? "",
    );
  });

  async function load(): Promise<void> {
    clearTimeout(retry);
    try {
      show(await collection.read(api.get, id, kind !== "edit"));
    } catch (thrown) {
      missing.value = thrown;
      if (mayPass(thrown)) retry = setTimeout(() => void load(), RETRY_MS);
    }
  }

  /** What was typed stays; all else is that of the entry. */
  function show({ schema, version, ids, entry }: FormStart): void {
    if (entry === undefined && kind !== "add") {
      throw new ApiError(404, `There is no ${collection.noun} "${id}".`);
    }
    const fields = formFields(schema);
    const before = formTexts(fields, kind === "edit" && entry !== undefined ? entry : {});
    const start = kind === "copy" ? formTexts(fields, copied(entry as EntryValues)) : before;
    const known = form.peek();
    const typed = Object.entries(texts.peek()).filter(
      ([path, text]) => known !== undefined && text !== known.start[path],
    );
    batch(() => {
      missing.value = undefined;
      form.value = { fields, before, start, version, ids };
      texts.value = { ...start, ...Object.fromEntries(typed) };
    });
  }

  function copied(entry: EntryValues): EntryValues {
    const copyOf = collection.copyOf ?? ((name: string) => `${name}-copy`);
    return { ...(withoutMasked(entry) as EntryValues), [collection.idField]: copyOf(id as string) };
  }

  async function ask(): Promise<void> {
    clearTimeout(retry);
    const request = asked.peek();
    if (request === undefined || collection.hasNoDryRun === true || isApplying.peek()) return;
    const number = ++latest;
    check.value = { ...check.peek(), isBusy: true };
    const found = await api.ask<DryRunAnswer>(dryRunOf(request)).then(
      (answer): FormCheck => ({ isBusy: false, answer }),
      (thrown: unknown): FormCheck => ({ isBusy: false, thrown }),
    );
    if (number !== latest) return;
    check.value = found;
    if (mayPass(found.thrown)) retry = setTimeout(() => void ask(), RETRY_MS);
  }

  return {
    kind,
    collection,
    form: form as ReadonlySignal<ShownForm | undefined>,
    texts: texts as ReadonlySignal<Texts>,
    check: check as ReadonlySignal<FormCheck>,
    missing: missing as ReadonlySignal<unknown>,
    isApplying: isApplying as ReadonlySignal<boolean>,
    touched: touched as ReadonlySignal<ReadonlySet<string>>,
    ...{ change, asked, problems },

    /** For the screen: without what is typed into fields for secrets. */
    shownRequest: (): CurlRequest | undefined =>
      asked.value && requestOf(withoutSecrets(form.value?.fields ?? [], change.value.body)),

    /** Whether the gateway has said that it would take the form as it stands. */
    isChecked: (): boolean =>
      collection.hasNoDryRun === true || (!check.value.isBusy && check.value.answer !== undefined),

    type(path: string, text: string): void {
      batch(() => {
        texts.value = { ...texts.peek(), [path]: text };
        touched.value = new Set([...touched.peek(), path]);
      });
    },

    touchAll(): void {
      touched.value = new Set(form.peek()?.fields.map(({ path }) => path));
    },

    ask: () => void ask(),

    /** After another user's change. */
    reload(): void {
      void load();
    },

    /** Returns the answer; undefined where it was refused, which the check then says. */
    async apply(): Promise<unknown> {
      const request = asked.peek();
      if (request === undefined || isApplying.peek()) return undefined;
      latest++;
      clearTimeout(retry);
      isApplying.value = true;
      try {
        return (await api.ask<unknown>(request)) ?? {};
      } catch (thrown) {
        check.value = { isBusy: false, thrown };
        return undefined;
      } finally {
        isApplying.value = false;
      }
    },

    /** Reads what is not read yet, and has the gateway check what is typed; returns what ends that. */
    start(): () => void {
      const soon = atMost(QUIET_MS, () => void ask());
      const unfollow = effect(() => {
        const request = asked.value;
        latest++;
        check.value = IDLE;
        if (request !== undefined) soon.call();
      });
      if (form.peek() === undefined) void load();
      return () => {
        unfollow();
        soon.end();
        clearTimeout(retry);
      };
    },
  };
}
