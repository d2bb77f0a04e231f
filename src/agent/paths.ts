// Paths of tools: from the session's folder, as the model writes them, to absolute ones and back. Of text alone: the files
// are the editor's, and may be on another machine.

/** Absolute, without "." and "..". */
export function resolvePath(path: string, cwd: string): string {
  const whole = path.startsWith("/") ? path : `${cwd}/${path}`;
  const names: string[] = [];
  for (const name of whole.split("/")) {
    if (name === "..") names.pop();
    else if (name !== "" && name !== ".") names.push(name);
  }
  return `/${names.join("/")}`;
}

export function isInside(path: string, folder: string): boolean {
  const root = resolvePath(folder, "/");
  return root === "/" || path === root || path.startsWith(`${root}/`);
}

/** As people and models read it: relative inside of the folder, absolute elsewhere. */
export function shownPath(path: string, cwd: string): string {
  const root = resolvePath(cwd, "/");
  if (path === root) return ".";
  return root !== "/" && isInside(path, root) ? path.slice(root.length + 1) : path;
}
