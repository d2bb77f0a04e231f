// Takes a stream of server-sent events apart, however it is cut.

/** Returns the data of the events that each piece completes. */
export function createSseReader(): (piece: string) => string[] {
  let rest = "";
  let data: string[] = [];
  return (piece) => {
    const events: string[] = [];
    const lines = (rest + piece).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line === "") {
        if (data.length > 0) events.push(data.join("\n"));
        data = [];
      } else if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
    }
    return events;
  };
}
