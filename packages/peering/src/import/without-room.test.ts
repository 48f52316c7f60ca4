import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { OriginSchema } from "@plinth/proto";
import { StreamResponseSchema } from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import { ImportRecordSchema } from "@plinth/proto/gen/plinth/peering/v1/peering_record_pb.js";
import { decodeShared, newUlid, typeOf } from "@plinth/resource";
import { LocalLeases, type Random, systemRuntime } from "@plinth/runtime";
import { seededRandom } from "@plinth/runtime/testing";
import { createMemoryBackend, decorateBackend, Exhausted } from "@plinth/storage";
import { expect, it } from "vitest";
import { PeeringRecords } from "../records/peering-records.ts";
import { Good, good } from "../simulation/goods.fixture.ts";
import { MessageApplier } from "./apply-messages.ts";
import { ImportStore, TooManyCopies } from "./import-store.ts";
import type { RegionPlace } from "./incoming-copy.ts";
import { LeftOutResources } from "./left-out.ts";

type Message = NonNullable<MessageInitShape<typeof StreamResponseSchema>["message"]>;

const type = typeOf(Good.type);
const uid = newUlid(systemRuntime);
const place: RegionPlace = {
	...{ kind: "region", region: "west", partition: "default" },
	...{ deployment: uid, cluster: uid, incarnation: uid },
};
/** Goods with this note are left out. */
const refusedNote = "refused";

interface Original {
	readonly name: string;
	readonly note: string;
	readonly uid: string;
	readonly version: number;
}

/** Goods of another region that change at random, and the messages of its streams. */
class Source {
	readonly #random: Random;
	readonly goods = new Map<string, Original>();
	readonly #changes: { readonly version: number; readonly message: Message }[] = [];
	#version = 1;

	constructor(random: Random) {
		this.#random = random;
	}

	change(): void {
		this.#version += 1;
		const name = `good-${integer(this.#random, 12)}`;
		const stored = this.goods.get(name);
		if (stored !== undefined && this.#random.next() < 0.45) {
			this.goods.delete(name);
			const value = { type, namespace: "default", name, version: String(this.#version) };
			this.#changes.push({ version: this.#version, message: { case: "delete", value } });
			return;
		}
		const note = this.#random.next() < 0.1 ? refusedNote : `${this.#version}`;
		const original = { name, note, uid: stored?.uid ?? newUlid(systemRuntime) };
		this.goods.set(name, { ...original, version: this.#version });
		const message = upsert({ ...original, version: this.#version }, String(this.#version));
		this.#changes.push({ version: this.#version, message });
	}

	/** What follows a position: the changes, or a snapshot and then more changes. */
	stream(position: string, moreChanges: number): readonly Message[] {
		const since = Number(position);
		const begun = this.#version;
		const snapshot: Message[] = [
			{ case: "snapshotStart", value: { type, version: position } },
			...[...this.goods.values()].map((each): Message => {
				const value = { type, namespace: "default", name: each.name };
				return position !== "" && each.version <= since
					? { case: "unchanged", value }
					: upsert(each, "");
			}),
			{ case: "endOfSnapshot", value: { type, version: String(begun) } },
		];
		for (let at = 0; at < moreChanges; at += 1) {
			this.change();
		}
		const isCompacted = position === "" || this.#random.next() < 0.4;
		const after = isCompacted ? begun : since;
		const changes = this.#changes.filter(({ version }) => version > after);
		return [
			...(isCompacted ? snapshot : []),
			...changes.map(({ message }) => message),
			{ case: "position", value: { type, version: String(this.#version) } },
		];
	}
}

function upsert({ name, note, uid: original, version }: Original, position: string): Message {
	const origin = { region: "west", partition: "default", cluster: uid, incarnation: uid };
	const resource = {
		...good(name, note),
		generation: uid,
		origin: create(OriginSchema, { ...origin, uid: original, version: String(version) }),
	};
	return { case: "upsert", value: { resource, version: position } };
}

/** An import of goods into a storage that may be full. */
async function importing(random: Random) {
	const runtime = systemRuntime;
	const leases = new LocalLeases();
	const stored = createMemoryBackend({ runtime, leases });
	const room = { refusals: 0, maxCopies: 1_000 };
	const backend = decorateBackend(stored, {
		async commit(mutations, options) {
			if (mutations.some(({ op }) => op === "put") && random.next() < room.refusals) {
				throw new Exhausted("the storage is full");
			}
			return stored.commit(mutations, options);
		},
	});
	const { fence } = await leases.acquire("regional-copies", new AbortController().signal);
	const record = { importUid: newUlid(runtime), region: "west", partition: "default" };
	const store = await ImportStore.open(
		{
			...{ backend, runtime, fence, records: new PeeringRecords(backend, runtime) },
			get maxCopies() {
				return room.maxCopies;
			},
		},
		create(ImportRecordSchema, record),
	);
	return {
		room,
		async dial() {
			await store.reload();
			const applier = new MessageApplier({
				...{ store, place, types: [Good], registry: { get: () => Good } },
				check: {
					problem: (each) =>
						decodeShared(Good, each).data.note === refusedNote ? refusedNote : undefined,
				},
				leftOut: new LeftOutResources(store.record.leftOut),
			});
			return { applier, position: store.record.positions[0]?.version ?? "" };
		},
		/** The copies that are stored, and of which originals they are. */
		async copies() {
			const tenancy = { partition: "*", namespace: "*" };
			const query = { type: Good.type, namePrefix: "", region: "west", tenancy };
			return (await stored.list(query)).resources.map((each) => {
				const { note } = decodeShared(Good, each).data;
				return `${each.id?.name} ${note} ${each.origin?.uid}`;
			});
		},
	};
}

it("what is removed in the same messages does not let copies grow beyond the limit of memory", async () => {
	const runtime = systemRuntime;
	const leases = new LocalLeases();
	const memoryBytes = 200_000;
	const backend = createMemoryBackend({ runtime, leases, limits: { memoryBytes } });
	const { fence } = await leases.acquire("regional-copies", new AbortController().signal);
	const record = { importUid: newUlid(runtime), region: "west", partition: "default" };
	const store = await ImportStore.open(
		{ backend, runtime, fence, maxCopies: 10_000, records: new PeeringRecords(backend, runtime) },
		create(ImportRecordSchema, record),
	);
	const applier = new MessageApplier({
		...{ store, place, types: [Good], registry: { get: () => Good } },
		check: { problem: () => undefined },
		leftOut: new LeftOutResources(),
	});
	let version = 0;
	const written = (name: string, note: string) => {
		version += 1;
		return upsert({ name, note, uid, version }, String(version));
	};
	const removed = (name: string): Message => {
		const value = { type, namespace: "default", name, version: String(version) };
		return { case: "delete", value };
	};
	const apply = (messages: readonly Message[]) =>
		applier.apply(messages.map((message) => create(StreamResponseSchema, { message })));
	await apply(Array.from({ length: 40 }, (_, at) => written(`small-${at}`, "")));
	for (let at = 0; at < 40; at += 1) {
		const large = Array.from({ length: 20 }, (_, i) =>
			written(`large-${at}-${i}`, "n".repeat(1_000)),
		);
		await apply([removed(`small-${at}`), ...large]);
	}
	expect(applier.noRoom).toBeInstanceOf(Exhausted);
	const tenancy = { partition: "*", namespace: "*" };
	const query = { type: Good.type, namePrefix: "", region: "west", tenancy };
	const { resources } = await backend.list(query);
	expect(resources.every(({ id }) => id?.name.startsWith("large"))).toBe(true);
	expect(resources.length).toBeGreaterThan(0);
	expect(resources.length * 1_000).toBeLessThan(memoryBytes);
});

function integer(random: Random, below: number): number {
	return Math.floor(random.next() * below);
}

it.each(Array.from({ length: 40 }, (_, seed) => seed))(
	"what was skipped for lack of room is sent again, and nothing else is missing, seed %i",
	{ timeout: 300_000 },
	async (seed) => {
		const random = seededRandom(seed);
		const source = new Source(random);
		const { room, dial, copies } = await importing(random);
		const isLucky = (share: number) => random.next() < share;
		/** Applies a stream, which may be cut off. */
		const stream = async (isUndisturbed: boolean) => {
			const { applier, position } = await dial();
			const messages = source.stream(
				isLucky(0.2) ? "" : position,
				isUndisturbed ? 0 : integer(random, 16),
			);
			const length =
				isUndisturbed || isLucky(0.6) ? messages.length : integer(random, messages.length);
			for (let at = 0, size = 0; at < length; at += size) {
				size = Math.min(1 + integer(random, 8), length - at);
				if (!isUndisturbed && isLucky(0.2)) {
					room.refusals = [0, 0.3, 1][integer(random, 3)] ?? 0;
					room.maxCopies = isLucky(0.5) ? 4 : 1_000;
				}
				const batch = messages.slice(at, at + size).map((message, index) => {
					const isCurrent = at + index === messages.length - 1;
					return create(StreamResponseSchema, { message, isCurrent });
				});
				await applier.apply(batch);
			}
		};
		for (let round = 0; round < 12; round += 1) {
			await stream(false).catch((failure: unknown) => {
				if (!(failure instanceof Exhausted || failure instanceof TooManyCopies)) {
					throw failure;
				}
			});
			if (isLucky(0.4)) {
				Object.assign(room, { refusals: 0, maxCopies: 1_000 });
				await stream(true);
				const expected = [...source.goods.values()]
					.filter(({ note }) => note !== refusedNote)
					.map((each) => `${each.name} ${each.note} ${each.uid}`);
				expect((await copies()).toSorted()).toEqual(expected.toSorted());
			}
		}
	},
);
