// Where one is in the dashboard, as it stands behind the # of the address.

export interface Route {
  page: string;
  /** Of one request, backend or section. */
  id: string | undefined;
  query: URLSearchParams;
}

export const START_PAGE = "overview";

export function parseRoute(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#?\/?/, "").split("?", 2) as [string, string?];
  const [page = "", ...rest] = path.split("/");
  const id = rest.join("/");
  return {
    page: page === "" ? START_PAGE : page,
    id: id === "" ? undefined : decoded(id),
    query: new URLSearchParams(query),
  };
}

/** Parameters without a value are left out. */
export function linkTo(page: string, id?: string, query: Readonly<Record<string, string | undefined>> = {}): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== "") parameters.set(name, value);
  const text = parameters.toString();
  return `#/${page}${id === undefined ? "" : `/${encodeURIComponent(id)}`}${text === "" ? "" : `?${text}`}`;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // written by hand
  }
}
