import { defineType } from "@plinth/resource";
import { ThingSchema } from "./gen/acme/alpha/v1/thing_pb.ts";
import { WidgetSchema } from "./gen/acme/beta/v1/widget_pb.ts";

export { ThingSchema, WidgetSchema };

/** References things, of the service alpha. */
export const Thing = defineType(ThingSchema);

/** References things and widgets, of the service beta. */
export const Widget = defineType(WidgetSchema);
