// Which models can be talked with.

import { supportedMethods } from "./capabilities.ts";

/** Names of what is no chat model, where nothing else is known of it. */
const OTHER =
  /embed|rerank|whisper|(?:^|[-_/])tts|dall-e|image|moderation|transcribe|realtime|davinci|babbage|(?:^|[-_/])(?:sora|veo|bge|flux)(?:[-_]|$)|stable-diffusion/i;

/** `capabilities` of the model's metadata; undefined: not known. */
export function isChatModel(id: string, capabilities: readonly string[] | undefined): boolean {
  return capabilities === undefined ? !OTHER.test(id) : supportedMethods(capabilities).includes("chat.completions");
}
