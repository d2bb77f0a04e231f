// What was said, part by part: text, thoughts, calls of tools and their results, pictures.

import type { ConversationPart } from "../../../admin/recording-schemas.ts";

const NAMES: Readonly<Record<string, string>> = { user: "User", assistant: "Model", system: "Instructions" };

export function Said({ by, parts }: { by: string; parts: readonly ConversationPart[] }) {
  return (
    <div class={`message ${by}`}>
      <span class="faint">{NAMES[by] ?? by}</span>
      {parts.map((part, index) => (
        <Part key={index} {...part} />
      ))}
    </div>
  );
}

function Part({ type, text, name, media_type, url }: ConversationPart) {
  if (type === "text" || type === "refusal") return <p class="said">{text}</p>;
  if (type === "image" && url?.startsWith("data:")) return <img class="said" src={url} alt={`Sent as ${media_type}`} />;
  const title = [type.replace("-", " "), name, media_type].filter(Boolean).join(" ");
  return (
    <details class="said" open={type === "tool-call"}>
      <summary>{title}</summary>
      <pre class="wrapped">{text ?? (url?.startsWith("data:") ? "(content)" : url)}</pre>
    </details>
  );
}
