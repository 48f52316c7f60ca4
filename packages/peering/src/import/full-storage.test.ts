import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { OriginSchema } from "@plinth/proto";
import type { StreamResponseSchema } from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import type { ImportRecord } from "@plinth/proto/gen/plinth/peering/v1/peering_record_pb.js";
import { decodeShared, newUlid, typeOf } from "@plinth/resource";
import { systemRuntime } from "@plinth/runtime";
import { decorateBackend, Exhausted, type Mutation } from "@plinth/storage";
import { describe, expect, it } from "vitest";
import { PeeringRecords, Record } from "../records/peering-records.ts";
import { Good, good } from "../simulation/goods.fixture.ts";
import { TestNetwork } from "../two-clusters.fixture.ts";

type Message = NonNullable<MessageInitShape<typeof StreamResponseSchema>["message"]>;

const patiently = { timeout: 300_000, interval: 20 };
const type = typeOf(Good.type);
const peerUid = newUlid(systemRuntime);
const origin = { cluster: peerUid, incarnation: peerUid, uid: peerUid, version: "1" };
const ale = {
	...good("ale", ""),
	generation: peerUid,
	origin: create(OriginSchema, { ...origin, path: [peerUid] }),
};
const position = { type, version: "1" };
const snapshot: readonly Message[] = [
	{ case: "snapshotStart", value: { type, version: "" } },
	{ case: "upsert", value: { resource: ale, version: "" } },
	{ case: "endOfSnapshot", value: position },
];

/** What a commit puts: the record of an import, and copies. */
function putsOf(mutations: readonly Mutation[]) {
	const puts = mutations.flatMap((each) => (each.op === "put" ? [each.resource] : []));
	const records = puts.flatMap((each): ImportRecord[] => {
		if (each.id?.type?.kind !== Record.type.kind) {
			return [];
		}
		const { record } = decodeShared(Record, each).data;
		return record.case === "import" ? [record.value] : [];
	});
	return { record: records[0], hasCopy: puts.some(({ id }) => id?.type?.kind === Good.type.kind) };
}

/**
 * A cluster that imports from a peer whose streams have a snapshot, and then a position after each acknowledgment.
 *
 * @param isRefused - whether the storage is full for a commit, when so many streams were opened.
 */
async function importing(isRefused: (puts: ReturnType<typeof putsOf>, opened: number) => boolean) {
	const network = new TestNetwork();
	const streams: { acknowledged: number }[] = [];
	network.serve("west", {
		exchangeToken: () => ({ cluster: peerUid }),
		getExport: () => ({ generation: "1", incarnation: peerUid, types: [{ type, problem: "" }] }),
		acknowledge({ streamId, sequence }) {
			const stream = streams[Number(streamId)];
			if (stream !== undefined) {
				stream.acknowledged = Number(sequence);
			}
			return {};
		},
		async *stream(_, { signal }) {
			const stream = { acknowledged: 0 };
			const streamId = String(streams.push(stream) - 1);
			yield { sequence: 1n, message: { case: "start", value: { streamId } } };
			for (const [at, message] of snapshot.entries()) {
				yield { sequence: BigInt(at + 2), message, isCurrent: at === snapshot.length - 1 };
			}
			for (let sequence = snapshot.length + 2; !signal.aborted; sequence += 1) {
				await expect.poll(() => stream.acknowledged, patiently).toBe(sequence - 1);
				const message: Message = { case: "position", value: position };
				yield { sequence: BigInt(sequence), message, isCurrent: true };
			}
		},
	});
	const east = await network.cluster("east", {
		decorate: (backend) =>
			decorateBackend(backend, {
				async commit(mutations, options) {
					if (isRefused(putsOf(mutations), streams.length)) {
						throw new Exhausted("the storage is full");
					}
					return backend.commit(mutations, options);
				},
			}),
	});
	await network.peer(east, "west");
	await east.import({ peer: "west", export: "any", partition: "copies" });
	east.run();
	return { east, streams };
}

describe("an import whose storage is full", { timeout: 300_000 }, () => {
	it("stays with a stream of which it has stored everything, though it can't record that", async () => {
		const { east, streams } = await importing(({ record }) => (record?.currentMs ?? 0n) !== 0n);
		await expect.poll(() => streams[0]?.acknowledged, patiently).toBeGreaterThan(10);
		expect(await east.goods("copies")).toEqual(["ale"]);
		expect(await east.report("copies")).toMatchObject({ state: "Streaming" });
	});

	it("records that it streams when there is room again", async () => {
		let isFull = false;
		const { east, streams } = await importing(({ record, hasCopy }, opened) => {
			// The state is recorded, then nothing, until the second stream is open.
			const refused = opened < 2 && (hasCopy || isFull);
			isFull ||= !refused && record?.state === "Full";
			return refused;
		});
		await expect.poll(() => streams[1]?.acknowledged, patiently).toBeGreaterThan(10);
		const [stored] = await new PeeringRecords(east.stored, systemRuntime).all("import");
		expect(stored?.value).toMatchObject({ state: "Streaming", message: "" });
	});
});
