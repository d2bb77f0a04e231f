// Dockerfile, compose file and unit: what they must hold to be safe, and what the gateway says of their configuration.
// There is no hadolint from Debian or npm: the rules of it that matter here stand below.

import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { programPath } from "../../scripts/debian-packages.ts";
import { checkedConfig } from "./checked-config.ts";
import { DEPLOY, ROOT, read, readYaml, runProgram } from "./repository.ts";

const RIGHT = expect.stringContaining("nothing is wrong");

describe("the Dockerfile", () => {
  const instructions = read("deploy/docker/Dockerfile")
    .replaceAll(/^#.*\n/gm, "")
    .replaceAll(/ *\\\n\s*/g, " ")
    .split("\n")
    .filter((line) => line.trim() !== "");
  const of = (name: string) => instructions.filter((line) => line.startsWith(`${name} `));
  const last = instructions.slice(instructions.findLastIndex((line) => line.startsWith("FROM ")));

  test("has only instructions that are known here", () => {
    const known = /^(FROM|ARG|WORKDIR|COPY|RUN|ENV|USER|VOLUME|EXPOSE|STOPSIGNAL|HEALTHCHECK|ENTRYPOINT) /;
    expect(instructions.filter((line) => !known.test(line))).toEqual([]);
  });

  test("begins with pinned images, and copies instead of ADD", () => {
    for (const line of of("FROM")) expect(line).toMatch(/:\d+\.\d+[\w.-]*( AS \w+)?$/);
    expect(of("ADD")).toEqual([]);
    for (const [, path] of read("deploy/docker/Dockerfile").matchAll(/^WORKDIR (\S+)/gm)) expect(path).toStartWith("/");
  });

  test("installs what the lock says, without what only tests need", () => {
    const [install] = of("RUN").filter((line) => line.includes("npm "));
    expect(install).toContain("npm ci --omit=dev");
    expect(of("RUN").filter((line) => /curl|wget|apt|sudo|npm install/.test(line))).toEqual([]);
  });

  test("ends with a stage that runs nothing while it is built, as a user without rights, with a health check", () => {
    expect(last.filter((line) => line.startsWith("RUN "))).toEqual([]);
    expect(last).toContain("USER 65532:65532");
    expect(last.filter((line) => line.startsWith("HEALTHCHECK "))).toEqual([
      expect.stringContaining('CMD ["signalbox", "--health-check"]'),
    ]);
    expect(last.at(-1)).toBe('ENTRYPOINT ["signalbox"]');
    expect(last.filter((line) => /KEY|TOKEN|PASSWORD|SECRET/.test(line))).toEqual([]);
  });

  test("copies what there is, and the context holds no more", () => {
    const sources = of("COPY").filter((line) => !line.includes("--from="));
    const paths = sources.flatMap((line) => line.split(" ").slice(1, -1));
    expect(paths.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
    const context = read("deploy/docker/Dockerfile.dockerignore")
      .split("\n")
      .filter((line) => line.startsWith("!"));
    expect(context.map((line) => line.slice(1)).sort()).toEqual(paths.map((path) => path.replace(/^\.\//, "")).sort());
  });
});

describe("the compose file", () => {
  interface Service {
    image: string;
    ports?: string[];
    volumes?: string[];
    read_only?: boolean;
    cap_drop?: string[];
    security_opt?: string[];
    stop_grace_period?: string;
    build?: { context: string; dockerfile: string };
  }
  const compose = readYaml("deploy/compose/compose.yaml")[0] as {
    services: Record<string, Service>;
    volumes: Record<string, null>;
  };

  test("publishes on this machine only, and gives no service more rights than it needs", () => {
    expect(Object.keys(compose.services).sort()).toEqual(["grafana", "prometheus", "redis", "signalbox"]);
    for (const { ports = [], cap_drop, security_opt } of Object.values(compose.services)) {
      for (const port of ports) expect(port).toStartWith("127.0.0.1:");
      expect(cap_drop).toEqual(["ALL"]);
      expect(security_opt).toEqual(["no-new-privileges:true"]);
    }
    expect(compose.services.signalbox).toMatchObject({ read_only: true, stop_grace_period: "35s" });
  });

  test("mounts what there is", () => {
    const folder = join(DEPLOY, "compose");
    for (const { volumes = [], build } of Object.values(compose.services)) {
      for (const volume of volumes) {
        const [source = ""] = volume.split(":");
        const isThere = source.startsWith(".") ? existsSync(join(folder, source)) : source in compose.volumes;
        expect({ source, isThere }).toEqual({ source, isThere: true });
      }
      if (build !== undefined) expect(existsSync(join(folder, build.context, build.dockerfile))).toBe(true);
    }
  });

  test("its configuration is one", async () => {
    expect(await checkedConfig(read("deploy/compose/signalbox/config.yaml"))).toEqual({ exitCode: 0, output: RIGHT });
  });

  test("Grafana's data source is the one that Prometheus has there", () => {
    const { datasources } = readYaml("deploy/compose/grafana/datasource.yaml")[0] as {
      datasources: { type: string; url: string }[];
    };
    expect(datasources).toMatchObject([{ type: "prometheus", url: "http://prometheus:9090" }]);
  });
});

describe("the chart", () => {
  test.each(["default", "everything"])("the configuration of %s is one", async (name) => {
    const map = readYaml(`deploy/helm/rendered/${name}.yaml`).find(
      (each) => (each as { kind: string }).kind === "ConfigMap",
    );
    expect(await checkedConfig((map as { data: { "config.yaml": string } }).data["config.yaml"])).toEqual({
      exitCode: 0,
      output: RIGHT,
    });
  });
});

describe("the unit", () => {
  test("is right by systemd-analyze, and exposed to little", async () => {
    const unit = join(DEPLOY, "systemd", "signalbox.service");
    const analyze = programPath("systemd-analyze");
    // Where it is not installed, the program that it starts is not there.
    const { output } = await runProgram([analyze, "verify", "--man=no", unit]);
    const complaints = output.split("\n").filter((line) => line.includes("signalbox.service"));
    expect(complaints.filter((line) => !line.includes("Command /usr/local/bin/signalbox is not executable"))).toEqual(
      [],
    );
    const { output: exposure } = await runProgram([analyze, "security", "--offline=true", "--no-pager", unit]);
    expect(Number(/exposure level for signalbox\.service: ([\d.]+)/.exec(exposure)?.[1])).toBeLessThan(2);
  });
});
