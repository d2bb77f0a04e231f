// The Helm chart. There is no helm from Debian or npm: deploy/helm/render.sh renders it where there is one, and what it
// rendered is kept and looked at here. A chart that was changed since fails the first test.

import { expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import Ajv from "ajv";
import { parse } from "yaml";
import packageJson from "../../package.json";
import { DEPLOY, read, readYaml } from "./repository.ts";

const CHART = "deploy/helm/signalbox";
const templates = readdirSync(join(DEPLOY, "helm/signalbox/templates"))
  .sort()
  .map((name) => `${CHART}/templates/${name}`);
const values = readYaml(`${CHART}/values.yaml`)[0] as Record<string, unknown>;
const everything = readYaml("deploy/helm/examples/everything.yaml")[0] as Record<string, unknown>;
const schema = JSON.parse(read(`${CHART}/values.schema.json`)) as object;

interface Rendered {
  kind: string;
  metadata: { name: string; labels: Record<string, string> };
  // biome-ignore lint/suspicious/noExplicitAny: an object of Kubernetes
  spec: any;
}
const rendered = (name: string) => readYaml(`deploy/helm/rendered/${name}.yaml`) as Rendered[];
const RENDERED = { default: rendered("default"), everything: rendered("everything") };

function find(name: keyof typeof RENDERED, kind: string): Rendered {
  const found = RENDERED[name].filter((each) => each.kind === kind);
  expect(found).toHaveLength(1);
  return found[0] as Rendered;
}

test("what was rendered is of this chart; else run deploy/helm/render.sh", () => {
  const chart = read(`${CHART}/Chart.yaml`).replaceAll(/^(version|appVersion):.*\n/gm, "");
  const parts = [
    chart,
    ...[
      `${CHART}/values.schema.json`,
      `${CHART}/values.yaml`,
      ...templates,
      "deploy/helm/examples/everything.yaml",
    ].map(read),
  ];
  const digest = createHash("sha256").update(parts.join("")).digest("hex");
  expect(read("deploy/helm/rendered/of-chart").trim()).toBe(digest);
});

test("the chart has the version of the program", () => {
  expect(readYaml(`${CHART}/Chart.yaml`)[0]).toMatchObject({
    version: packageJson.version,
    appVersion: packageJson.version,
  });
});

test("the schema takes the values, and refuses what is misspelt or wrong", () => {
  const validate = new Ajv({ strict: false }).compile(schema);
  expect(validate(values) ? [] : validate.errors).toEqual([]);
  expect(validate(everything) ? [] : validate.errors).toEqual([]);
  const [, shown = ""] = /^```yaml\n([\s\S]*?)^```/m.exec(read("deploy/README.md")) ?? [];
  expect(validate(parse(shown)) ? [] : validate.errors).toEqual([]);
  const WRONG = [
    { replica: 2 },
    { replicas: "2" },
    { service: { port: 0 } },
    { image: { digest: "latest" } },
    { readinessProbe: { path: "/metrics" } },
    { config: { server: { bind_address: "0.0.0.0:80" } } },
    { secretEnv: { KEY: { name: "only" } } },
  ];
  for (const wrong of WRONG) expect({ wrong, isTaken: validate(wrong) }).toEqual({ wrong, isTaken: false });
});

test("every value has a default, a type, and a use", () => {
  const properties = Object.keys((schema as { properties: object }).properties).filter((name) => name !== "global");
  expect(properties.sort()).toEqual(Object.keys(values).sort());
  const text = templates.map(read).join("\n");
  const used = new Set([...text.matchAll(/\.Values\.([\w.]+)/g)].map(([, path = ""]) => path));
  for (const path of used) {
    const value = path
      .split(".")
      .reduce<unknown>((of, key) => (of as Record<string, unknown> | undefined)?.[key], values);
    expect({ path, isThere: value !== undefined }).toEqual({ path, isThere: true });
  }
  expect(Object.keys(values).filter((name) => ![...used].some((path) => path.split(".")[0] === name))).toEqual([]);
});

test("by default: what everybody needs, and nothing that a cluster may lack", () => {
  expect(RENDERED.default.map(({ kind }) => kind).sort()).toEqual([
    "ConfigMap",
    "Deployment",
    "PodDisruptionBudget",
    "Service",
    "ServiceAccount",
  ]);
});

test("with everything: a set with volumes, and all that is optional", () => {
  expect(RENDERED.everything.map(({ kind }) => kind).sort()).toEqual([
    "ConfigMap",
    "HorizontalPodAutoscaler",
    "NetworkPolicy",
    "PodDisruptionBudget",
    "Service",
    "ServiceAccount",
    "ServiceMonitor",
    "StatefulSet",
  ]);
  const { spec } = find("everything", "StatefulSet");
  expect(spec.replicas).toBeUndefined();
  expect(spec.volumeClaimTemplates[0].spec).toMatchObject({ storageClassName: "fast" });
  expect(find("everything", "HorizontalPodAutoscaler").spec.scaleTargetRef.kind).toBe("StatefulSet");
});

test.each([
  ["default", "Deployment"],
  ["everything", "StatefulSet"],
] as const)("pods of %s are safe, and stop in order", (name, kind) => {
  const { spec } = find(name, kind).spec.template;
  expect(spec.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } });
  expect(spec).toMatchObject({ automountServiceAccountToken: false, enableServiceLinks: false });
  const [container] = spec.containers;
  expect(container.securityContext).toEqual({
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ["ALL"] },
  });
  expect(container.livenessProbe.httpGet.path).toBe("/healthz");
  expect(container.resources.limits.memory).toBeDefined();
  // The wait before the end, the time of the gateway, and something left.
  const waitSeconds = Number(container.lifecycle.preStop.exec.command[1]);
  expect(spec.terminationGracePeriodSeconds).toBeGreaterThan(waitSeconds + 30);
  const mounted = container.volumeMounts.map((mount: { name: string; subPath?: string }) => {
    // A file that is mounted alone does not follow its config map.
    expect(mount.subPath).toBeUndefined();
    return mount.name;
  });
  const claims = (find(name, kind).spec.volumeClaimTemplates ?? []).map(
    ({ metadata }: { metadata: { name: string } }) => metadata.name,
  );
  const volumes = spec.volumes.map((volume: { name: string }) => volume.name);
  expect([...volumes, ...claims].sort()).toEqual([...mounted].sort());
});

test.each(Object.keys(RENDERED) as (keyof typeof RENDERED)[])("the selectors of %s find its pods", (name) => {
  const pod = (RENDERED[name].find(({ kind }) => kind === "Deployment" || kind === "StatefulSet") as Rendered).spec
    .template;
  for (const { kind, spec } of RENDERED[name]) {
    const selector =
      kind === "Service"
        ? spec.selector
        : kind === "NetworkPolicy"
          ? spec.podSelector.matchLabels
          : spec?.selector?.matchLabels;
    if (selector === undefined) continue;
    expect({ kind, labels: pod.metadata.labels }).toMatchObject({ kind, labels: selector });
  }
  expect(find(name, "Service").spec.ports[0].targetPort).toBe(pod.spec.containers[0].ports[0].name);
});

test("no secret stands in a config map", () => {
  const { data } = find("everything", "ConfigMap") as unknown as { data: Record<string, string> };
  expect(data["config.yaml"]).toContain("${OPENAI_API_KEY}");
});
