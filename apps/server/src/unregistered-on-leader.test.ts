import { describeWith } from "@plinth/test-support";
import { expect, it } from "vitest";
import { clientOf, startLeaderWithoutModule, until } from "./leader-without-module.fixture.ts";
import {
	artistOfTenant,
	artistsOfTenant,
	leftInTenant,
	tenant,
	tenantId,
} from "./tenant.fixture.ts";

describeWith("etcd")("a namespace on two servers, the leader without the module", () => {
	it("stays while no server registers a type in it, and is emptied by the one that does", async () => {
		const { leader, startOther } = await startLeaderWithoutModule();
		const other = startOther();
		const writer = await clientOf(other);
		await writer.write({ resource: tenant });
		await writer.write({ resource: artistOfTenant("miles") });
		other.kill("SIGTERM");
		await other.ended;

		await leader.delete({ id: tenantId });
		await until(async () => (await leftInTenant(leader)) !== "");
		expect(await leftInTenant(leader)).toMatch(
			/^UnregisteredTypes: still there: 1 music\.v1\.Artist\. No module of this server registers music\.v1\.Artist\. /,
		);
		await expect(leader.write({ resource: tenant })).rejects.toThrow(
			"only finalizers can be removed",
		);
		await expect(leader.write({ resource: tenant, createOnly: true })).rejects.toThrow(
			"tenant already exists",
		);

		const again = await clientOf(startOther());
		await until(async () => (await artistsOfTenant(again)).length === 0);
	});
});
