import { describeWith } from "@plinth/test-support";
import { expect, it } from "vitest";
import { clientOf, startLeaderWithoutModule, until } from "./leader-without-module.fixture.ts";
import { artistOfTenant, artistsOfTenant, hasTenant, tenant, tenantId } from "./tenant.fixture.ts";

describeWith("etcd")("a namespace on two servers, the leader without the module", () => {
	it("is emptied by the other one where that runs, and goes", async () => {
		const { leader, startOther } = await startLeaderWithoutModule();
		const writer = await clientOf(startOther());
		await writer.write({ resource: tenant });
		await writer.write({ resource: artistOfTenant("miles") });
		await leader.delete({ id: tenantId });
		await until(async () => !(await hasTenant(leader)));
		await leader.write({ resource: tenant });
		expect(await artistsOfTenant(writer)).toEqual([]);
	});
});
