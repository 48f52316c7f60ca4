import { create } from "@bufbuild/protobuf";
import { PeeringSchema } from "@plinth/proto/gen/plinth/peering/v1/peering_pb.js";
import { idOf, resourceOf } from "@plinth/resource";
import { decorateBackend } from "@plinth/storage";
import { describe, expect, it, vi } from "vitest";
import { good } from "../simulation/goods.fixture.ts";
import { type TestCluster, TestNetwork } from "../two-clusters.fixture.ts";
import { Peering } from "../types.ts";
import { peerHeader } from "./peer-header.ts";

async function dial(cluster: TestCluster, address: string) {
	const data = create(PeeringSchema, { address });
	await cluster.client.write({
		resource: resourceOf(Peering, { id: idOf(Peering, "west"), data }),
	});
}

describe("the credential of a peering", () => {
	it("is not sent to another address than that for which it was established", async () => {
		const network = new TestNetwork();
		const west = await network.cluster("west");
		const east = await network.cluster("east");
		const received: (string | null)[] = [];
		network.serve("other", {
			getExport(_, { requestHeader }) {
				received.push(requestHeader.get(peerHeader));
				return {};
			},
		});
		await network.peer(east, west);
		await west.export("goods", "east");
		await west.client.write({ resource: good("one", "") });
		await east.import({ peer: "west", export: "goods", partition: "copies" });
		east.run();
		await vi.waitFor(async () => expect(await east.goods("copies")).toEqual(["one"]), 300_000);

		await dial(east, "http://other");
		await vi.waitFor(
			async () =>
				expect(await east.report("copies")).toMatchObject({
					state: "AddressChanged",
					message: expect.stringContaining("with a new token of the other cluster"),
				}),
			300_000,
		);
		expect(received).toEqual([]);
		expect(await east.goods("copies")).toEqual(["one"]);

		await dial(east, "http://west");
		await west.client.write({ resource: good("two", "") });
		await vi.waitFor(
			async () => expect(await east.goods("copies")).toEqual(["one", "two"]),
			300_000,
		);
	});

	it("is not forgotten by a comparison that had begun before its peering was established", async () => {
		const network = new TestNetwork();
		const west = await network.cluster("west");
		const north = await network.cluster("north");
		const reached = Promise.withResolvers<void>();
		const continued = Promise.withResolvers<void>();
		let isHeld = false;
		const east = await network.cluster("east", {
			decorate: (backend) =>
				decorateBackend(backend, {
					async list(query, options) {
						const listed = await backend.list(query, options);
						// Peers that were removed are looked for after the Peerings were listed, and before credentials are forgotten.
						if (query.namePrefix === "exporting-" && isHeld) {
							isHeld = false;
							reached.resolve();
							await continued.promise;
						}
						return listed;
					},
				}),
		});
		await network.peer(east, west);
		isHeld = true;
		east.run();
		await reached.promise;
		await network.peer(east, north);
		continued.resolve();
		await east.import({ peer: "north", export: "none", partition: "copies" });
		await vi.waitFor(
			async () => expect(await east.report("copies")).toMatchObject({ state: "ExportMissing" }),
			300_000,
		);
		const { peerings } = await east.api.listPeerings({});
		expect(peerings).toMatchObject([{ isEstablished: true }, { isEstablished: true }]);
	});
});
