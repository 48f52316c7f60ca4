import type { Resource } from "@plinth/proto";
import { expect, it } from "vitest";
import { defineController } from "../define/controller.ts";
import { Artist, demo } from "../demo-types.fixture.ts";
import { TestBench } from "../running-manager.fixture.ts";
import { identity } from "../suite/identity.fixture.ts";
import { declareSuite, runOn } from "../suite/scenario.fixture.ts";

declareSuite(identity, (run) => runOn(new TestBench(), run));

it("caches of a server have the objects of its service", async () => {
	await using bench = new TestBench();
	const cached: Resource[] = [];
	const controller = defineController({
		name: "artist",
		manages: Artist,
		when: (change) => {
			if (change.kind === "created") {
				cached.push(change.current);
			}
			return true;
		},
		async reconcile() {},
	});
	await bench.start([controller]);
	const artist = bench.service.put(demo(Artist, "miles"));
	await bench.settle();
	expect(cached).toHaveLength(1);
	expect(cached[0]).toBe(artist);
});
