// What models are asked, as the backends of each format get it: conversations that several formats have written.

import { describe, expect, test } from "bun:test";
import { TestSession } from "../../test/support/agent-turns.ts";
import { ScriptedEditor } from "../../test/support/scripted-editor.ts";
import { ScriptedModel } from "../../test/support/scripted-model.ts";
import { BACKEND_KINDS } from "../backends/kinds.ts";
import type { GenerationRequest } from "../generation/request.ts";
import { backendProtocol } from "../protocols/registry.ts";

const BACKENDS = [
  ["chat", BACKEND_KINDS.vllm, "m"],
  ["chat", BACKEND_KINDS.openai, "gpt-5"],
  ["responses", BACKEND_KINDS.openai, "gpt-5"],
  ["messages", BACKEND_KINDS.anthropic, "claude-opus-4-8"],
  ["generate-content", BACKEND_KINDS.gemini, "gemini-3-pro-preview"],
] as const;

/** A session whose answers came from backends of all formats, each with a thought and a call. */
async function mixedRequest(): Promise<GenerationRequest> {
  const session = new TestSession(new ScriptedEditor({ files: { "/project/a": "A" } }), { choices: { effort: "low" } });
  const call = { name: "read_text_file", arguments: { path: "a" } };
  const answers = ["messages", "responses", "generate-content"].map((origin, index) => ({
    thought: `thought ${index}`,
    signed: { origin, signature: `proof-${origin}` },
    calls: [{ ...call, id: `call_${index}`, ...(origin === "generate-content" && { signature: "proof-of-call" }) }],
  }));
  const broken = { calls: [{ ...call, id: "call_broken", arguments: '{"path": "a' }] };
  const model = new ScriptedModel([...answers, { thought: "plain", calls: [call] }, broken, { text: "ok" }]);
  await session.run(model, "go");
  return model.requests.at(-1) as GenerationRequest;
}

describe.each(BACKENDS)("a %s backend", (format, kind, model) => {
  test("is sent a conversation of all formats, with its own proofs only", async () => {
    const request = await mixedRequest();
    const { body } = backendProtocol(format).encodeRequest(request, { model, kind });
    const text = JSON.stringify(body);
    expect(body.stream ?? true).toBe(true);
    for (const origin of ["messages", "responses", "generate-content"]) {
      if (origin !== format && format !== "chat") expect(text).not.toContain(`proof-${origin}`);
    }
    expect(text).toContain("read_text_file");
    expect(text).toContain("no valid JSON");
  });
});

test("a Messages backend is asked to keep the beginning in its cache", async () => {
  const request = await mixedRequest();
  const { body } = backendProtocol("messages").encodeRequest(request, {
    model: "claude-opus-4-8",
    kind: BACKEND_KINDS.anthropic,
  });
  const hints = JSON.stringify(body).match(/cache_control/g);
  expect(hints).toHaveLength(3);
});

test("what is said of thinking is said only where an effort was chosen", async () => {
  const ask = async (choices: object) => {
    const model = new ScriptedModel([{ text: "ok" }]);
    await new TestSession(new ScriptedEditor(), { choices }).run(model, "hi");
    return model.requests[0]?.reasoning;
  };
  expect(await ask({})).toEqual({});
  expect(await ask({ effort: "none" })).toEqual({ effort: "none" });
  expect(await ask({ effort: "high" })).toEqual({ effort: "high", visible: true });
});
