// The head of the overview: that all is well, or what is wrong, with the next steps.

import type { BackendStatusList } from "../../../admin/backend-schemas.ts";
import type { ConfigHistory } from "../../../admin/config-schemas.ts";
import type { AdminHealth } from "../../../admin/health.ts";
import { useResource } from "../app/resource.ts";
import { words } from "../format.ts";
import { ActionButton } from "../parts/action-button.tsx";
import { Link } from "../parts/link.tsx";
import { Notice } from "../parts/notice.tsx";
import { type GatewayProblem, listOf, problemsOf } from "../verdict.ts";
import { resettingCircuit } from "./circuit-reset.ts";

interface VerdictProps {
  health: AdminHealth | undefined;
  backends: BackendStatusList | undefined;
}

export function Verdict({ health, backends }: VerdictProps) {
  const versions = useResource<ConfigHistory>("admin/config/history?limit=20", { everyMs: 30_000 });
  // All at once: lines that grow move the whole page.
  const isKnown = versions.data.value !== undefined || versions.error.value !== undefined;
  if (health === undefined || backends === undefined || !isKnown) return <p class="notice">Checking the gateway…</p>;
  const problems = problemsOf(health, backends.backends, versions.data.value?.history ?? []);
  if (problems.length === 0) {
    const { backend_service: backend, model_service: model } = health.services;
    return (
      <Notice tone="good">
        All is well. {backend?.message} {model?.message}
      </Notice>
    );
  }
  return (
    <Notice tone={problems.some(({ tone }) => tone === "bad") ? "bad" : "warn"}>
      {problems.map((problem) => (
        <ProblemLine key={problem.text} {...problem} />
      ))}
    </Notice>
  );
}

/** Buttons of more backends would hide the text. */
const MOST_RESETS = 3;

function ProblemLine({ text, after, circuits }: GatewayProblem) {
  return (
    <span class="problem">
      {text}
      {after !== undefined && (
        <>
          {" "}
          Shortly before, {after.user ?? words(after.source)} changed {listOf(after.sections_changed)} (version{" "}
          {after.version}). <Link to="configuration">View versions</Link>
        </>
      )}{" "}
      {circuits.length > MOST_RESETS ? (
        <Link to="backends">View backends</Link>
      ) : (
        circuits.map((name) => (
          <ActionButton key={name} action={resettingCircuit(name)}>
            Reset the circuit of {name}
          </ActionButton>
        ))
      )}
    </span>
  );
}
