// Links to pages of the dashboard.

import type { ComponentChildren } from "preact";
import { linkTo } from "../route.ts";

interface LinkProps {
  to: string;
  /** Of one request or section. */
  id?: string;
  query?: Readonly<Record<string, string | undefined>>;
  class?: string;
  title?: string;
  /** For screen readers, where the text alone does not say what it is about. */
  "aria-label"?: string;
  "aria-current"?: "page" | undefined;
  children: ComponentChildren;
}

export function Link({ to, id, query, children, ...attributes }: LinkProps) {
  return (
    <a href={linkTo(to, id, query)} {...attributes}>
      {children}
    </a>
  );
}

interface RequestsOfProps {
  by: "model" | "route" | "backend" | "key";
  name: string;
  class?: string;
}

/** The name of something, as a link to its requests. */
export function RequestsOf({ by, name, ...attributes }: RequestsOfProps) {
  return (
    <Link to="requests" query={{ [by]: name }} {...attributes}>
      {name}
    </Link>
  );
}
