/** A storage for caches of types, whose changes and calls a seed decides. */
import { create } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError } from "@connectrpc/connect";
import type { ForwarderPosition } from "@plinth/forwarding";
import { createInProcessClient, createInProcessTransport } from "@plinth/in-process";
import { ResourceService, Scope, type WatchSetEvent } from "@plinth/proto";
import {
	type DescribeTypeResponse,
	DescribeTypeResponseSchema,
} from "@plinth/proto/gen/plinth/agent/v1/agent_cache_service_pb.js";
import { idOf, resourceOf, TypeRegistry } from "@plinth/resource";
import { createResourceService, insecureAllowAll } from "@plinth/resource-service";
import type { Random } from "@plinth/runtime";
import type { SeededRuntime } from "@plinth/runtime/testing";
import { createMemoryBackend, type StorageBackend, wildcard } from "@plinth/storage";
import { TourSchema } from "../../../testdata/gen/tours/v1/tours_pb.ts";
import { Artist, artist, Tour } from "../../../testdata/music.ts";
import type { TypeCacheOptions } from "./type-cache.ts";

const names = ["anna", "bert", "carl", "dora"] as const;

/** All tenancies. */
export const everywhere = { partition: wildcard, namespace: wildcard };
const query = { type: Artist.type, tenancy: everywhere, namePrefix: "" };

/** How a test changes what a cache is told. */
export interface Faults {
	readonly described?: (response: DescribeTypeResponse) => DescribeTypeResponse;
	/** Whether a message of a watch is lost. */
	readonly losesEvent?: (event: WatchSetEvent, random: Random) => boolean;
}

/** A position of an agent that begins with nothing. */
export class ShownPosition implements ForwarderPosition {
	readonly replaced = 0;
	newest = 0;

	shown(version: number): void {
		this.newest = Math.max(this.newest, version);
	}
}

/** The versions of all artists, by name, as text. */
type State = string;

/** A storage that changes, and calls of it that fail and take their time. */
export class SimulatedStorage {
	/** What was stored from a time on the wall clock and a version on. */
	readonly history: { readonly version: number; readonly atMs: number; readonly state: State }[] =
		[];
	readonly #runtime: SeededRuntime;
	readonly #clock: SeededRuntime["clock"];
	readonly #random: Random;
	readonly #faults: Faults;
	#backend: StorageBackend;
	#client: Client<typeof ResourceService>;
	isCalm = false;

	constructor(runtime: SeededRuntime, random: Random, faults: Faults) {
		this.#runtime = runtime;
		this.#clock = runtime.clock;
		this.#random = random;
		this.#faults = faults;
		[this.#backend, this.#client] = this.#open(0);
	}

	#open(afterVersion: number) {
		const runtime = this.#runtime;
		const backend = createMemoryBackend({ runtime, afterVersion });
		const service = createResourceService({
			...{ backend, runtime, registry: new TypeRegistry([Artist, Tour]) },
			authorizer: insecureAllowAll,
		});
		const client = createInProcessClient(
			ResourceService,
			createInProcessTransport((router) => router.service(ResourceService, service), runtime),
		);
		return [backend, client] as const;
	}

	/** Another storage takes the place of this one, as after a restore: with later versions, and without a history. */
	async replace(): Promise<void> {
		const last = this.history.at(-1)?.version ?? 0;
		await this.#backend.close();
		[this.#backend, this.#client] = this.#open(last + 1_000);
		await this.change();
	}

	/** Writes or deletes an artist, or writes a tour. */
	async change(): Promise<void> {
		const name = names[Math.floor(this.#random.next() * names.length)] ?? "anna";
		const isTour = this.#random.next() < 0.4;
		const resource = isTour
			? resourceOf(Tour, { id: idOf(Tour, name), data: create(TourSchema) })
			: artist(name, String(this.#random.next()));
		const { id } = resource;
		if (id === undefined) {
			throw new TypeError("a resource has an ID");
		}
		const stored = await this.#backend.lookup(id);
		const expectedVersion = stored?.version ?? "";
		const { version } = await this.#backend.commit([
			!isTour && stored !== undefined && this.#random.next() < 0.4
				? { op: "delete", id, expectedVersion }
				: { op: "put", expectedVersion, resource },
		]);
		const { resources } = await this.#backend.list(query);
		this.history.push({
			version: Number(version),
			atMs: this.#clock.now(),
			state: stateOf(resources),
		});
	}

	readonly watchSet: Client<typeof ResourceService>["watchSet"] = (request, options) =>
		this.#breaking(this.#client.watchSet(request, options));

	readonly describeType: TypeCacheOptions["describing"]["describeType"] = async (
		{ type, notBefore = "" },
		_options,
	) => {
		const described = type?.kind === Tour.type.kind ? Tour : Artist;
		this.#mayFail(0.2);
		await this.#delay();
		const { version, familyVersion } = await this.#backend
			.catchUp(new AbortController().signal)
			.then(() => this.#backend.snapshot({ ...query, type: described.type }))
			.catch((failure: unknown) => {
				throw ConnectError.from(failure, Code.Unavailable);
			});
		if (Number(version) < Number(notBefore)) {
			throw new ConnectError("the storage has not reached it", Code.OutOfRange);
		}
		const response = create(DescribeTypeResponseSchema, {
			...{ scope: Scope.NAMESPACE, version, typeVersion: familyVersion },
		});
		await this.#delay();
		this.#mayFail(0.1);
		return this.#faults.described?.(response) ?? response;
	};

	async *#breaking(events: AsyncIterable<WatchSetEvent>): AsyncGenerator<WatchSetEvent> {
		this.#mayFail(0.2);
		for await (const event of events) {
			await this.#delay();
			if (this.#faults.losesEvent?.(event, this.#random) !== true) {
				yield event;
			}
			this.#mayFail(0.05);
		}
	}

	#mayFail(share: number): void {
		if (!this.isCalm && this.#random.next() < share) {
			throw new ConnectError("the connection was cut", Code.Unavailable);
		}
	}

	#delay(): Promise<void> {
		return this.isCalm || this.#random.next() < 0.5
			? Promise.resolve()
			: new Promise((resolve) => {
					this.#clock.setTimer(3_000 * this.#random.next(), resolve);
				});
	}
}

/** The versions of resources, by name, as text. */
export function stateOf(
	resources: readonly {
		readonly id?: { readonly name: string } | undefined;
		readonly version: string;
	}[],
): State {
	return resources.map(({ id, version }) => `${id?.name} ${version}`).join();
}
