// What all who take part in encoding one request know of it.

import type { DropList } from "../../generation/dropped.ts";
import type { GenerationRequest } from "../../generation/request.ts";
import type { BackendTarget } from "../protocol.ts";
import type { ModelRules } from "./model-rules.ts";

export interface Encoding {
  request: GenerationRequest;
  target: BackendTarget;
  rules: ModelRules;
  /** Id of a call -> name of its function: results carry it here, which other formats leave to the call's id. */
  names: ReadonlyMap<string, string>;
  dropped: DropList;
}
