import { defineType } from "@plinth/resource";
import { ThingSchema } from "./gen/acme/thing/v1/thing_pb.ts";

export { ThingSchema };

/** A type without hooks. */
export const Thing = defineType(ThingSchema);
