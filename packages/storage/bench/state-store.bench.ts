// The state store against the structures that it could have been: reads, writes, snapshots, lists.
import { systemRuntime } from "@plinth/runtime";
import { defaultLimits, StateStore } from "../src/index.ts";
import { orderKey } from "../src/state-store/resource-key.ts";
import { artist, artists, timed } from "./fixtures.ts";

const size = Number(process.argv[2] ?? 200_000);
const resources = Array.from({ length: size }, (_, index) => artist((index * 7919) % size));

const rows: Record<string, Record<string, string>> = {};
function report(what: string, store: string, operations: number, tookMs: number): void {
	rows[what] ??= {};
	rows[what][store] = `${((tookMs * 1e6) / operations).toFixed(0)} ns`;
}

const store = new StateStore(systemRuntime, defaultLimits);
report(
	"load",
	"state store",
	size,
	await timed(() => {
		for (const resource of resources) {
			store.load(resource);
		}
		store.begin(1);
	}),
);
const map = new Map<string, unknown>();
report(
	"load",
	"Map, sorted for lists",
	size,
	await timed(() => {
		for (const resource of resources) {
			map.set(orderKey(resource.id ?? { name: "" }), resource);
		}
	}),
);

const reads = 200_000;
report(
	"read",
	"state store",
	reads,
	await timed(() => {
		for (let count = 0; count < reads; count++) {
			const id = resources[(count * 31) % size]?.id;
			if (id !== undefined) {
				store.read(id);
			}
		}
	}),
);
report(
	"read",
	"Map, sorted for lists",
	reads,
	await timed(() => {
		for (let count = 0; count < reads; count++) {
			map.get(orderKey(resources[(count * 31) % size]?.id ?? { name: "" }));
		}
	}),
);

const writes = 100_000;
report(
	"apply",
	"state store",
	writes,
	await timed(() => {
		for (let count = 0; count < writes; count++) {
			const resource = resources[(count * 31) % size];
			if (resource !== undefined) {
				store.apply(store.revision + 1, [{ op: "put", resource }]);
			}
		}
	}),
);
report(
	"apply, each after a snapshot",
	"state store",
	writes,
	await timed(() => {
		for (let count = 0; count < writes; count++) {
			const resource = resources[(count * 31) % size];
			if (resource !== undefined) {
				store.snapshot(artists());
				store.apply(store.revision + 1, [{ op: "put", resource }]);
			}
		}
	}),
);
const copies = 20;
report(
	"apply, each after a snapshot",
	"Map, sorted for lists",
	copies,
	await timed(() => {
		for (let count = 0; count < copies; count++) {
			new Map(map);
		}
	}),
);

const lists = 5000;
report(
	"list of 100 in a namespace",
	"state store",
	lists,
	await timed(() => {
		for (let count = 0; count < lists; count++) {
			const found = [...store.snapshot(artists(`team-${count % (size / 100)}`)).resources()];
			if (found.length !== 100) {
				throw new Error(`expected 100, found ${found.length}`);
			}
		}
	}),
);
report(
	"list of 100 in a namespace",
	"Map, sorted for lists",
	3,
	await timed(() => {
		for (let count = 0; count < 3; count++) {
			const prefix = `default\0team-${count}\0`;
			[...map].filter(([key]) => key.startsWith(prefix)).sort();
		}
	}),
);
report(
	"page of 100, whole state",
	"state store",
	lists,
	await timed(() => {
		const snapshot = store.snapshot(artists());
		for (let count = 0; count < lists; count++) {
			const id = resources[(count * 31) % size]?.id;
			let taken = 0;
			for (const _ of snapshot.resources(id)) {
				taken += 1;
				if (taken === 100) {
					break;
				}
			}
		}
	}),
);
report(
	"list of everything, a resource",
	"state store",
	size,
	await timed(() => [...store.snapshot(artists()).resources()]),
);
console.log(`${size} resources`);
console.table(rows);
