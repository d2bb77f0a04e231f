// Chooses the model by organisation: each has one that its contract allows, whatever its clients ask for.

import { change, defineHook, pass, refuse } from "signalbox/hooks";

interface Options {
  models: Record<string, string>;
}

export default defineHook<Options>({
  options(given) {
    const { models } = given as Partial<Options>;
    if (typeof models !== "object") throw new Error("options.models: expected a model for each organisation");
    return { models };
  },

  request({ body, info, options }) {
    if (info.organization === undefined) return refuse(403, "no_organization", "Use a key of your organisation.");
    const model = options.models[info.organization];
    return model === undefined || model === body.model ? pass() : change({ body: { ...body, model } });
  },
});
