/*
 * The state store against the structure that it could have been, and against that of another checkout: reads, writes,
 * snapshots, lists.
 *
 *   pnpm bench state-store
 *   pnpm bench state-store --against=../../../plinth-before
 */
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import {
	ComparisonTable,
	computedNanosecondsPer,
	interleaveSteps,
	numberOption,
	otherCheckout,
	type Steps,
	unlessQuick,
} from "@plinth/bench";
import { type ID, IDSchema, type Resource } from "@plinth/proto";
import { systemRuntime } from "@plinth/runtime";
import { defaultStorageLimits, StateStore } from "../src/index.ts";
import { orderKey } from "../src/state-store/resource-key.ts";
import { album, artist, artists, perOwner, reported } from "./fixtures.ts";

const size = numberOption("resources", 200_000, 1_000);
const reads = Math.min(size, 200_000);
const writes = size / 2;
const lists = Math.min(size / 20, 5_000);
const perNamespace = 100;
const resources = Array.from({ length: size }, (_, index) => artist((index * 7919) % size));
const inOrder = resources.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
const some = (count: number) => resources[(count * 31) % size];
/** The IDs of some resources as a request has them: other objects, other strings. */
const requested = Array.from({ length: reads }, (_, count) => received(some(count)?.id));
const albums = Array.from({ length: size / 2 }, (_, index) => album((index * 7919) % (size / 2)));
const reports = Array.from({ length: size / 2 }, (_, index) =>
	reported((index * 7919) % (size / 2)),
);
const owners = Array.from({ length: lists * 10 }, (_, count) =>
	received(albums[(count * 31) % albums.length]?.owner),
);

const firstOwners = Array.from({ length: albums.length / perOwner }, (_, index) =>
	received(artist(index).id),
);

function nameOf({ id }: Resource): string {
	return id === undefined ? "" : orderKey(id);
}

function received(id: ID | undefined): ID {
	if (id === undefined) {
		throw new Error("a resource without an ID");
	}
	return fromBinary(IDSchema, toBinary(IDSchema, id));
}

function storeSteps(Store: typeof StateStore): Steps {
	const store = new Store(systemRuntime, defaultStorageLimits);
	return {
		"load, in the order of names": () => {
			const other = new Store(systemRuntime, defaultStorageLimits);
			return computedNanosecondsPer(size, () => {
				for (const resource of inOrder) {
					other.load(resource);
				}
				other.begin(1);
			});
		},
		load: () =>
			computedNanosecondsPer(size, () => {
				for (const resource of resources) {
					store.load(resource);
				}
				store.begin(1);
			}),
		read: () =>
			computedNanosecondsPer(reads, () => {
				for (let count = 0; count < reads; count++) {
					const id = some(count)?.id;
					if (id !== undefined) {
						store.read(id);
					}
				}
			}),
		"read, by the ID of a request": () =>
			computedNanosecondsPer(reads, () => {
				for (const id of requested) {
					store.read(id);
				}
			}),
		"read of what does not exist": () =>
			computedNanosecondsPer(reads, () => {
				let found = 0;
				for (const { type, tenancy, uid } of requested) {
					found += Number(
						store.lookup({ ...(type && { type }), tenancy, name: uid }) !== undefined,
					);
				}
				if (found > 0) {
					throw new Error(`${found} were found`);
				}
			}),
		apply: () =>
			computedNanosecondsPer(writes, () => {
				for (let count = 0; count < writes; count++) {
					const resource = some(count);
					if (resource !== undefined) {
						store.apply(store.revision + 1, [{ op: "put", resource }]);
					}
				}
			}),
		"apply of what has a status": () =>
			computedNanosecondsPer(writes, () => {
				for (let count = 0; count < writes; count++) {
					const resource = reports[(count * 31) % reports.length];
					if (resource !== undefined) {
						store.apply(store.revision + 1, [{ op: "put", resource }]);
					}
				}
			}),
		"apply, each after a snapshot": () =>
			computedNanosecondsPer(writes, () => {
				for (let count = 0; count < writes; count++) {
					const resource = some(count);
					if (resource !== undefined) {
						store.snapshot(artists());
						store.apply(store.revision + 1, [{ op: "put", resource }]);
					}
				}
			}),
		"list of 100 in a namespace": () =>
			computedNanosecondsPer(lists, () => {
				for (let count = 0; count < lists; count++) {
					const namespace = `team-${count % (size / perNamespace)}`;
					const found = [...store.snapshot(artists(namespace)).resources()];
					if (found.length !== perNamespace) {
						throw new Error(`expected ${perNamespace}, found ${found.length}`);
					}
				}
			}),
		"page of 100, whole state": () =>
			computedNanosecondsPer(lists, () => {
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
			computedNanosecondsPer(size, () => [...store.snapshot(artists()).resources()]),
		"load of what has an owner": () =>
			computedNanosecondsPer(albums.length, () => {
				for (const resource of albums) {
					store.load(resource);
				}
			}),
		"first list by owner after the load": () =>
			computedNanosecondsPer(firstOwners.length, () => {
				for (const owner of firstOwners) {
					store.listByOwner(owner);
				}
			}),
		"list of 10 by owner": () =>
			computedNanosecondsPer(owners.length, () => {
				for (const owner of owners) {
					const { length } = store.listByOwner(owner);
					if (length !== perOwner) {
						throw new Error(`expected ${perOwner}, found ${length}`);
					}
				}
			}),
		"apply of what has an owner": () =>
			computedNanosecondsPer(writes, () => {
				for (let count = 0; count < writes; count++) {
					const resource = albums[(count * 31) % albums.length];
					if (resource !== undefined) {
						store.apply(store.revision + 1, [{ op: "put", resource }]);
					}
				}
			}),
		"delete, each a commit": () =>
			computedNanosecondsPer(albums.length, () => {
				for (const resource of albums) {
					store.apply(store.revision + 1, [{ op: "delete", resource }]);
				}
			}),
	};
}

/** A map that is copied for each snapshot, and sorted for each list. */
function mapSteps(): Steps {
	const map = new Map<string, unknown>();
	const copies = 20;
	return {
		load: () =>
			computedNanosecondsPer(size, () => {
				for (const resource of resources) {
					map.set(orderKey(resource.id ?? { name: "" }), resource);
				}
			}),
		read: () =>
			computedNanosecondsPer(reads, () => {
				for (let count = 0; count < reads; count++) {
					map.get(orderKey(some(count)?.id ?? { name: "" }));
				}
			}),
		"apply, each after a snapshot": () =>
			computedNanosecondsPer(copies, () => {
				for (let count = 0; count < copies; count++) {
					new Map(map);
				}
			}),
		"list of 100 in a namespace": () =>
			computedNanosecondsPer(3, () => {
				for (let count = 0; count < 3; count++) {
					const prefix = `default\0team-${count}\0`;
					[...map].filter(([key]) => key.startsWith(prefix)).sort();
				}
			}),
	};
}

const contenders: Record<string, () => Steps> = { "state store": () => storeSteps(StateStore) };
const other = otherCheckout("packages/storage/src/index.ts");
if (other !== undefined) {
	const before: { readonly StateStore: typeof StateStore } = await import(other);
	contenders.other = () => storeSteps(before.StateStore);
}
contenders.Map = mapSteps;
const table = new ComparisonTable(`The state of ${size.toLocaleString("en-US")} resources`, "ns");
const figures = await interleaveSteps(contenders, {
	rounds: unlessQuick(6, 1),
	warmUpRounds: 1,
});
for (const [step, ofStep] of Object.entries(figures)) {
	table.add(step, ofStep);
}
table.print();
