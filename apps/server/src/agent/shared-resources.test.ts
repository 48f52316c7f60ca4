import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { create } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import type { ResourceClient } from "@plinth/controller";
import { Album, Artist, demo } from "@plinth/controller/suite";
import { createInProcessTransport } from "@plinth/in-process";
import { type Resource, ResourceService, WatchEventSchema } from "@plinth/proto";
import type { ResourceType } from "@plinth/resource";
import { describe, expect, it, vi } from "vitest";
import { SharedResources } from "./shared-resources.ts";

setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");

/** As a server sends it: each time another object. */
function stored(type: ResourceType, version: string, value = "trumpet"): Resource {
	const resource = demo(Artist, "miles", value);
	resource.id = { ...resource.id!, uid: "A", type: { ...resource.id!.type!, ...type.type } };
	resource.version = version;
	return resource;
}

/** A client whose watches return these resources. */
function sending(...resources: readonly Resource[]): ResourceClient {
	const transport = createInProcessTransport((router) =>
		router.service(ResourceService, {
			async *watchList() {
				for (const resource of resources) {
					yield create(WatchEventSchema, { event: { case: "upsert", value: { resource } } });
				}
			},
		}),
	);
	return createClient(ResourceService, transport);
}

async function watched(shared: SharedResources, client: ResourceClient, type: ResourceType) {
	const received: (Resource | undefined)[] = [];
	for await (const { event } of shared.client(client).watchList({ type: type.type })) {
		if (event.case === "upsert") {
			received.push(event.value.resource);
		}
	}
	return received;
}

describe("resources that controllers share", () => {
	it("are one object for all watches", async () => {
		const shared = new SharedResources([Artist]);
		const [first] = await watched(shared, sending(stored(Artist, "1")), Artist);
		const others = [stored(Artist, "1"), stored(Artist, "2"), stored(Artist, "1")];
		const [second, newer, third] = await watched(shared, sending(...others), Artist);
		expect(first?.version).toBe("1");
		expect(second).toBe(first);
		expect(newer?.version).toBe("2");
		expect(third).toBe(first);
	});

	it("are those that were sent if their content differs, whatever their versions", async () => {
		const shared = new SharedResources([Artist]);
		const [first] = await watched(shared, sending(stored(Artist, "1")), Artist);
		const restored = stored(Artist, "1", "cornet");
		const [second, third] = await watched(
			shared,
			sending(restored, stored(Artist, "1", "cornet")),
			Artist,
		);
		expect(first).not.toBe(second);
		expect(second).toBe(restored);
		expect(third).toBe(restored);
	});

	it("are not looked for in types that one cache has", async () => {
		const shared = new SharedResources([Artist]);
		const one = stored(Album, "1");
		const other = stored(Album, "1");
		expect((await watched(shared, sending(one), Album))[0]).toBe(one);
		expect((await watched(shared, sending(other), Album))[0]).toBe(other);
		expect(shared.size).toBe(0);
	});

	it("are forgotten when no cache has them any more", async () => {
		const shared = new SharedResources([Artist]);
		const versions = Array.from({ length: 100 }, (_, at) => String(at));
		await (async () => {
			const sent = versions.map((version) => stored(Artist, version));
			expect(await watched(shared, sending(...sent), Artist)).toHaveLength(100);
			expect(shared.size).toBe(100);
		})();
		await vi.waitFor(
			() => {
				collectGarbage();
				expect(shared.size).toBe(0);
			},
			{ timeout: 300_000 },
		);
	});
});
