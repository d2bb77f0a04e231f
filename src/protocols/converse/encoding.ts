// What all who take part in encoding one request know of it.

import type { DropList } from "../../generation/dropped.ts";
import type { GenerationRequest } from "../../generation/request.ts";
import type { BackendTarget } from "../protocol.ts";
import type { ModelRules } from "./model-rules.ts";

export interface Encoding {
  request: GenerationRequest;
  target: BackendTarget;
  rules: ModelRules;
  /** Names of documents so far: no two of a request may have one. */
  documentNames: Set<string>;
  dropped: DropList;
}
