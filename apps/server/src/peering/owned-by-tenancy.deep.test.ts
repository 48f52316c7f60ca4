import { create } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { Import } from "@plinth/peering";
import { OwnerReferenceSchema } from "@plinth/proto";
import { ReferenceService } from "@plinth/proto/gen/plinth/schema/v1/reference_service_pb.js";
import { idOf, Namespace, Partition, resourceOf } from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { artist, Fan, fansModule } from "../../testdata/music.ts";
import { outcome } from "../callers.fixture.ts";
import { eventually, importing } from "./two-clusters.fixture.ts";

// An owner is only lost after a grace period of 30 s.
describe("what is owned by the tenancy of an import", { timeout: 900_000 }, () => {
	it.each([
		["partition", idOf(Partition, "west")],
		["namespace", idOf(Namespace, "default", { partition: "west" })],
	])("is deleted with the %s", async (_, owner) => {
		const { west, east } = await importing({}, { modules: [fansModule()] });
		await west.write(artist("miles"));
		await eventually(() => east.artist("miles", "west"));
		const { client } = east.server;
		const { resource: stored } = await client.read({ id: owner });
		const { type, tenancy, name } = owner;
		const { uid = "" } = stored?.id ?? {};
		const fan = resourceOf(Fan, { id: idOf(Fan, "anna") });
		fan.ownerReferences = [
			create(OwnerReferenceSchema, {
				...(type && { type }),
				...(tenancy && { tenancy }),
				name,
				uid,
			}),
		];
		await east.write(fan);
		const references = createClient(ReferenceService, east.transport());
		await eventually(async () =>
			expect((await references.listReferences({ id: owner })).incoming).toHaveLength(1),
		);
		await client.delete({ id: idOf(Import, "artists") });
		await eventually(async () =>
			expect(await outcome(client.read({ id: idOf(Partition, "west") }))).toBe(
				"NotFound: resource not found",
			),
		);
		await eventually(async () =>
			expect(await outcome(client.read({ id: idOf(Fan, "anna") }))).toBe(
				"NotFound: resource not found",
			),
		);
	});
});
