import { expect, it } from "vitest";
import { fieldOfPath } from "./field-of-path.ts";

it.each([
	["spec.owner", "spec.owner"],
	['spec.members["a"].owner', "spec.members.owner"],
	['members["]"].by[-3].at[true]', "members.by.at"],
	[`members[${JSON.stringify('a"].b["\\')}].owner`, "members.owner"],
	['members["\\\\"].by["\\""]', "members.by"],
])("the field of a path is without the keys of maps: %s", (path, field) => {
	expect(fieldOfPath(path)).toBe(field);
});
