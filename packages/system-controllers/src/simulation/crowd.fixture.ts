import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { ResourceClient } from "@plinth/controller";
import { NamespaceSchema } from "@plinth/proto";
import { displayName, idOf, Namespace, resourceOf } from "@plinth/resource";
import { seededRandom } from "@plinth/runtime/testing";

/** The namespace that the crowd writes; no user does. */
const hot = idOf(Namespace, "hot", { partition: "default" });

/** Callers of one server beside the users. */
export interface Crowd {
	/** Resolves when all loops and writers are over. */
	readonly calls: Promise<unknown>;
	/** Ends the watchers, and returns descriptions of what they saw wrong. */
	end(): Promise<readonly string[]>;
}

/**
 * Starts loops that read without waiting for anything, writers of one resource that name no version, and watchers of
 * all namespaces.
 */
export function startCrowd(client: ResourceClient, seed: number): Crowd {
	const random = seededRandom(seed ^ 0x27d4eb2f);
	const many = (most: number) => 1 + Math.floor(random.next() * most);
	const loop = async () => {
		for (let step = 0; step < 200; step++) {
			// Refused before it reaches the storage, which would let others run.
			await client.read({}).catch(() => {});
		}
	};
	const write = async () => {
		for (let step = 0; step < 5; step++) {
			const data = create(NamespaceSchema);
			const metadata = { written: String(random.next()) };
			await client.write({ resource: resourceOf(Namespace, { id: hot, data, metadata }) });
		}
	};
	const over = new AbortController();
	const watchers = Array.from({ length: 30 + many(40) }, () => watchAll(client, over.signal));
	const calls = Promise.all([
		...Array.from({ length: many(4) }, loop),
		...Array.from({ length: many(8) }, write),
	]);
	return {
		calls,
		async end() {
			const { resources } = await client.list({
				type: Namespace.type,
				tenancy: { partition: "default" },
			});
			const expected = resources.map(({ id, version }) => `${displayName(id ?? hot)} ${version}`);
			over.abort();
			const results = await Promise.all(watchers);
			return results.flatMap(({ violations, seen }) => {
				const isComplete = seen.sort().join() === expected.sort().join();
				return isComplete ? violations : [...violations, `a watcher ends with ${seen.join()}`];
			});
		},
	};
}

/** Follows all namespaces of the default partition, from one watch to the next if a watch falls behind. */
async function watchAll(client: ResourceClient, signal: AbortSignal) {
	const violations: string[] = [];
	let state = new Map<string, string>();
	while (!signal.aborted) {
		state = new Map();
		try {
			await watch(client, state, violations, signal);
		} catch (error) {
			const isExpected = error instanceof ConnectError && error.code !== Code.Internal;
			if (!signal.aborted && !isExpected) {
				throw error;
			}
		}
	}
	return { violations, seen: [...state].map(([name, version]) => `${name} ${version}`) };
}

/** Applies the events of one watch to the state, until the watch ends. */
async function watch(
	client: ResourceClient,
	state: Map<string, string>,
	violations: string[],
	signal: AbortSignal,
): Promise<void> {
	let latest = 0n;
	const request = { type: Namespace.type, tenancy: { partition: "default" } };
	for await (const { event } of client.watchList(request, { signal })) {
		if (event.case !== "upsert" && event.case !== "delete") {
			continue;
		}
		const { id = hot, version = "" } = event.value.resource ?? {};
		const name = displayName(id);
		if (event.case === "delete") {
			state.delete(name);
			continue;
		}
		if (state.has(name) && BigInt(version) <= latest) {
			violations.push(`a watcher sees ${name} at ${version} after ${latest}`);
		}
		latest = BigInt(version) > latest ? BigInt(version) : latest;
		state.set(name, version);
	}
}
