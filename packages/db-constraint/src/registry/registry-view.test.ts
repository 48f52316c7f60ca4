import { create } from "@bufbuild/protobuf";
import { DeploymentSchema } from "@plinth/proto/gen/plinth/meta/v1/meta_pb.js";
import { idOf, resourceOf } from "@plinth/resource";
import { expect, it } from "vitest";
import { Deployment } from "./meta-types.ts";
import { RegistryView } from "./registry-view.ts";

function deployment(version: string, disabled: boolean) {
	const id = { ...idOf(Deployment, "alpha-r1"), uid: "uid-alpha" };
	const data = create(DeploymentSchema, { service: "alpha", region: "r1", disabled });
	return { ...resourceOf(Deployment, { id, data }), version };
}

it.each([
	["meta-1", "meta-2"],
	["meta-2", "meta-1"],
])(
	"the newest of what servers of a meta deployment have reported counts, %s first",
	(first, second) => {
		const view = new RegistryView();
		view.apply(first, deployment(first === "meta-1" ? "9" : "10", first === "meta-1"), "stored");
		view.apply(second, deployment(second === "meta-1" ? "9" : "10", second === "meta-1"), "stored");
		expect(view.deployments().get("uid-alpha")?.disabled).toBe(false);
		expect(view.find("alpha", "r1")?.disabled).toBe(false);
	},
);
