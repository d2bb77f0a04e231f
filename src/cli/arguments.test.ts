// The command line: every option in both forms, and every refusal.

import { describe, expect, test } from "bun:test";
import { helpText, type ParsedArguments, parseArguments } from "./arguments.ts";

const serve = { command: "serve", config: undefined, modelMetadata: undefined, ignoreSaved: false } as const;
const check = { command: "health-check", url: undefined, config: undefined } as const;

describe("parseArguments", () => {
  test.each<[string[], ParsedArguments]>([
    [[], serve],
    [["--config", "a.yaml"], { ...serve, config: "a.yaml" }],
    [["--config=a=b.yaml"], { ...serve, config: "a=b.yaml" }],
    [["--config=-a.yaml"], { ...serve, config: "-a.yaml" }],
    [["--config", "a", "--config", "b"], { ...serve, config: "b" }],
    [["--config", "~/a.yaml"], { ...serve, config: "/home/me/a.yaml" }],
    [["--config=~"], { ...serve, config: "/home/me" }],
    [["--config", "~other/a.yaml"], { ...serve, config: "~other/a.yaml" }],
    [["--model-metadata", "~/m.yaml"], { ...serve, modelMetadata: "/home/me/m.yaml" }],
    [["--ignore-saved"], { ...serve, ignoreSaved: true }],
    [["--mode", "stdio"], { ...serve, command: "agent" }],
    [["--mode=stdio", "--config=a", "--ignore-saved"], { ...serve, command: "agent", config: "a", ignoreSaved: true }],
    [["--mode=stdio", "--version"], { command: "version" }],
    [["--health-check"], check],
    [["--health-check", "--config=a"], { ...check, config: "a" }],
    [["--health-check-url", "http://h:1/x"], { ...check, url: "http://h:1/x" }],
    [["--health-check", "--health-check-url=unix:/s"], { ...check, url: "unix:/s" }],
    [["--generate-config"], { command: "generate-config" }],
    [
      ["--backup", "~/b", "--config=a"],
      { command: "backup", folder: "/home/me/b", config: "a", modelMetadata: undefined },
    ],
    [["--restore=b"], { command: "restore", folder: "b", config: undefined }],
    [["--restore=b", "--backup=b"], { error: "--backup and --restore exclude each other" }],
    [["-h"], { command: "help" }],
    [["--version", "--help"], { command: "help" }],
    [["-V"], { command: "version" }],
    [["--confg", "a"], { error: "unknown option --confg; did you mean --config?" }],
    [["--confg=secret"], { error: "unknown option --confg; did you mean --config?" }],
    [["-x"], { error: "unknown option -x; --help lists the options" }],
    [["--"], { error: "unknown option --; --help lists the options" }],
    [["--config"], { error: "--config needs a value: --config <path>" }],
    [["--config="], { error: "--config needs a value: --config <path>" }],
    [["--config", ""], { error: "--config needs a value: --config <path>" }],
    [["--config", "--mode"], { error: "--config needs a value: --config <path>" }],
    [["--help=x"], { error: "--help takes no value" }],
    [["serve"], { error: 'unexpected argument "serve"; there are only options' }],
    [["--config", "a", ""], { error: 'unexpected argument ""; there are only options' }],
    [
      ["--mode=http"],
      { error: 'unknown mode "http"; the only one is stdio, and without --mode the gateway serves HTTP' },
    ],
    [
      ["--health-check-url", "localhost:8080"],
      { error: "--health-check-url: expected a URL that starts with http://, https:// or unix:/" },
    ],
  ])("%j", (words, expected) => {
    expect(parseArguments(words, "/home/me")).toEqual(expected);
  });

  test("without a home folder ~ stays", () => {
    expect(parseArguments(["--config", "~/a"], undefined)).toEqual({ ...serve, config: "~/a" });
  });
});

test("the help text names every option of the specification and fits a terminal", () => {
  const text = helpText();
  for (const option of [
    "--config <path>",
    "--mode <mode>",
    "--generate-config",
    "--health-check ",
    "--health-check-url <url>",
    "--model-metadata <path>",
    "-h, --help",
    "-V, --version",
  ]) {
    expect(text).toContain(option);
  }
  expect(text.split("\n").filter((line) => line.length > 100)).toEqual([]);
});

describe("the command replay", () => {
  const read = (...words: string[]) => parseArguments(["replay", ...words], "/home/me");

  test("takes a filter and what is asked", () => {
    expect(
      read("--filter", "a=b", "--model", "m", "--judge", "j", "--rubric", "~/r.txt", "--key", "k", "--json"),
    ).toEqual({
      command: "replay",
      url: "http://127.0.0.1:8080",
      filter: "a=b",
      judge: "j",
      rubric: "/home/me/r.txt",
      asked: { model: "m", key: "k" },
      asJson: true,
    });
    expect(read("--help")).toEqual({ command: "help" });
  });

  test.each([
    [["--model", "m"], "replay needs --filter, which says what is asked again"],
    [["--filter", "a=b"], "replay needs --model, --route, --prompt or --instructions"],
    [["--filter", "a=b", "--model", "m", "--judge", "j"], "--judge and --rubric need each other"],
    [["--filter", "a=b", "--model", "m", "--url", "x"], "--url: expected a URL that starts with http:// or https://"],
    [["--config", "a"], "unknown option --config; --help lists the options"],
  ] as const)("%j is refused", (words, error) => {
    expect(read(...words)).toEqual({ error });
  });
});
