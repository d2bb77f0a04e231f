// An error as it stands in a log line.

/** How far a chain of causes is followed. */
const MAX_CAUSES = 5;

/**
 * `message` and `stack` with those of its causes; of what else an error carries only plain values, such as a code. What was
 * thrown and is no error is written as it is where it is a plain value, else by its type.
 */
export function describeError(thrown: unknown): unknown {
  if (!(thrown instanceof Error)) return isPlain(thrown) ? thrown : Object.prototype.toString.call(thrown);
  const chain = [thrown, ...causesOf(thrown)];
  const more = Object.entries(thrown).filter(([, value]) => isPlain(value));
  return {
    type: thrown.constructor.name,
    message: chain.map(({ message }) => message).join(": "),
    stack: chain.map(({ stack }) => stack).join("\ncaused by: "),
    ...Object.fromEntries(more),
  };
}

function causesOf(error: Error): Error[] {
  const causes: Error[] = [];
  for (let { cause } = error; cause instanceof Error && causes.length < MAX_CAUSES; { cause } = cause)
    causes.push(cause);
  return causes;
}

function isPlain(value: unknown): boolean {
  return value === null || ["string", "number", "boolean", "undefined"].includes(typeof value);
}
