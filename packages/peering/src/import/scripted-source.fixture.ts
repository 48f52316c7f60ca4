import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { OriginSchema } from "@plinth/proto";
import {
	type GetExportResponse,
	GetExportResponseSchema,
	type StreamResponse,
	StreamResponseSchema,
	type TypePosition,
} from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import { ImportRecordSchema } from "@plinth/proto/gen/plinth/peering/v1/peering_record_pb.js";
import { gvkKey, newUlid, type ResourceType, typeOf } from "@plinth/resource";
import { LocalLeases, silentLogger, systemRuntime } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import { createMemoryBackend } from "@plinth/storage";
import { expect, onTestFinished } from "vitest";
import { PeeringRecords } from "../records/peering-records.ts";
import { good } from "../simulation/goods.fixture.ts";
import { ImportRun } from "./import-run.ts";
import type { DialedSource, ImportSource } from "./import-source.ts";
import { ImportStore } from "./import-store.ts";
import type { RegionPlace } from "./incoming-copy.ts";
import { LiveImport } from "./live-import.ts";

export type Message = NonNullable<MessageInitShape<typeof StreamResponseSchema>["message"]>;

const patiently = { timeout: 300_000, interval: 5 };
const uid = newUlid(systemRuntime);
const place: RegionPlace = {
	...{ kind: "region", region: "west", partition: "default" },
	...{ deployment: uid, cluster: uid, incarnation: uid },
};

/** A resource without an origin, which is left out. */
export function malformed({ type }: ResourceType, name: string): Message {
	const resource = { id: { type: typeOf(type), name, tenancy: { namespace: "default" } } };
	return { case: "upsert", value: { resource, version: "" } };
}

/** A resource that can be copied. */
export function original({ type }: ResourceType, name: string): Message {
	const { cluster, incarnation } = place;
	const origin = { region: "west", partition: "default", cluster, incarnation, uid, version: "1" };
	const resource = { ...good(name, ""), generation: uid, origin: create(OriginSchema, origin) };
	if (resource.id !== undefined) {
		resource.id = { ...resource.id, type: typeOf(type) };
	}
	return { case: "upsert", value: { resource, version: "" } };
}

/** A snapshot that has everything. */
export function snapshot({ type }: ResourceType, messages: readonly Message[]): readonly Message[] {
	return [
		{ case: "snapshotStart", value: { type: typeOf(type), version: "" } },
		...messages,
		{ case: "endOfSnapshot", value: { type: typeOf(type), version: "1" } },
	];
}

/** A stream of which a test sends the messages. */
class ScriptedStream {
	/** The versions that were requested, by type key: empty for a snapshot that has everything. */
	readonly requested: ReadonlyMap<string, string>;
	readonly #messages: StreamResponse[] = [];
	#changed = Promise.withResolvers<void>();
	#sequence = 0n;
	#isEnded = false;
	acknowledged = 0n;

	constructor(positions: readonly TypePosition[]) {
		this.requested = new Map(
			positions.map(({ type, version }) => [type === undefined ? "" : gvkKey(type), version]),
		);
		this.#add({ case: "start", value: { streamId: "s" } }, false);
	}

	/** Sends messages, the last of which is the last one for now, and waits until they are stored. */
	async send(messages: readonly Message[]): Promise<void> {
		this.push(messages);
		await expect.poll(() => this.acknowledged, patiently).toBe(this.#sequence);
		// What follows the last acknowledgment.
		await new Promise((resolve) => setImmediate(resolve));
	}

	/** Sends messages, the last of which is the last one for now. */
	push(messages: readonly Message[]): void {
		for (const [at, message] of messages.entries()) {
			this.#add(message, at === messages.length - 1);
		}
	}

	end(): void {
		this.#isEnded = true;
		this.#notify();
	}

	async *read(): AsyncGenerator<StreamResponse> {
		for (;;) {
			yield* this.#messages.splice(0);
			if (this.#isEnded) {
				throw new ConnectError("the stream has ended", Code.Aborted);
			}
			await this.#changed.promise;
		}
	}

	#add(message: Message, isCurrent: boolean): void {
		this.#sequence += 1n;
		const init = { sequence: this.#sequence, message, isCurrent };
		this.#messages.push(create(StreamResponseSchema, init));
		this.#notify();
	}

	#notify(): void {
		this.#changed.resolve();
		this.#changed = Promise.withResolvers();
	}
}

/** A region whose streams a test scripts. */
class ScriptedSource implements ImportSource {
	readonly name = "west";
	readonly #clock: FakeClock;
	offered: GetExportResponse;
	readonly #streams: ScriptedStream[] = [];

	constructor(types: readonly ResourceType[], clock: FakeClock) {
		this.offered = offering(types);
		this.#clock = clock;
	}

	/** The stream that is opened as that one, from 1. */
	async opened(count: number): Promise<ScriptedStream> {
		for (;;) {
			const stream = this.#streams[count - 1];
			if (stream !== undefined) {
				return stream;
			}
			// Pauses between two attempts.
			await this.#clock.advanceAsync(1_000);
		}
	}

	async dial(signal: AbortSignal): Promise<DialedSource> {
		let stream: ScriptedStream | undefined;
		signal.addEventListener("abort", () => stream?.end(), { once: true });
		return {
			describe: async () => ({ offered: this.offered, cluster: uid, place }),
			stream: ({ positions }) => {
				stream = new ScriptedStream(positions);
				this.#streams.push(stream);
				return stream.read();
			},
			async acknowledge(_, sequence) {
				if (stream !== undefined) {
					stream.acknowledged = sequence;
				}
			},
			close() {},
		};
	}
}

/** An offer of types. */
export function offering(types: readonly ResourceType[]): GetExportResponse {
	return create(GetExportResponseSchema, {
		...{ generation: "1", incarnation: uid },
		types: types.map(({ type }) => ({ type: typeOf(type), problem: "" })),
	});
}

/** What an import of some types from a scripted region stores. Each run begins with what the former one has recorded. */
export async function scriptedImport(types: readonly ResourceType[], maxCopies = 1_000) {
	const leases = new LocalLeases();
	const backend = createMemoryBackend({ runtime: systemRuntime, leases });
	const clock = new FakeClock();
	const runtime = { ...systemRuntime, clock };
	const { fence } = await leases.acquire("regional-copies", new AbortController().signal);
	const records = new PeeringRecords(backend, runtime);
	const initial = create(ImportRecordSchema, {
		importUid: uid,
		region: "west",
		partition: "default",
	});
	const open = () => ImportStore.open({ backend, runtime, fence, records, maxCopies }, initial);
	return {
		clock,
		/** The record as it is stored. */
		record: async () => (await open()).record,
		/** Changes what is recorded, while nothing runs. */
		async rewrite(progress: Parameters<ImportStore["recordProgress"]>[0]) {
			await (await open()).recordProgress(progress);
		},
		/** Runs the import until the test has finished, or until `stop` is called. */
		async run() {
			const source = new ScriptedSource(types, clock);
			const run = new ImportRun({
				...{ store: await open(), source, runtime, logger: silentLogger },
				live: new LiveImport(clock),
				registry: {
					get: (type) => types.find(({ key }) => key === gvkKey(type)),
				},
				check: { problem: () => undefined },
				fields: {},
				recordMs: () => 30_000,
				onState: () => {},
			});
			const end = new AbortController();
			const running = run.run(end.signal).catch(() => {});
			const stop = async () => {
				end.abort(new Error("the import stops"));
				for (;;) {
					const isDone = await Promise.race([
						running.then(() => true),
						clock.advanceAsync(1_000).then(() => false),
					]);
					if (isDone) {
						return;
					}
				}
			};
			onTestFinished(stop);
			return { source, stop };
		},
	};
}
