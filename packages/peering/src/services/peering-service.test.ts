import { Code, ConnectError } from "@connectrpc/connect";
import { decorateBackend } from "@plinth/storage";
import { describe, expect, it } from "vitest";
import { TestNetwork } from "../two-clusters.fixture.ts";

describe("a list of peerings", () => {
	it("reads nothing for a caller who is not known, also if there is no Peering", async () => {
		let lists = 0;
		const west = await new TestNetwork().cluster("west", {
			beforeRead() {
				throw new ConnectError("who are you", Code.Unauthenticated);
			},
			decorate: (backend) =>
				decorateBackend(backend, {
					list(query, options) {
						lists += 1;
						return backend.list(query, options);
					},
				}),
		});
		await expect(west.api.listPeerings({})).rejects.toMatchObject({ code: Code.Unauthenticated });
		expect(lists).toBe(0);
	});

	it("has what the caller may read, and fails if that can't be told", async () => {
		let code = Code.PermissionDenied;
		const west = await new TestNetwork().cluster("west", {
			beforeRead(name) {
				if (name === "north") {
					throw new ConnectError("no", code);
				}
			},
		});
		await west.api.createToken({ name: "east" });
		await west.api.createToken({ name: "north" });
		expect((await west.api.listPeerings({})).peerings).toMatchObject([{ name: "east" }]);
		code = Code.Unavailable;
		await expect(west.api.listPeerings({})).rejects.toMatchObject({ code });
	});
});
