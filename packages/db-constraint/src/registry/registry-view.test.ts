import { create } from "@bufbuild/protobuf";
import { DeploymentSchema } from "@plinth/proto/gen/plinth/meta/v1/meta_pb.js";
import { decodeShared, idOf, resourceOf } from "@plinth/resource";
import { expect, it } from "vitest";
import { DeletedDeployment, Deployment, deletedDeploymentName } from "./meta-types.ts";
import { reportOf } from "./registry-report.ts";
import { RegistryView } from "./registry-view.ts";

function deployment(version: string, disabled: boolean, uid = "uid-alpha") {
	const id = { ...idOf(Deployment, "alpha-r1"), uid };
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

it.each([
	["01A", "01B"],
	["01B", "01A"],
])(
	"of two deployments in one place, the one that registered last is found, %s reported first",
	(first, second) => {
		const view = new RegistryView();
		view.apply("meta-1", deployment("1", false, first), "stored");
		view.apply("meta-1", deployment("2", false, second), "stored");
		expect(view.find("alpha", "r1")?.uid).toBe("01B");
	},
);

it("a report has the deletion of a deployment whose record the view lacks", () => {
	const { deployments, deleted, knownUids } = reportOf(new RegistryView(), [], ["01X"]);
	expect(deleted.map((each) => decodeShared(DeletedDeployment, each).data.uid)).toEqual(["01X"]);
	expect(deleted.map(({ id }) => id?.name)).toEqual([deletedDeploymentName("01X")]);
	expect({ deployments, knownUids }).toEqual({ deployments: [], knownUids: [] });
});
