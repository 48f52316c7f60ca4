import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { OriginSchema } from "@plinth/proto";
import type {
	GetExportResponseSchema,
	StreamResponseSchema,
} from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import { newUlid, typeOf } from "@plinth/resource";
import { systemRuntime } from "@plinth/runtime";
import { decorateBackend } from "@plinth/storage";
import { describe, expect, it, vi } from "vitest";
import { Good, good } from "../simulation/goods.fixture.ts";
import { type TestClusterOptions, TestNetwork } from "../two-clusters.fixture.ts";

type Message = NonNullable<MessageInitShape<typeof StreamResponseSchema>["message"]>;

const patiently = { timeout: 300_000, interval: 20 };
const type = typeOf(Good.type);
const peerUid = newUlid(systemRuntime);

/** A resource without an origin, which is left out. */
function malformed(name: string): Message {
	const resource = { id: { type, name, tenancy: { namespace: "default" } } };
	return { case: "upsert", value: { resource, version: "" } };
}

/** A good of the peer. */
function copied(name: string, note: string): Message {
	const origin = {
		cluster: peerUid,
		incarnation: peerUid,
		uid: peerUid,
		version: "1",
		path: [peerUid],
	};
	const resource = {
		...good(name, note),
		generation: peerUid,
		origin: create(OriginSchema, origin),
	};
	return { case: "upsert", value: { resource, version: "" } };
}

/**
 * A cluster that imports from a peer which sends these messages, and how often it has committed.
 *
 * @param streams - of the streams one after the other; each ends when it is stored, except the last one.
 */
async function importing(
	streams: readonly (readonly Message[])[],
	described: MessageInitShape<typeof GetExportResponseSchema> = {},
	{ limits = {}, maxCopies = 1_000 }: TestClusterOptions = {},
) {
	const network = new TestNetwork();
	let commits = 0;
	let opened = 0;
	let stored = 0;
	let acknowledged = Promise.withResolvers<void>();
	network.serve("hostile", {
		exchangeToken: () => ({ cluster: peerUid }),
		getExport: () => ({
			...{ generation: "1", incarnation: peerUid, types: [{ type, problem: "" }] },
			...described,
		}),
		acknowledge({ sequence }) {
			if (sequence === BigInt((streams[opened - 1]?.length ?? 0) + 1)) {
				stored += 1;
				acknowledged.resolve();
				acknowledged = Promise.withResolvers();
			}
			return {};
		},
		async *stream(_, { signal }) {
			const messages = streams[opened] ?? [];
			opened += 1;
			const { promise } = acknowledged;
			yield { sequence: 1n, message: { case: "start", value: { streamId: "s" } } };
			for (const [at, message] of messages.entries()) {
				const isCurrent = at === messages.length - 1;
				yield { sequence: BigInt(at + 2), message, isCurrent };
			}
			await promise;
			if (opened === streams.length) {
				await new Promise((resolve) => signal.addEventListener("abort", resolve));
			}
		},
	});
	const east = await network.cluster("east", {
		...{ limits, maxCopies },
		decorate: (backend) =>
			decorateBackend(backend, {
				commit(mutations, options) {
					commits += 1;
					return backend.commit(mutations, options);
				},
			}),
	});
	await network.peer(east, "hostile");
	await east.import({ peer: "hostile", export: "any", partition: "copies" });
	east.run();
	return {
		east,
		commits: () => commits,
		/** How many streams were opened. */
		opened: () => opened,
		/** Resolves when all streams are stored. */
		async received() {
			await vi.waitFor(() => expect(stored).toBe(streams.length), 300_000);
		},
	};
}

describe("an import from a hostile peer", () => {
	it.each([{ generation: "g".repeat(65) }, { incarnation: "i".repeat(65) }, { incarnation: "" }])(
		"stores no malformed generation or incarnation: %o",
		async (described) => {
			const { east } = await importing([[]], described);
			await vi.waitFor(
				async () =>
					expect(await east.report("copies")).toMatchObject({
						state: "Failed",
						message: "the peer has sent a malformed generation or incarnation",
					}),
				300_000,
			);
		},
	);

	it("does not commit deletions of names that it does not have", async () => {
		const messages: Message[] = Array.from({ length: 4_000 }, (_, at) => ({
			case: "delete",
			value: { type, namespace: "default", name: `x${at}`, version: "" },
		}));
		const { commits, received } = await importing([messages]);
		await received();
		expect(commits()).toBeLessThan(20);
	});

	it("still counts what was left out before it has connected again", async () => {
		const position = { type, version: "1" };
		const first: Message[] = [
			{ case: "snapshotStart", value: { type, version: "" } },
			...Array.from({ length: 150 }, (_, at) => malformed(`x${at}`)),
			{ case: "endOfSnapshot", value: position },
		];
		const { east, received } = await importing([first, [{ case: "position", value: position }]]);
		await received();
		expect(await east.report("copies")).toMatchObject({ leftOutTotal: 150n, resumptions: 1n });
	});

	it("splits what is too large for one commit of the storage", async () => {
		const names = Array.from({ length: 9 }, (_, at) => `x${at}`);
		const sent = names.map((name) => copied(name, "n".repeat(10_000)));
		const { east, received } = await importing([sent], {}, { limits: { commitBytes: 25_000 } });
		await received();
		expect(await east.goods("copies")).toEqual(names);
	});

	it("stores no more copies than it may have", async () => {
		const sent = Array.from({ length: 100 }, (_, at) => copied(`x${at}`, ""));
		const { east } = await importing([sent], {}, { maxCopies: 50 });
		await vi.waitFor(
			async () =>
				expect(await east.report("copies")).toMatchObject({
					state: "TooManyCopies",
					message: expect.stringContaining("more than the 50 copies and namespaces"),
				}),
			300_000,
		);
		expect((await east.goods("copies")).length).toBeLessThan(50);
	});

	it("does not commit what it has no room for, and what it has already", async () => {
		const sent = Array.from({ length: 4_000 }, (_, at) => copied(`x${at}`, ""));
		const again = Array.from({ length: 1_000 }, (_, at) => copied(`x${at % 20}`, ""));
		const snapshot: Message[] = [
			{ case: "snapshotStart", value: { type, version: "" } },
			...[...sent, ...again],
			{ case: "endOfSnapshot", value: { type, version: "1" } },
		];
		const { commits, opened } = await importing([snapshot], {}, { maxCopies: 50 });
		await vi.waitFor(() => expect(opened()).toBeGreaterThan(1), 300_000);
		expect(commits()).toBeLessThan(60);
	});
});

describe("acknowledgments to a hostile peer", { timeout: 300_000 }, () => {
	/** A peer that changes a good without an end, faster than that is stored, and how often it is called. */
	async function flooding(acknowledge: () => Promise<object>) {
		const network = new TestNetwork();
		const calls = { opened: 0, sent: 0, acknowledged: 0 };
		network.serve("hostile", {
			exchangeToken: () => ({ cluster: peerUid }),
			getExport: () => ({ generation: "1", incarnation: peerUid, types: [{ type, problem: "" }] }),
			acknowledge: () => {
				calls.acknowledged += 1;
				return acknowledge();
			},
			async *stream(_, { signal }) {
				calls.opened += 1;
				yield { sequence: 1n, message: { case: "start", value: { streamId: "s" } } };
				for (let sequence = 2n; !signal.aborted; sequence += 1n) {
					calls.sent += 1;
					yield { sequence, message: copied("ale", String(sequence)) };
					if (calls.sent % 100 === 0) {
						await turn();
					}
				}
			},
		});
		const east = await network.cluster("east", {
			decorate: (backend) =>
				decorateBackend(backend, {
					async commit(mutations, options) {
						for (let turns = 0; turns < 5; turns += 1) {
							await turn();
						}
						return backend.commit(mutations, options);
					},
				}),
		});
		await network.peer(east, "hostile");
		await east.import({ peer: "hostile", export: "any", partition: "copies" });
		east.run();
		return calls;
	}

	const turn = () => new Promise((resolve) => setImmediate(resolve));

	it("wait one at a time, if it does not respond", async () => {
		const calls = await flooding(() => new Promise(() => {}));
		await expect.poll(() => calls.sent, patiently).toBeGreaterThan(5_000);
		expect(calls.acknowledged).toBeGreaterThan(0);
		expect(calls.acknowledged).toBeLessThanOrEqual(calls.opened);
	});

	it("end the stream if they fail, also while messages keep coming", async () => {
		const calls = await flooding(async () => {
			throw new ConnectError("no", Code.Unavailable);
		});
		await expect.poll(() => calls.opened, patiently).toBeGreaterThan(1);
	});
});

it("an uid of a cluster that is no ULID is refused", async () => {
	const network = new TestNetwork();
	network.serve("hostile", { exchangeToken: () => ({ cluster: "c".repeat(1_000) }) });
	const east = await network.cluster("east");
	await expect(network.peer(east, "hostile")).rejects.toThrow(/malformed uid of the cluster/);
});
