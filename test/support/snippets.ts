// The code that the documentation shows.

import { root } from "../architecture/source-files.ts";

interface Snippet {
  page: string;
  language: string;
  code: string;
}

/** Of every page, in order. */
export async function readSnippets(): Promise<Snippet[]> {
  const pages = ["README.md", "CONTRIBUTING.md", ...new Bun.Glob("{docs,deploy}/**/*.md").scanSync(root)];
  const found = pages.sort().map(async (page) => {
    const text = await Bun.file(`${root}/${page}`).text();
    return [...text.matchAll(/^```(\w*)\n([\s\S]*?)^```/gm)].map(([, language = "", code = ""]) => ({
      page,
      language,
      code,
    }));
  });
  return (await Promise.all(found)).flat();
}
