import { create } from "@bufbuild/protobuf";
import { OriginSchema } from "@plinth/proto";
import { TypePositionSchema } from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import { ImportRecordSchema } from "@plinth/proto/gen/plinth/peering/v1/peering_record_pb.js";
import {
	idOf,
	isMarkedForDeletion,
	Namespace,
	newUlid,
	resourceOf,
	typeOf,
} from "@plinth/resource";
import { LocalLeases, systemRuntime } from "@plinth/runtime";
import { createMemoryBackend, decorateBackend, StorageUnavailable } from "@plinth/storage";
import { describe, expect, it } from "vitest";
import { PeeringRecords } from "../records/peering-records.ts";
import { Good } from "../simulation/goods.fixture.ts";
import { ImportStore, TooManyCopies } from "./import-store.ts";

const runtime = systemRuntime;

/** More copies than one commit removes. */
const names = Array.from({ length: 60 }, (_, i) => `good-${i}`);

function copyOf(name: string) {
	const copy = resourceOf(Good, { id: idOf(Good, name, { partition: "west" }) });
	copy.generation = newUlid(runtime);
	copy.origin = create(OriginSchema, {
		...{ cluster: newUlid(runtime), uid: newUlid(runtime), incarnation: newUlid(runtime) },
		version: "7",
	});
	return copy;
}

/** An import with copies up to a position, whose storage fails after it has removed some of them. */
async function interrupted() {
	const leases = new LocalLeases();
	const stored = createMemoryBackend({ runtime, leases });
	let removals = 0;
	const backend = decorateBackend(stored, {
		commit: async (mutations, options) => {
			removals += mutations.some(({ op }) => op === "delete") ? 1 : 0;
			if (removals === 2) {
				throw new StorageUnavailable("the storage does not respond");
			}
			return stored.commit(mutations, options);
		},
	});
	const { fence } = await leases.acquire("imports", new AbortController().signal);
	const records = new PeeringRecords(backend, runtime);
	const importUid = newUlid(runtime);
	const store = await ImportStore.open(
		{ backend, records, runtime, fence, maxCopies: 1_000 },
		create(ImportRecordSchema, { importUid, import: "goods", partition: "west" }),
	);
	await store.createPartition(newUlid(runtime));
	const positions = [create(TypePositionSchema, { type: typeOf(Good.type), version: "9" })];
	for (let at = 0; at < names.length; at += 30) {
		await store.commit(names.slice(at, at + 30).map(copyOf), { positions });
	}
	return { store };
}

it("namespaces whose copies are gone do not count as copies", async () => {
	const leases = new LocalLeases();
	const backend = createMemoryBackend({ runtime, leases });
	const { fence } = await leases.acquire("imports", new AbortController().signal);
	const store = await ImportStore.open(
		{ backend, records: new PeeringRecords(backend, runtime), runtime, fence, maxCopies: 4 },
		create(ImportRecordSchema, { importUid: newUlid(runtime), import: "goods", partition: "west" }),
	);
	await store.createPartition(newUlid(runtime));
	const copyIn = (namespace: string) => {
		const copy = copyOf("good");
		return { ...copy, id: idOf(Good, "good", { partition: "west", namespace }) };
	};
	for (const namespace of ["a", "b", "c"]) {
		await store.commit([copyIn(namespace)], {});
		const stored = await store.find(copyIn(namespace).id);
		await store.remove(stored === undefined ? [] : [stored]);
	}
	await store.commit([copyIn("d"), copyIn("a")], {});
	const namespaces = await backend.list({
		...{ type: Namespace.type, namePrefix: "" },
		tenancy: { partition: "west", namespace: "" },
	});
	expect(namespaces.resources.map(({ id }) => id?.name)).toEqual(["a", "d"]);
	await expect(store.commit([copyIn("e")], {})).rejects.toThrow(TooManyCopies);
});

it("a namespace without copies stays while it is referenced", async () => {
	const leases = new LocalLeases();
	const backend = createMemoryBackend({ runtime, leases });
	const { fence } = await leases.acquire("imports", new AbortController().signal);
	// A record of the references to the namespace: any resource that exists.
	const shadow = resourceOf(Good, { id: idOf(Good, "shadow", {}, newUlid(runtime)) });
	await backend.commit([{ op: "put", resource: shadow, expectedVersion: "" }]);
	const store = await ImportStore.open(
		{
			...{ backend, records: new PeeringRecords(backend, runtime), runtime, fence, maxCopies: 2 },
			references: {
				store: { commit: () => Promise.reject(new Error("nothing is to be deleted")) },
				unreferenced: ({ name }) => ({
					...{ op: "assert", expectedVersion: "" },
					id: idOf(Good, name === "a" ? "shadow" : "none"),
				}),
			},
		},
		create(ImportRecordSchema, { importUid: newUlid(runtime), import: "goods", partition: "west" }),
	);
	await store.createPartition(newUlid(runtime));
	const copyIn = (namespace: string) => {
		const copy = copyOf("good");
		return { ...copy, id: idOf(Good, "good", { partition: "west", namespace }) };
	};
	await store.commit([copyIn("a")], {});
	const stored = await store.find(copyIn("a").id);
	await store.remove(stored === undefined ? [] : [stored]);
	await expect(store.commit([copyIn("b")], {})).rejects.toThrow(TooManyCopies);
	await store.commit([copyIn("a")], {});
	const namespace = await backend.read(idOf(Namespace, "a", { partition: "west" }));
	expect(isMarkedForDeletion(namespace)).toBe(false);
});

describe("a removal of copies that is interrupted", () => {
	it.each([
		["of a type", (store: ImportStore) => store.removeFamilies(new Set())],
		["of all", (store: ImportStore) => store.removeAll({})],
	])("%s leaves no position that covers what is gone", async (_, remove) => {
		const { store } = await interrupted();
		await expect(remove(store)).rejects.toThrow(StorageUnavailable);
		await store.reload();
		expect((await store.counts()).get(Good.key)).toBe(names.length - 45);
		expect(store.record.positions).toEqual([]);
	});

	it("keeps the positions of types that stay", async () => {
		const { store } = await interrupted();
		await store.removeFamilies(new Set([Good.family]));
		expect(store.record.positions).toMatchObject([{ version: "9" }]);
		expect((await store.counts()).get(Good.key)).toBe(names.length);
	});
});
