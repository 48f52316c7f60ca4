import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { idOf, nameKey, resourceOf } from "@plinth/resource";
import type { SeededEventLoop } from "@plinth/runtime/testing";
import { seededRandom } from "@plinth/runtime/testing";
import { Shop } from "../market-types.fixture.ts";
import type { TestServer } from "../server/test-server.ts";

const shops = { type: Shop.type, tenancy: { partition: "default", namespace: "default" } };

/** Callers of one server beside the users of a simulation. */
export interface Crowd {
	/** Resolves when all loops and writers are over. */
	readonly calls: Promise<unknown>;
	/** Ends the watchers, and returns descriptions of what they saw wrong. */
	end(): Promise<readonly string[]>;
}

/**
 * Starts loops that call without waiting for anything, writers of one resource that name no version, and watchers of
 * all resources of its type.
 */
export function startCrowd(server: TestServer, eventLoop: SeededEventLoop, seed: number): Crowd {
	const random = seededRandom(seed ^ 0x27d4eb2f);
	const many = (most: number) => 1 + Math.floor(random.next() * most);
	const client = server.backgroundClient;
	const loop = async () => {
		for (let step = 0; step < 200; step++) {
			eventLoop.call();
			// Refused before it reaches the storage, which would let others run.
			await client.read({}).catch(() => {});
		}
	};
	const write = async () => {
		for (let step = 0; step < 5; step++) {
			const data = create(Shop.schema, { discount: many(1_000) });
			eventLoop.call();
			await client.write({ resource: resourceOf(Shop, { id: idOf(Shop, "a"), data }) });
		}
	};
	const over = new AbortController();
	const watchers = Array.from({ length: 30 + many(40) }, () => watchShops(server, over.signal));
	const calls = Promise.all([
		...Array.from({ length: many(4) }, loop),
		...Array.from({ length: many(8) }, write),
	]);
	return {
		calls,
		async end() {
			const { resources } = await server.backend.list({ ...shops, namePrefix: "" });
			const expected = resources
				.map(({ id, version }) => `${nameKey(id ?? { name: "" })} ${version}`)
				.sort()
				.join();
			over.abort();
			const results = await Promise.all(watchers);
			return results.flatMap(({ violations, seen }) =>
				seen === expected ? violations : [...violations, `a watcher ends with ${seen}`],
			);
		},
	};
}

/** Follows all shops until the signal aborts. */
async function watchShops(server: TestServer, signal: AbortSignal) {
	const violations: string[] = [];
	const state = new Map<string, string>();
	let latest = 0n;
	try {
		for await (const { event } of server.backgroundClient.watchList(shops, { signal })) {
			if (event.case !== "upsert" && event.case !== "delete") {
				continue;
			}
			const { id = { name: "" }, version = "" } = event.value.resource ?? {};
			const name = nameKey(id);
			if (event.case === "delete") {
				state.delete(name);
			} else if (state.has(name) && BigInt(version) <= latest) {
				violations.push(`a watcher sees ${name} at ${version} after ${latest}`);
			} else {
				latest = BigInt(version) > latest ? BigInt(version) : latest;
				state.set(name, version);
			}
		}
	} catch (error) {
		if (!signal.aborted) {
			const isCanceled = error instanceof ConnectError && error.code === Code.Canceled;
			violations.push(`a watcher ends ${isCanceled ? "early" : `with ${error}`}`);
		}
	}
	const seen = [...state].map(([name, version]) => `${name} ${version}`);
	return { violations, seen: seen.sort().join() };
}
