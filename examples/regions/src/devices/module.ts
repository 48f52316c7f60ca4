import { defineType } from "@plinth/resource";
import { defineModule } from "@plinth/server/module";
import * as v1 from "../gen/regions/devices/v1/devices_pb.ts";
import * as v2 from "../gen/regions/devices/v2/devices_pb.ts";
import { ProjectSchema } from "../gen/regions/iam/v1/iam_pb.ts";

/** Racks and devices, in two versions: the service `devices`, which imports `iam`. */
export default defineModule({
	name: "devices",
	types: [v1.RackSchema, v1.DeviceSchema, v2.RackSchema, v2.DeviceSchema].map((schema) =>
		defineType(schema),
	),
	foreignTypes: [defineType(ProjectSchema)],
});
