// The formats of batches by their names.

import type { BatchFormat } from "./batch-format.ts";
import type { BatchFormatName } from "./batch-store.ts";
import { FILE_FORMAT } from "./file-format.ts";
import { MESSAGE_FORMAT } from "./message-format.ts";

export const BATCH_FORMATS: Readonly<Record<BatchFormatName, BatchFormat>> = {
  files: FILE_FORMAT,
  inline: MESSAGE_FORMAT,
};
