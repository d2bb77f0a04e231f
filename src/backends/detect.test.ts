import { expect, test } from "bun:test";
import { detectKind } from "./detect.ts";

test.each([
  [["llamacpp"], "llamacpp"],
  [["vllm", "vllm"], "vllm"],
  [["vllm", "llamacpp"], "generic"],
  [["library"], "generic"],
  [["organization_owner"], "generic"],
  [[undefined], "generic"],
  [["constructor"], "generic"],
] as const)("owners %j: %s", (owners, kind) => {
  expect(detectKind(owners)?.name).toBe(kind);
});

test("SGLang goes on with a beginning of its answer", () => {
  expect(detectKind(["sglang"])).toMatchObject({
    name: "sglang",
    prefill: { chat: { continue_final_message: true } },
  });
  expect(detectKind(["sglang", "vllm"])?.prefill).toBeUndefined();
});

test("an empty list tells nothing", () => {
  expect(detectKind([])).toBeUndefined();
});
