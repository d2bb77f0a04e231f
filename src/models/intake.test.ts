// What backends say of what their models take, in their own shapes.

import { expect, test } from "bun:test";
import type { Intake } from "../generation/intake.ts";
import { intakeInList, intakeInProps, intakeInShow } from "./intake.ts";

const TEXT = { image: false, audio: false, video: false };

test.each<[object, Intake | undefined]>([
  [{ architecture: { input_modalities: ["text"] } }, TEXT], // llama.cpp
  [{ architecture: { input_modalities: ["text", "image", "file"] } }, { ...TEXT, image: true }], // OpenRouter
  [{ input_modalities: ["text", "audio"] }, { ...TEXT, audio: true }], // xAI
  [{ capabilities: { completion_chat: true, vision: true } }, { image: true }], // Mistral
  [{ capabilities: { vision: false, trained_for_tool_use: true } }, { image: false }], // LM Studio
  [{ capabilities: ["tool_use"] }, undefined], // LM Studio before 0.4, which has no word for pictures there
  [{ architecture: { input_modalities: [] } }, undefined],
  [{ architecture: null, capabilities: null, input_modalities: "text" }, undefined],
  [{ capabilities: { vision: "yes" } }, undefined],
])("of a list: %j", (item, intake) => {
  expect(intakeInList(item as Record<string, unknown>)).toEqual(intake as never);
});

test.each<[unknown, Intake | undefined]>([
  [{ modalities: { vision: false, audio: true } }, { image: false, audio: true }],
  [{ modalities: {} }, undefined],
  [{ modalities: ["text"] }, undefined],
  [{}, undefined],
  [null, undefined],
])("of /props: %j", (answer, intake) => {
  expect(intakeInProps(answer)).toEqual(intake as never);
});

test.each<[unknown, Intake | undefined]>([
  [{ capabilities: ["completion", "vision"] }, { ...TEXT, image: true }],
  [{ capabilities: ["completion", "tools"] }, TEXT],
  [{ details: {} }, undefined],
  ["", undefined],
])("of /api/show: %j", (answer, intake) => {
  expect(intakeInShow(answer)).toEqual(intake as never);
});
