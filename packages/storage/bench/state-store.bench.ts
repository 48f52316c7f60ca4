// The state store against the structure that it could have been: reads, writes, snapshots, lists.
import {
	ComparisonTable,
	interleaveSteps,
	nanosecondsPer,
	numberOption,
	type Steps,
	unlessQuick,
} from "@plinth/bench";
import { systemRuntime } from "@plinth/runtime";
import { defaultStorageLimits, StateStore } from "../src/index.ts";
import { orderKey } from "../src/state-store/resource-key.ts";
import { artist, artists } from "./fixtures.ts";

const size = numberOption("resources", 200_000, 1_000);
const reads = unlessQuick(200_000, 1_000);
const writes = unlessQuick(100_000, 500);
const lists = unlessQuick(5_000, 50);
const perNamespace = 100;
const resources = Array.from({ length: size }, (_, index) => artist((index * 7919) % size));
const some = (count: number) => resources[(count * 31) % size];

function storeSteps(): Steps {
	const store = new StateStore(systemRuntime, defaultStorageLimits);
	return {
		load: () =>
			nanosecondsPer(size, () => {
				for (const resource of resources) {
					store.load(resource);
				}
				store.begin(1);
			}),
		read: () =>
			nanosecondsPer(reads, () => {
				for (let count = 0; count < reads; count++) {
					const id = some(count)?.id;
					if (id !== undefined) {
						store.read(id);
					}
				}
			}),
		apply: () =>
			nanosecondsPer(writes, () => {
				for (let count = 0; count < writes; count++) {
					const resource = some(count);
					if (resource !== undefined) {
						store.apply(store.revision + 1, [{ op: "put", resource }]);
					}
				}
			}),
		"apply, each after a snapshot": () =>
			nanosecondsPer(writes, () => {
				for (let count = 0; count < writes; count++) {
					const resource = some(count);
					if (resource !== undefined) {
						store.snapshot(artists());
						store.apply(store.revision + 1, [{ op: "put", resource }]);
					}
				}
			}),
		"list of 100 in a namespace": () =>
			nanosecondsPer(lists, () => {
				for (let count = 0; count < lists; count++) {
					const namespace = `team-${count % (size / perNamespace)}`;
					const found = [...store.snapshot(artists(namespace)).resources()];
					if (found.length !== perNamespace) {
						throw new Error(`expected ${perNamespace}, found ${found.length}`);
					}
				}
			}),
		"page of 100, whole state": () =>
			nanosecondsPer(lists, () => {
				const snapshot = store.snapshot(artists());
				for (let count = 0; count < lists; count++) {
					let taken = 0;
					for (const _ of snapshot.resources(some(count)?.id)) {
						taken += 1;
						if (taken === perNamespace) {
							break;
						}
					}
				}
			}),
		"list of everything, a resource": () =>
			nanosecondsPer(size, () => [...store.snapshot(artists()).resources()]),
	};
}

/** A map that is copied for each snapshot, and sorted for each list. */
function mapSteps(): Steps {
	const map = new Map<string, unknown>();
	const copies = 20;
	return {
		load: () =>
			nanosecondsPer(size, () => {
				for (const resource of resources) {
					map.set(orderKey(resource.id ?? { name: "" }), resource);
				}
			}),
		read: () =>
			nanosecondsPer(reads, () => {
				for (let count = 0; count < reads; count++) {
					map.get(orderKey(some(count)?.id ?? { name: "" }));
				}
			}),
		"apply, each after a snapshot": () =>
			nanosecondsPer(copies, () => {
				for (let count = 0; count < copies; count++) {
					new Map(map);
				}
			}),
		"list of 100 in a namespace": () =>
			nanosecondsPer(3, () => {
				for (let count = 0; count < 3; count++) {
					const prefix = `default\0team-${count}\0`;
					[...map].filter(([key]) => key.startsWith(prefix)).sort();
				}
			}),
	};
}

const table = new ComparisonTable(`The state of ${size.toLocaleString("en-US")} resources`, "ns");
const figures = await interleaveSteps(
	{ "state store": storeSteps, Map: mapSteps },
	{ rounds: unlessQuick(4, 1), warmUpRounds: 1 },
);
for (const [step, ofStep] of Object.entries(figures)) {
	table.add(step, ofStep);
}
table.print();
