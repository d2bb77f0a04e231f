// Property tests draw other values in each run, unless PROPERTY_SEED says from where: then each run draws the same.

import fc from "fast-check";

const { PROPERTY_SEED } = process.env;
if (PROPERTY_SEED !== undefined) fc.configureGlobal({ seed: Number(PROPERTY_SEED) });
