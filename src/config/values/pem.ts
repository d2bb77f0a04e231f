// PEM text (RFC 7468) as a setting, beside the paths of files that hold such text.

/** True for a text that holds PEM, well formed or not; any other text names a file. */
export function isPem(text: string): boolean {
  return text.includes(PEM_BEGIN);
}

/** Begins the label of each block in the text. */
export const PEM_BEGIN = "-----BEGIN ";
