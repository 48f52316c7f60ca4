import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { create } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import { NamespaceSchema, type Resource, ResourceSchema } from "@plinth/proto";
import {
	idOf,
	Namespace,
	Partition,
	resourceOf,
	Tombstone,
	TypeRegistry,
	typeOf,
} from "@plinth/resource";
import {
	type Clock,
	type Runtime,
	silentLogger,
	systemClock,
	systemRuntime,
} from "@plinth/runtime";
import { seededRandom } from "@plinth/runtime/testing";
import { createMemoryBackend, type StorageBackend } from "@plinth/storage";
import { insecureAllowAll } from "../access/open-access.ts";
import { Artist, artist, demoTypes } from "../demo.fixture.ts";
import { createResourceService } from "../resource-service.ts";
import { ensureDefaultTenancy } from "../tenancy/tenancy-defaults.ts";
import { drawWireRequest } from "./fuzz.fixture.ts";
import { openPort, type WireRequest, type WireResponse } from "./port.fixture.ts";
import { ownerOfUnregistered } from "./valid-requests.fixture.ts";

/** The result of a run. */
export interface FuzzReport {
	/** How often each code was returned. */
	readonly responses: ReadonlyMap<string, number>;
	/** Forbidden results: responses that blame the server, internal errors in its log, broken connections. */
	readonly faults: readonly string[];
	/** Bytes in use after collection, at one tenth of the run and at its end. */
	readonly heap: readonly [atOneTenth: number, atEnd: number];
}

/** Codes that blame the server, or that no code path returns on purpose. */
const forbidden = new Set(["internal", "unknown", "data_loss", "unavailable", "no status"]);

/** The number of concurrent requests. */
const concurrency = 32;

/** Tombstones are collected when this many requests have been made. */
const reapEvery = 1_000;

/** The lifetime of page tokens in milliseconds, so that paged lists have ended before the heap is measured. */
const longestTimerMs = 250;

/** Sends that many requests, drawn by the seed, to a service on a real port. */
export async function fuzz(seed: number, requests: number): Promise<FuzzReport> {
	const random = seededRandom(seed);
	const faults: string[] = [];
	const responses = new Map<string, number>();
	const registry = new TypeRegistry([Partition, Namespace, Tombstone, ...demoTypes]);
	const messages = registry.messages();
	const runtime: Runtime = { ...systemRuntime, clock: hastyClock };
	const backend = createMemoryBackend({ runtime, limits: { logEvents: 50 } });
	await fill(backend, runtime);
	const service = createResourceService({
		backend,
		registry,
		runtime,
		authorizer: insecureAllowAll,
		logger: {
			...silentLogger,
			error: ({ err }) => faults.push(err instanceof Error ? (err.stack ?? "") : String(err)),
		},
	});
	await using port = await openPort(service, registry);

	let sent = 0;
	let untilReaping = reapEvery;
	async function sendUntil(count: number): Promise<void> {
		while (sent < count) {
			sent += 1;
			untilReaping -= 1;
			if (untilReaping === 0) {
				untilReaping = reapEvery;
				await removeAll(backend, Tombstone.type);
			}
			const request = drawWireRequest(random, messages);
			const response = await port.send(request).catch((error: unknown) => String(error));
			const code = typeof response === "string" ? response : response.code;
			responses.set(code, (responses.get(code) ?? 0) + 1);
			if (typeof response === "string" || forbidden.has(code)) {
				faults.push(describe(request, response));
			}
		}
	}
	async function sendAll(count: number): Promise<number> {
		await Promise.all(Array.from({ length: concurrency }, () => sendUntil(count)));
		await settle(backend);
		return heapInUse();
	}
	const atOneTenth = await sendAll(requests / 10);
	const atEnd = await sendAll(requests);
	await backend.close();
	return { responses, faults, heap: [atOneTenth, atEnd] };
}

/** The resources of the requests, including some that no request could have stored. */
async function fill(backend: StorageBackend, runtime: Runtime): Promise<void> {
	await ensureDefaultTenancy(backend, runtime);
	const uid = "01ARZ3NDEKTSV4RRFFQ69G5FAW";
	const namespace = resourceOf(Namespace, {
		id: { ...idOf(Namespace, "n"), uid },
		data: create(NamespaceSchema),
	});
	const owner = artist(ownerOfUnregistered.name);
	owner.id = { ...idOf(Artist, ownerOfUnregistered.name), uid: ownerOfUnregistered.uid };
	owner.metadata.finalizers = "keeps-it";
	for (const resource of [namespace, owner, ...unregistered(owner)]) {
		await backend.commit([{ op: "put", resource, expectedVersion: "" }]);
	}
}

/** Resources as another set of modules has left them. */
export function unregistered(owner: Resource): readonly Resource[] {
	const id = idOf(Artist, "left-behind");
	const type = typeOf({ group: "other", groupVersion: "v1", kind: "Thing" });
	const any = { typeUrl: "type.googleapis.com/acme.other.v1.Thing", value: new Uint8Array([8, 1]) };
	return [
		// A type that is not registered.
		create(ResourceSchema, {
			id: { ...id, uid: "1", type },
			data: create(AnySchema, any),
			...(owner.id && { owner: owner.id }),
		}),
		// A registered type with undecodable data.
		create(ResourceSchema, {
			id: { ...id, uid: "2" },
			data: create(AnySchema, { ...any, typeUrl: "type.googleapis.com/acme.demo.v2.Artist" }),
			...(owner.id && { owner: owner.id }),
		}),
	];
}

async function removeAll(
	backend: StorageBackend,
	type: { readonly group: string; readonly kind: string },
): Promise<void> {
	const tenancy = { partition: "*", namespace: "*" };
	const { resources } = await backend.list({ type, tenancy, namePrefix: "" });
	for (const { id, version } of resources) {
		// A concurrent write may prevent the deletion. Then it stays until the next time.
		await (id && backend.commit([{ op: "delete", id, expectedVersion: version }]))?.catch(() => {});
	}
}

/** Waits until nothing is retained for callers, and deletes what requests have stored. */
async function settle(backend: StorageBackend): Promise<void> {
	await new Promise((resolve) => setTimeout(resolve, 2 * longestTimerMs));
	await removeAll(backend, Tombstone.type);
}

/** A clock on which long delays are short. */
const hastyClock: Clock = {
	...systemClock,
	setTimer: (delayMs, callback) =>
		systemClock.setTimer(Math.min(delayMs, longestTimerMs), callback),
};

function heapInUse(): number {
	setFlagsFromString("--expose-gc");
	const collect: unknown = runInNewContext("gc");
	if (typeof collect === "function") {
		collect();
		collect();
	}
	return process.memoryUsage().heapUsed;
}

function describe(request: WireRequest, response: WireResponse | string): string {
	const { path, headers, body } = request;
	const sent = Buffer.from(body ?? []).toString("latin1", 0, 500);
	const got =
		typeof response === "string"
			? response
			: `${response.code} ${response.body.toString("utf8", 0, 500)}`;
	return `${path.slice(0, 500)} ${JSON.stringify(headers)} ${JSON.stringify(sent)} responded ${got}`;
}
