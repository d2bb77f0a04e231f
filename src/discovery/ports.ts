// The ports of this machine on which engines are looked for.

/** Ollama, LM Studio, vLLM (and llama.cpp, where that is moved), llama.cpp, SGLang. */
export const USUAL_PORTS: readonly number[] = [11434, 1234, 8000, 8080, 30000];

export const PORTS_VARIABLE = "SIGNALBOX_DISCOVERY_PORTS";

const MAX_PORTS = 32;

/** Reads the variable; undefined if its text is not valid. */
export function readPorts(text: string): readonly number[] | undefined {
  if (text.trim() === "none") return [];
  const words = text.split(",").map((word) => word.trim());
  const ports = words.map(Number);
  const isRight = words.every((word) => /^\d{1,5}$/.test(word)) && ports.every((port) => port >= 1 && port <= 65_535);
  return isRight && ports.length <= MAX_PORTS ? [...new Set(ports)] : undefined;
}
