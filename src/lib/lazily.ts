// A constant that is made when it is first asked for, because not every process needs it.

/** `make` reads nothing that changes: what it gives is the same whenever it runs, so that it may stand at module level. */
export function lazily<Value>(make: () => Value): () => Value {
  let made: { value: Value } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
