// Where a Redis or Valkey server is: the spellings of its URL, read for checks, fences and connections.

/** A server on the network, as Bun's own client takes it. */
interface NetworkPlace {
  url: string;
  database: undefined;
  socketPath: undefined;
}

/** A unix socket; its database has to be selected, because the client knows none from such a URL. */
interface SocketPlace {
  url: string;
  database: number | undefined;
  socketPath: string;
}

/** redis://, rediss://: [user[:password]@]host[:port][/database]. */
const NETWORK = /^rediss?:\/\/(?:[^\s/@?#]*@)?(?:\[[0-9A-Fa-f:.]+\]|[^\s/@:?#[\]]+)(?::\d{1,5})?(?:\/\d{0,5})?$/;

/** redis+unix://[user[:password]@[localhost]]/path[?db=0], or unix:/path[?db=0]. */
const SOCKET =
  /^(?:redis\+unix:\/\/(?:([^\s/@?#]*)@(?:localhost)?)?|unix:(?:\/\/(?=\/))?)(\/[^\s?#]+)(?:\?db=(\d{1,5}))?$/;

export function readRedisUrl(text: string): NetworkPlace | SocketPlace | undefined {
  if (NETWORK.test(text)) return { url: text, database: undefined, socketPath: undefined };
  const found = SOCKET.exec(text);
  if (found === null) return undefined;
  const [, userInfo, socketPath = "", database] = found;
  // The client reads a user and a password only where a host stands behind them.
  const authority = userInfo === undefined ? "" : `${userInfo}@localhost`;
  return {
    url: `redis+unix://${authority}${socketPath}`,
    database: database === undefined ? undefined : Number(database),
    socketPath,
  };
}
