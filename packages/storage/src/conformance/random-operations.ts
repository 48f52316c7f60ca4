import assert from "node:assert/strict";
import type { Resource } from "@plinth/proto";
import { gvkKey, nameKey } from "@plinth/resource";
import type { Random } from "@plinth/runtime";
import { seededRandom } from "@plinth/runtime/testing";
import type { StorageBackend } from "../backend.ts";
import { CasFailure, WrongUid } from "../errors.ts";
import type { Mutation } from "../mutation.ts";
import { matches } from "../query.ts";
import type { WatchEvent } from "../watch-event.ts";
import type { Behavior } from "./behavior.ts";
import { ModelStorage } from "./model-storage.ts";
import {
	albumType,
	artistType,
	describeState,
	followEvent,
	idFor,
	idOf,
	query,
	resource,
	WatchReader,
} from "./test-resources.ts";

const resourceNames = ["a", "a-b", "b", "ba", "c"];
const namespaces = ["n", "n-o"];
/** Most resources are no copies. */
const regions = [undefined, undefined, undefined, "us", "us-2"];
const requestedRegions = [undefined, "us", "*"];
const uids = ["one", "two"];
const types = [artistType, albumType];
const owners = [undefined, idFor("owner", { uid: "one" }), idFor("owner", { uid: "two" })];

export const randomOperations: readonly Behavior[] = [
	{
		name: "agrees with a naive model, commit by commit",
		seeded: true,
		async run({ backend }, seed) {
			const random = seededRandom(seed);
			const model = new ModelStorage();
			for (let step = 0; step < 300; step++) {
				await commitBoth(backend, model, randomCommit(random, model));
				if (step % 20 === 0) {
					await compareReads(backend, model);
				}
			}
			await compareReads(backend, model);
		},
	},
	{
		name: "sends watches of every kind the changes from any version to the present",
		seeded: true,
		async run({ backend }, seed) {
			const random = seededRandom(seed);
			const model = new ModelStorage();
			const followers: Follower[] = [];
			for (let step = 0; step < 200; step++) {
				await commitBoth(backend, model, randomCommit(random, model));
				if (step % 10 === 0) {
					followers.push(new Follower(backend, random));
				}
				for (const follower of followers) {
					if (random.next() < 0.3) {
						await follower.step(random);
					}
				}
			}
			for (const follower of followers) {
				await follower.finish();
			}
		},
	},
	{
		name: "orders the commits of many writers one after the other",
		seeded: true,
		async run({ backend }, seed) {
			const random = seededRandom(seed);
			const everything = query({ type: artistType, region: "*" });
			const watch = new WatchReader(backend, everything);
			await watch.snapshot();
			const accepted: { readonly version: string; readonly mutations: readonly Mutation[] }[] = [];
			const writer = async () => {
				for (let step = 0; step < 40; step++) {
					const state = await backend.list(everything);
					const mutations = randomCommit(random, stateOf(state.resources), [artistType]);
					try {
						const { version } = await backend.commit(mutations);
						if (version !== "") {
							accepted.push({ version, mutations });
						}
					} catch (error) {
						assert.ok(error instanceof CasFailure || error instanceof WrongUid, String(error));
					}
				}
			};
			await Promise.all(Array.from({ length: 6 }, writer));
			// Replayed in the order of their versions, all of them succeed in the model too. Commits
			// that share a version are independent: any order of them will do.
			const model = new ModelStorage();
			const ordered = accepted.sort((a, b) => Number(a.version) - Number(b.version));
			for (const { version, mutations } of ordered) {
				assert.equal(model.commit(mutations, version).kind, "changed");
			}
			const { resources } = await backend.list(everything);
			assert.deepEqual(describeState(resources), describeState(model.resources()));
			watch.abort();
		},
	},
];

/** The part of a state that drawing a commit looks at. */
interface KnownState {
	find(key: string): Resource | undefined;
}

function stateOf(resources: readonly Resource[]): KnownState {
	const byKey = new Map(resources.map((each) => [nameKey(idOf(each)), each]));
	return { find: (key) => byKey.get(key) };
}

async function commitBoth(
	backend: StorageBackend,
	model: ModelStorage,
	mutations: readonly Mutation[],
): Promise<void> {
	let outcome: unknown;
	try {
		outcome = await backend.commit(mutations);
	} catch (error) {
		outcome = error;
	}
	if (outcome instanceof CasFailure || outcome instanceof WrongUid) {
		const kind = outcome instanceof CasFailure ? "cas" : "uid";
		assert.deepEqual(model.commit(mutations, ""), { kind, mutations: outcome.mutations });
		return;
	}
	if (outcome instanceof Error) {
		throw outcome;
	}
	const { version } = outcome as { readonly version: string };
	assert.equal(model.commit(mutations, version).kind, version === "" ? "unchanged" : "changed");
}

async function compareReads(backend: StorageBackend, model: ModelStorage): Promise<void> {
	const all = model.resources();
	for (const type of types) {
		for (const namespace of ["*", ...namespaces]) {
			for (const prefix of ["", "a", "b"]) {
				for (const region of requestedRegions) {
					const requested = query({ type, namespace, prefix, region });
					const { resources } = await backend.list(requested);
					const expected = all.filter((each) => matches(requested, each));
					assert.deepEqual(describeState(resources), describeState(expected));
				}
			}
		}
	}
	for (const region of [undefined, "us", "us-2"]) {
		const inRegion = all.filter(({ id }) => id?.region === region);
		for (const namespace of namespaces) {
			const unit = { partition: "default", namespace, region };
			const inNamespace = inRegion.filter((each) => each.id?.tenancy?.namespace === namespace);
			assert.deepEqual(await backend.countByTypeIn(unit), countedByType(inNamespace));
		}
		const partition = { partition: "default", region };
		assert.deepEqual(await backend.countByTypeIn(partition), countedByType(inRegion));
	}
	assert.deepEqual(await backend.countByType(), countedByType(all));
	for (const owner of owners) {
		if (owner !== undefined) {
			const owned = all.filter((each) => each.owner?.uid === owner.uid);
			assert.deepEqual(describeState(await backend.listByOwner(owner)), describeState(owned));
		}
	}
}

function countedByType(resources: readonly Resource[]): ReadonlyMap<string, number> {
	const counts = new Map<string, number>();
	for (const { id } of resources) {
		const key = id?.type === undefined ? "" : gvkKey(id.type);
		counts.set(key, (counts.get(key) ?? 0) + 1);
	}
	return counts;
}

function pick<T>(random: Random, from: readonly T[]): T {
	return from[Math.floor(random.next() * from.length)] as T;
}

/** A commit of one to four mutations of different names, most of which fit the state. */
function randomCommit(
	random: Random,
	state: KnownState,
	of: readonly (typeof artistType)[] = types,
): readonly Mutation[] {
	const mutations = new Map<string, Mutation>();
	const count = random.next() < 0.5 ? 1 : 1 + Math.floor(random.next() * 4);
	while (mutations.size < count) {
		const type = pick(random, of);
		const namespace = pick(random, namespaces);
		const name = pick(random, resourceNames);
		const region = pick(random, regions);
		const stored = state.find(nameKey(idFor(name, { type, namespace, region })));
		const fits = random.next() < 0.85;
		const uid = fits && stored?.id ? stored.id.uid : pick(random, uids);
		const owner = pick(random, owners);
		const text = String(random.next());
		const traits = { type, namespace, region, uid, text, ...(owner && { owner }) };
		const expectedVersion = fits ? (stored?.version ?? "") : pick(random, ["", "1", "7"]);
		const id = idFor(name, { ...traits, uid: random.next() < 0.3 ? "" : uid });
		const draw = random.next();
		mutations.set(
			nameKey(id),
			draw < 0.5
				? { op: "put", resource: resource(name, traits), expectedVersion }
				: draw < 0.75
					? { op: "delete", id, expectedVersion }
					: { op: "assert", id, expectedVersion },
		);
	}
	return [...mutations.values()];
}

/** A watch that keeps a copy of what it sees, and is broken off and resumed now and then. */
class Follower {
	readonly #backend: StorageBackend;
	readonly #query;
	readonly #state = new Map<string, Resource>();
	#reader: WatchReader;
	/** The version to resume after; events before it are discarded with the watch. */
	#version: string | undefined;
	#pending: WatchEvent[] = [];

	constructor(backend: StorageBackend, random: Random) {
		this.#backend = backend;
		this.#query = query({
			type: pick(random, types),
			namespace: pick(random, ["*", ...namespaces]),
			prefix: pick(random, ["", "a", "b"]),
			region: pick(random, requestedRegions),
		});
		this.#reader = new WatchReader(backend, this.#query);
	}

	async step(random: Random): Promise<void> {
		const { version } = await this.#backend.list(this.#query);
		if (random.next() < 0.2) {
			this.#reader.abort();
			this.#pending = [];
			this.#reader = new WatchReader(
				this.#backend,
				this.#query,
				this.#version === undefined ? {} : { afterVersion: this.#version },
			);
		}
		if (this.#version === undefined) {
			this.#take(await this.#reader.next());
			return;
		}
		if (!this.#isAt(await this.#expected()) && Number(this.#version) < Number(version)) {
			this.#take(await this.#reader.next());
		}
	}

	/** Reads on until it has what a list has. A watch that lacks an event never gets there. */
	async finish(): Promise<void> {
		const expected = await this.#expected();
		while (this.#version === undefined || !this.#isAt(expected)) {
			this.#take(await this.#reader.next());
		}
		this.#reader.abort();
	}

	async #expected(): Promise<readonly string[]> {
		return describeState((await this.#backend.list(this.#query)).resources);
	}

	#isAt(expected: readonly string[]): boolean {
		const state = describeState(this.#state.values());
		return this.#pending.length === 0 && JSON.stringify(state) === JSON.stringify(expected);
	}

	/** Takes events in at the end of their revision. */
	#take(event: WatchEvent): void {
		this.#pending.push(event);
		if (event.version === undefined) {
			return;
		}
		if (this.#version !== undefined) {
			assert.ok(Number(event.version) > Number(this.#version), "versions grow");
		}
		for (const each of this.#pending) {
			if (each.kind === "upsert" && this.#version !== undefined) {
				const known = this.#state.get(nameKey(idOf(each.resource)));
				assert.equal(each.previous?.version, known?.version, "no event is missing");
			}
			followEvent(this.#state, each);
		}
		this.#pending = [];
		this.#version = event.version;
	}
}
