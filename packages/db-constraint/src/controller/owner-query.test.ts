import { create } from "@bufbuild/protobuf";
import { CheckMetaOwnersResponse_Verdict as Verdict } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import { MetaOwnerSchema, ShadowSchema } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { resourceOf } from "@plinth/resource";
import { expect, it } from "vitest";
import { Thing, Widget } from "../../testdata/types.ts";
import { hooked, twoDeployments } from "../lab/things.fixture.ts";
import { shadowName } from "../shadow/shadow.ts";
import { ResourceShadow, recordId } from "../shadow/shadow-records.ts";
import { OwnerQuery } from "./owner-query.ts";

/** A query of beta's, with a widget of its own that may have owners. */
function queryOf({ lab, beta }: Awaited<ReturnType<typeof twoDeployments>>) {
	const { context } = beta.current.constraints;
	const environment = { ...context.environment, isComplete: true };
	const resource = lab.keyOf(beta, beta.id(Widget, "w"));
	const stored = {
		name: shadowName(resource),
		version: "",
		resource: resourceOf(ResourceShadow, { id: recordId("w") }),
		shadow: create(ShadowSchema, { resource, uid: "01WIDGET" }),
	};
	return { query: new OwnerQuery({ ...context, environment }), stored, environment };
}

it("an owner is not known to be deleted if the last meta deployment is read only during the query", async () => {
	let during = () => {};
	const deployments = await twoDeployments(hooked(async () => during()));
	const { lab, alpha } = deployments;
	const { query, stored, environment } = queryOf(deployments);
	const owner = create(MetaOwnerSchema, {
		owner: lab.keyOf(alpha, alpha.id(Thing, "gone")),
		ownerUid: "01GONE",
	});
	environment.isComplete = false;
	during = () => {
		environment.isComplete = true;
	};
	expect((await lab.run(query.ask(stored, owner))).verdict).toBeUndefined();
	expect(environment.isComplete).toBe(true);
	expect((await lab.run(query.ask(stored, owner))).verdict).toBe(Verdict.NOT_VALID);
});

it("an owner is not known to be deleted if no deployment is known that may store it", async () => {
	const deployments = await twoDeployments();
	const { lab, alpha } = deployments;
	const { query, stored } = queryOf(deployments);
	const owner = create(MetaOwnerSchema, {
		owner: { ...lab.keyOf(alpha, alpha.id(Thing, "far")), region: "r9" },
		ownerUid: "01FAR",
	});
	expect(await lab.run(query.ask(stored, owner))).toMatchObject({ verdict: undefined });
});
