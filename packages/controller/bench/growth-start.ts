/**
 * What the start of a controller costs as the watched resources become more: albums that are mapped to artists, 100
 * to each, in an order that spreads the albums of an artist. Each reconcile reads the albums of its artist.
 */

import { format, numberOption, otherCheckout, printTable, type Row } from "@plinth/bench";
import { ownerIndex } from "@plinth/cache";
import { idOf } from "@plinth/resource";
import { Album, Artist, demo } from "../src/demo-types.fixture.ts";
import { FakeService } from "../src/fake-service.fixture.ts";

const path = "packages/controller/src/index.ts";
const {
	createControllerManager,
	defineController,
	mapOwner,
	watch,
}: typeof import("../src/index.ts") = await import(otherCheckout(path) ?? "../src/index.ts");

const perArtist = 100;
const albumsByArtist = ownerIndex(Album);

/** Processor time and reconciles of the start of a controller with so many albums. */
async function start(albums: number): Promise<{ microseconds: number; reconciles: number }> {
	const service = new FakeService();
	const artists = albums / perArtist;
	for (let at = 0; at < artists; at++) {
		service.put(demo(Artist, `artist-${at}`));
	}
	for (let at = 0; at < albums; at++) {
		const owner = service.stored(idOf(Artist, `artist-${at % artists}`))?.id;
		service.put(demo(Album, `album-${at}`, "", owner && { owner }));
	}
	const reconciled = new Set<string>();
	let reconciles = 0;
	const manager = createControllerManager({ client: service.client });
	manager.register(
		defineController({
			name: "artist",
			manages: Artist,
			indexes: [albumsByArtist],
			watches: [watch(Album, { map: mapOwner })],
			resyncMs: "never",
			async reconcile({ cache }, { id }) {
				reconciles += 1;
				if (cache.list(albumsByArtist, id).length === perArtist) {
					reconciled.add(id.name);
				}
			},
		}),
	);
	const stop = new AbortController();
	const isOver = () => reconciled.size === artists && isQuiet(manager);
	const before = process.cpuUsage();
	const running = manager.run(stop.signal);
	for (let quiet = 0; quiet < 100; quiet = isOver() ? quiet + 1 : 0) {
		await new Promise((resolve) => setImmediate(resolve));
	}
	const { user, system } = process.cpuUsage(before);
	stop.abort();
	await running;
	return { microseconds: user + system, reconciles };
}

function isQuiet(manager: ReturnType<typeof createControllerManager>): boolean {
	return manager.state().controllers.every(({ run }) => {
		const queues = run && [run.requests, ...Object.values(run.mappings)];
		return queues?.every(
			({ live, background, active, held }) => live + background + active + held === 0,
		);
	});
}

const smallest = numberOption("albums", 1_000, 100);
const rows: Row[] = [];
let first: number | undefined;
// Compiles what the others use.
await start(smallest);
for (const albums of [smallest, 10 * smallest, 100 * smallest]) {
	const { microseconds, reconciles } = await start(albums);
	const each = microseconds / albums;
	rows.push({
		albums: albums.toLocaleString("en-US"),
		"reconciles ÷ artists": format(reconciles / (albums / perArtist)),
		"µs per album": format(each),
		"÷ the smallest": format(each / (first ?? each)),
	});
	first ??= each;
}
printTable("The start of a controller, in processor time", rows);
