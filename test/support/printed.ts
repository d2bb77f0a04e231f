// What a gateway has printed, and what it must never print.

/** Every secret that a test uses contains this text, so that one search proves that none was written to a log. */
export const SECRET_MARK = "sekret";

export class Printed {
  stdout = "";
  stderr = "";

  get stderrLines(): string[] {
    return this.stderr.split("\n").filter((line) => line !== "");
  }

  /** Log lines as objects; lines that are not JSON are left out. */
  get logEntries(): Record<string, unknown>[] {
    return this.stderrLines.flatMap((line) => {
      try {
        return [JSON.parse(line) as Record<string, unknown>];
      } catch {
        return [];
      }
    });
  }

  /** Fails when it holds a secret or a bug. */
  check(): void {
    const leak = [...this.stdout.split("\n"), ...this.stderrLines].find((line) => line.includes(SECRET_MARK));
    if (leak !== undefined) throw new Error(`a secret was printed: ${leak}`);
    const surprise = this.stderrLines.find((line) => /unexpected error|unhandled|panic/i.test(line));
    if (surprise !== undefined) throw new Error(`the gateway met something it does not understand: ${surprise}`);
  }

  toString(): string {
    return `stdout:\n${this.stdout}\nstderr:\n${this.stderr}`;
  }
}
