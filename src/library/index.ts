// What `import { createGateway } from "signalbox"` gives: a gateway without a listener, inside a program that runs on Bun. Everything
// that this file exports is public and follows semantic versioning (docs/library.md).

export type { ConfigDocument } from "../config/sections/registry.ts";
export { ConfigurationError } from "../config/values/configuration-error.ts";
export { GatewayError } from "../errors/gateway-error.ts";
export type {
  AudioPart,
  Citation,
  ContentPart,
  DocumentPart,
  ImagePart,
  MediaSource,
  Message,
  ReasoningPart,
  TextPart,
  ToolCallPart,
  ToolResultPart,
} from "../generation/content.ts";
export type { GenerationEvent, PartStart } from "../generation/events.ts";
export type { ReasoningWish, ResponseFormat, Sampling } from "../generation/request.ts";
export type { Failure, Finish, FinishReason, GenerationResult } from "../generation/result.ts";
export type { Tool, ToolChoice } from "../generation/tools.ts";
export type { Usage } from "../generation/usage.ts";
export type { GatewayOptions, GenerateOptions, GenerateRequest, Generation, LibraryGateway } from "./gateway.ts";
export { createGateway } from "./gateway.ts";
