// Counts the requests that use a runner of hooks, so that one that was replaced ends with the last of them.

/** @param ended - called once, when it is retired and nothing uses it */
export function countHolders(ended: () => void) {
  let holders = 0;
  let isRetired = false;
  const check = () => {
    if (isRetired && holders === 0) ended();
  };
  return {
    hold(): () => void {
      holders++;
      let isHeld = true;
      return () => {
        if (isHeld) holders--;
        isHeld = false;
        check();
      };
    },
    retire(): void {
      isRetired = true;
      check();
    },
  };
}
