// /admin/budgets: the rules of the section budgets one at a time, with what is spent of them; those that keys carry are shown
// beside them, and changed where the keys are.

import { isNothing } from "../budgets/amounts.ts";
import { createRules, type Rule } from "../budgets/rules.ts";
import { currencyOf } from "../config/sections/currency.ts";
import type { Settings } from "../config/sections/registry.ts";
import type { Mapping } from "../config/values/values.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { StorageError } from "../lib/resilient-database.ts";
import { type DescribedEndpoint, pathParameter } from "../openapi/operation.ts";
import {
  BUDGET_SCHEMAS,
  BudgetChange,
  BudgetChanged,
  BudgetList,
  BudgetRecord,
  BudgetRemoved,
  BudgetReset,
  BudgetUsage,
} from "./budget-schemas.ts";
import { budgetRecord, budgetUsage } from "./budget-view.ts";
import { createCollection } from "./collection.ts";
import { adminGroup, answer, dryRun, versioned } from "./endpoint.ts";
import type { AdminParts } from "./parts.ts";
import { invalidFields, shortened } from "./refusals.ts";
import { createStoredKeyChanges } from "./stored-keys.ts";

type BudgetParts = Pick<AdminParts, "store" | "keyStore" | "identify" | "clock" | "ledger" | "log" | "happenings">;

/** Budgets that are listed: those of the section first. */
const MOST_LISTED = 10_000;
const HISTORY_MS = 400 * 86_400_000;

const endpoint = adminGroup("Budgets", BUDGET_SCHEMAS);
const budgetId = pathParameter(
  "id",
  "Id of a budget: of a rule, or key:ID and key:ID:tokens for those that a key carries.",
);

export function budgetRoutes(parts: BudgetParts): DescribedEndpoint[] {
  const { store, keyStore, identify, clock, ledger } = parts;
  const settings = () => store.current.settings;
  const storedKeys = createStoredKeyChanges(parts);

  /** As it would be under other settings, for a dry run. */
  function ruleOf(id: string, { budgets: rules, api_keys, organizations }: Settings) {
    const rule = createRules({ budgets: rules, keys: api_keys.keys, organizations }, identify, keyStore).byId(id);
    if (rule === undefined) throw budgets.unknown(id);
    return rule;
  }

  function running(id: string) {
    const rule = ledger().rule(id);
    if (rule === undefined) throw budgets.unknown(id);
    return rule;
  }

  function requireSubject(rule: Rule, subject: string): void {
    const trouble =
      rule.per === undefined
        ? "has no 'per': all share it; leave the subject out"
        : isNothing(ledger().account(rule, subject).spent)
          ? `has nothing spent by the ${rule.per} '${shortened(subject)}'; GET /admin/budgets/{id}/usage lists who has spent`
          : undefined;
    if (trouble === undefined) return;
    throw invalidFields([{ field: "subject", message: `the budget '${shortened(rule.id)}' ${trouble}` }]);
  }

  const record = (rule: Rule) => budgetRecord(rule, ledger(), clock.wallTime());

  const budgets = createCollection(store, {
    noun: "budget",
    place: "/admin/budgets",
    idField: "id",
    fixedId: "cannot be changed: what was spent belongs to it",
    path: ["budgets", "rules"],
    read: (written) => written,
    positionOf(id, list) {
      const position = list.findIndex((rule) => rule.id === id);
      if (position !== -1) return position;
      return ledger().rule(id) === undefined ? -1 : list.length;
    },
    elsewhere:
      "is carried by a key or an organization: change it with PUT /admin/keys/{id}, or PUT /admin/organizations/{id}.",
    shown: ({ after, list, position }) => record(ruleOf(String(list[position]?.id), after)),
    shownGone: (id) => record(running(id)),
  });
  const keys = createCollection(store, {
    noun: "budget",
    place: "/admin/budgets",
    idField: "id",
    fixedId: "",
    path: ["api_keys", "keys"],
    read: (written) => written,
    positionOf: (id) => settings().api_keys.keys.findIndex((key) => `key:${identify(key)}` === id),
    elsewhere: "stands in api_keys.api_keys_file; change it there.",
    shown({ after, position }) {
      const key = after.api_keys.keys[position];
      return record(ruleOf(`key:${key && identify(key)}`, after));
    },
    shownGone: (id) => record(running(id)),
  });

  return [
    endpoint("GET /admin/budgets", {
      id: "listBudgets",
      role: "viewer",
      summary: "Every budget, and what is spent of it",
      answers: [versioned(BudgetList, "The budgets: those of the section, then those that keys carry.")],
      async handle(call) {
        const written = ledger().rules();
        const stored = keyStore.listWithLimits(Math.max(0, MOST_LISTED - written.length));
        const ofStored = stored.keys.flatMap(({ id }) => {
          return [ledger().rule(`key:${id}`), ledger().rule(`key:${id}:tokens`)].filter((rule) => rule !== undefined);
        });
        const rules = [...written, ...ofStored].slice(0, MOST_LISTED);
        await ledger().refresh(rules);
        const rows = rules.map(record);
        const body = {
          currency: currencyOf(settings()),
          time_zone: settings().budgets.time_zone,
          budgets: rows,
          total: written.length + stored.total,
        };
        return answer(call, body, { version: store.current.version });
      },
    }),
    endpoint("POST /admin/budgets", {
      id: "createBudget",
      role: "operator",
      summary: "Add a rule",
      parameters: [dryRun],
      body: {
        schema: BudgetChange,
        isChecked: false,
        example: { id: "sales-month", match: { organization: "sales" }, limit: { cost: 500 }, window: "month" },
      },
      changes: true,
      answers: [versioned(BudgetChanged, "Added.", 201), versioned(BudgetChanged, "What would be added.")],
      handle: async (call, read) => await budgets.create(call, budgets.read(await read())),
    }),
    endpoint("GET /admin/budgets/{id...}", {
      id: "getBudget",
      role: "viewer",
      summary: "One budget",
      parameters: [budgetId],
      answers: [versioned(BudgetRecord, "The budget.")],
      async handle(call) {
        const rule = running(call.parameters.id);
        await ledger().refresh([rule]);
        return answer(call, record(rule), { version: store.current.version });
      },
    }),
    endpoint("PUT /admin/budgets/{id...}", {
      id: "updateBudget",
      role: "operator",
      summary: "Change a rule; what was spent stays",
      parameters: [budgetId, dryRun],
      body: { schema: BudgetChange, isChecked: false, example: { limit: { cost: 700 } } },
      changes: true,
      answers: [versioned(BudgetChanged, "Changed.")],
      handle: async (call, read) => await budgets.update(call, call.parameters.id, budgets.read(await read())),
    }),
    endpoint("DELETE /admin/budgets/{id...}", {
      id: "deleteBudget",
      role: "operator",
      summary: "Remove a rule",
      parameters: [budgetId, dryRun],
      changes: true,
      answers: [versioned(BudgetRemoved, "Removed.")],
      handle: (call) => budgets.remove(call, call.parameters.id),
    }),
    endpoint("GET /admin/budgets/{id...}/usage", {
      id: "getBudgetUsage",
      role: "viewer",
      summary: "What was spent of a budget, by whom, and window by window",
      parameters: [budgetId],
      answers: [versioned(BudgetUsage, "What was spent.")],
      errors: [503],
      async handle(call) {
        const rule = running(call.parameters.id);
        await ledger().refresh([rule]);
        const nowMs = clock.wallTime();
        try {
          const usage = budgetUsage(rule, ledger(), currencyOf(settings()), nowMs, nowMs - HISTORY_MS);
          return answer(call, usage, { version: store.current.version });
        } catch (error) {
          if (error instanceof StorageError) throw new GatewayError(ERRORS.storageUnavailable, error.message);
          throw error;
        }
      },
    }),
    endpoint("POST /admin/budgets/{id...}/reset", {
      id: "resetBudget",
      role: "operator",
      summary: "Begin a budget from nothing",
      description:
        "Writes reset_at into the rule, or into the budget of the key, which makes a version of the configuration with the reason; its rollback counts what was spent before again. With a subject, reset_subjects of a rule with per.",
      parameters: [budgetId, dryRun],
      body: { schema: BudgetReset, optional: true, example: { reason: "the bill was paid" } },
      changes: true,
      answers: [versioned(BudgetChanged, "Begun from nothing.")],
      async handle(call, read) {
        const { id } = call.parameters;
        const { reason, subject, version } = await read();
        const rule = running(id);
        const { ofKey } = rule;
        if (subject !== undefined) requireSubject(rule, subject);
        const now = new Date(clock.wallTime()).toISOString();
        const resetAt = { reset_at: now };
        const why = reason === undefined ? "" : `: ${reason}`;
        const whose = subject === undefined ? "" : ` for ${shortened(subject)}`;
        const change = { version, description: `budget ${shortened(id)} reset${whose}${why}` };
        if (ofKey === undefined) {
          const made = await budgets.change(call, id, change, ({ reset_subjects: _, ...written }) =>
            subject === undefined
              ? { ...written, ...resetAt }
              : { ...written, reset_subjects: { ...resetsThatCount(rule, clock.wallTime()), [subject]: now } },
          );
          return budgets.answerItem(call, made, "begins from nothing", {});
        }
        if (id !== `key:${ofKey}`) {
          const message = `The budget '${shortened(id)}' is of one minute, which is over before a reset would help.`;
          throw new GatewayError(ERRORS.invalidRequest, message, { param: "id" });
        }
        const stored = keyStore.find(ofKey);
        if (stored !== undefined) {
          const fields = { budget: { ...(stored.entry.budget as Mapping), ...resetAt } };
          const { body } = storedKeys.change(call, stored, { fields, version, what: `has its budget reset${why}` });
          return answer(call, { ...body, budget: record(running(id)) }, { version: body.version });
        }
        const made = await keys.change(call, id, change, (key) => ({
          ...key,
          budget: { ...(key.budget as Mapping), ...resetAt },
        }));
        return keys.answerItem(call, made, "begins from nothing", {});
      },
    }),
  ];
}

/** Earlier ones say nothing more: what was spent before them is forgotten, or belongs to a window that is over. */
function resetsThatCount({ subjectResets, window, spans }: Rule, nowMs: number): Record<string, string> {
  const fromMs = "unit" in window ? spans(nowMs).fromMs : nowMs - 2 * window.rollingMs;
  const counting = [...subjectResets].filter(([, atMs]) => atMs > fromMs);
  return Object.fromEntries(counting.map(([subject, atMs]) => [subject, new Date(atMs).toISOString()]));
}
