import { referenceIndex } from "@plinth/cache";
import { describe, expect, it } from "vitest";
import type { ControllerOptions } from "../define/controller.ts";
import { defineController } from "../define/controller.ts";
import { watch, watchEvents } from "../define/watch.ts";
import { Album, Artist, type DemoType, demoType, Label } from "../demo-types.fixture.ts";
import { mapOwner } from "../mappers/owner.ts";
import { TestBench } from "../running-manager.fixture.ts";
import { createControllerManager } from "./manager.ts";

type Options = ControllerOptions<DemoType["schema"], Record<never, never>>;

function register(more: Partial<Options>): void {
	const { service } = new TestBench();
	const manager = createControllerManager({ client: service.client });
	manager.register(
		defineController({ name: "artist", manages: Artist, reconcile: async () => {}, ...more }),
	);
}

const byOwner = referenceIndex("owner", Album, ({ resource }) => resource.owner);
const watchAlbums = watch(Album, { map: mapOwner });
const watchCopies = watch(Artist, { regions: "*", map: () => [] });
const nothing = watchEvents("nothing", { source: async function* () {}, map: () => [] });

describe("registration", () => {
	const refused: [string, Partial<Options>, string | RegExp][] = [
		["no name", { name: "" }, "controller without a name: it needs a name"],
		[
			"a type watched twice",
			{ watches: [watchAlbums, watch(Album, { map: () => [] })] },
			"controller artist: type demo.v1.Album is watched twice",
		],
		[
			"the managed type watched",
			{ watches: [watch(Artist, { map: () => [] })] },
			"controller artist: type demo.v1.Artist is managed and can't be watched as well, but for copies: its watch needs `regions`",
		],
		[
			"copies of the managed type watched twice",
			{ watches: [watchCopies, watchCopies] },
			"controller artist: type demo.v1.Artist is watched twice",
		],
		[
			"a region that is none",
			{ watches: [watch(Album, { regions: ["US west"], map: mapOwner })] },
			/^controller artist: watch of demo.v1.Album: region "US west": /,
		],
		[
			"all regions in a list",
			{ watches: [watch(Album, { regions: ["us", "*"], map: mapOwner })] },
			'controller artist: watch of demo.v1.Album: region "*": in a list, say regions: "*" for all',
		],
		[
			"two group versions of one kind",
			{ watches: [watchAlbums, watch(demoType("Album", "v2"), { map: mapOwner })] },
			"controller artist: types demo.v1.Album and demo.v2.Album are two group versions of one kind",
		],
		[
			"a duplicate index",
			{ watches: [watchAlbums], indexes: [byOwner, byOwner] },
			/^controller artist: .*"owner"/,
		],
		[
			"an index of a type that is not cached",
			{ indexes: [byOwner] },
			/^controller artist: .*Album/,
		],
		[
			"two custom watches of one name",
			{ watches: [nothing, nothing] },
			"controller artist: there are two custom watches named nothing",
		],
		[
			"no concurrency",
			{ concurrency: 0 },
			"controller artist: concurrency must be a whole number of 1 or more, got 0",
		],
	];
	it.each(refused)("refuses %s", (_, more, message) => {
		expect(() => register(more)).toThrow(message);
	});

	it("refuses a controller without a reconciler", () => {
		const { reconcile, ...rest } = defineController({
			name: "artist",
			manages: Artist,
			reconcile: async () => {},
		});
		expect(reconcile).toBeDefined();
		const manager = createControllerManager({ client: new TestBench().service.client });
		// @ts-expect-error what a JavaScript caller can do
		expect(() => manager.register(rest)).toThrow("controller artist: it has no reconciler");
	});

	it("refuses a second controller of one name, and any after the start", async () => {
		await using bench = new TestBench();
		const one = defineController({ name: "one", manages: Artist, reconcile: async () => {} });
		const manager = createControllerManager({ client: bench.service.client });
		manager.register(one);
		expect(() => manager.register(one)).toThrow(
			"controller one: a controller with this name is already registered",
		);
		const started = await bench.start([one]);
		const two = defineController({ name: "two", manages: Label, reconcile: async () => {} });
		expect(() => started.register(two)).toThrow("controller two can't be registered after");
	});
});
