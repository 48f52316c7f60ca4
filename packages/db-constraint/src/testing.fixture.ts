/** What the tests of other packages use. Not published. */
export { thingReferencing } from "../testdata/other-thing.ts";
export { Thing, ThingSchema } from "../testdata/types.ts";
