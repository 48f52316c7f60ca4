import { defineType } from "@plinth/resource";
import { defineModule } from "@plinth/server/module";
import { AccessKeySchema, ProjectSchema } from "../gen/regions/iam/v1/iam_pb.ts";

/** Projects and access keys: the service `iam`. */
export default defineModule({
	name: "iam",
	types: [defineType(ProjectSchema), defineType(AccessKeySchema)],
});
