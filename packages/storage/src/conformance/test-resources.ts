import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import { type ID, IDSchema, OriginSchema, type Resource, ResourceSchema } from "@plinth/proto";
import { nameKey, tenancyOf, typeOf } from "@plinth/resource";
import type { StorageBackend, WatchOptions } from "../backend.ts";
import type { Mutation } from "../mutation.ts";
import { type ListQuery, wildcard } from "../query.ts";
import type { WatchEvent } from "../watch-event.ts";

/** The type of most resources here. */
export const artistType = typeOf({ group: "demo", groupVersion: "v2", kind: "Artist" });
/** Another family of the same group. */
export const albumType = typeOf({ group: "demo", groupVersion: "v2", kind: "Album" });

/** The properties in which a test resource differs from the default. */
export interface ResourceTraits {
	readonly type?: typeof artistType;
	readonly partition?: string;
	readonly namespace?: string;
	/** The region that it is a copy of. */
	readonly region?: string | undefined;
	/** Whether it is a copy of another cluster. */
	readonly isImported?: boolean;
	readonly uid?: string;
	readonly owner?: ID;
	/** The text in its data. */
	readonly text?: string;
}

/** The ID of a test resource. */
export function idFor(name: string, traits: ResourceTraits = {}): ID {
	return create(IDSchema, {
		name,
		uid: traits.uid ?? `uid-of-${name}`,
		type: { ...(traits.type ?? artistType) },
		tenancy: tenancyOf({
			partition: traits.partition ?? "default",
			namespace: traits.namespace ?? "default",
		}),
		...(traits.region && { region: traits.region }),
	});
}

/** A test resource that can be stored. */
export function resource(
	name: string,
	traits: ResourceTraits = {},
): Resource & { readonly id: ID } {
	const id = idFor(name, traits);
	const created = create(ResourceSchema, {
		...(traits.owner && { owner: traits.owner }),
		...(traits.isImported && { origin: create(OriginSchema, { uid: "original" }) }),
		generation: "01J9ZZZZZZZZZZZZZZZZZZZZZZ",
		metadata: { key: "value" },
		data: create(AnySchema, {
			typeUrl: "type.googleapis.com/test.Text",
			value: new TextEncoder().encode(traits.text ?? ""),
		}),
	});
	return Object.assign(created, { id });
}

/** The text in the data of a test resource. */
export function textOf(stored: Resource | undefined): string {
	return new TextDecoder().decode(stored?.data?.value);
}

/** The name of a resource. */
export function nameOf(stored: Resource): string {
	return stored.id?.name ?? "";
}

/** The ID of a stored resource. */
export function idOf(stored: Resource): ID {
	assert.ok(stored.id);
	return stored.id;
}

/** A mutation that puts a resource. */
export function put(resource: Resource, expectedVersion = ""): Mutation {
	return { op: "put", resource, expectedVersion };
}

/** A mutation that deletes the resource as it is stored. */
export function remove(stored: Resource): Mutation {
	return { op: "delete", id: idOf(stored), expectedVersion: stored.version };
}

/** Commits one put, and returns the stored resource. */
export async function store(
	backend: StorageBackend,
	resource: Resource,
	expectedVersion = "",
): Promise<Resource> {
	const { resources } = await backend.commit([put(resource, expectedVersion)]);
	assert.ok(resources[0]);
	return resources[0];
}

/** A query of all artists, unless `parts` say otherwise. */
export function query(
	parts: {
		type?: ListQuery["type"];
		partition?: string;
		namespace?: string;
		prefix?: string;
		region?: string | undefined;
	} = {},
): ListQuery {
	return {
		type: parts.type ?? artistType,
		tenancy: { partition: parts.partition ?? wildcard, namespace: parts.namespace ?? wildcard },
		namePrefix: parts.prefix ?? "",
		...(parts.region && { region: parts.region }),
	};
}

/** The names that a query lists. */
export async function names(backend: StorageBackend, of = query()): Promise<readonly string[]> {
	const { resources } = await backend.list(of);
	return resources.map(nameOf);
}

/** A watch that is read step by step. */
export class WatchReader {
	readonly #abort = new AbortController();
	readonly #events: AsyncIterator<WatchEvent>;

	constructor(
		backend: StorageBackend,
		of: ListQuery = query(),
		options: Omit<WatchOptions, "signal"> = {},
	) {
		const watch = backend.watchList(of, { ...options, signal: this.#abort.signal });
		this.#events = watch[Symbol.asyncIterator]();
	}

	/** The next event. Fails if the watch has ended. */
	async next(): Promise<WatchEvent> {
		const { done, value } = await this.#events.next();
		assert.ok(!done, "the watch has not ended");
		return value;
	}

	/** The next `count` events. */
	async take(count: number): Promise<readonly WatchEvent[]> {
		const events: WatchEvent[] = [];
		while (events.length < count) {
			events.push(await this.next());
		}
		return events;
	}

	/** All events up to the first one whose version is at least `version`. */
	async until(version: string): Promise<readonly WatchEvent[]> {
		const events: WatchEvent[] = [];
		for (;;) {
			const event = await this.next();
			events.push(event);
			if (event.version !== undefined && Number(event.version) >= Number(version)) {
				return events;
			}
		}
	}

	/** Reads through the snapshot, and returns its resources and version. */
	async snapshot(): Promise<{ readonly resources: readonly Resource[]; readonly version: string }> {
		const resources: Resource[] = [];
		for (;;) {
			const event = await this.next();
			if (event.kind === "end-of-snapshot") {
				return { resources, version: event.version };
			}
			assert.equal(event.kind, "upsert", "a snapshot has upserts only");
			if (event.kind === "upsert") {
				resources.push(event.resource);
			}
		}
	}

	/** The error that the watch ends with. */
	async failure(): Promise<unknown> {
		try {
			for (;;) {
				await this.next();
			}
		} catch (error) {
			return error;
		}
	}

	/** Aborts the watch. */
	abort(reason = new Error("enough")): void {
		this.#abort.abort(reason);
	}

	/** Ends the watch like a `for await` loop that is left early. */
	async leave(): Promise<void> {
		await this.#events.return?.();
	}
}

/** A short description of an event, to compare: `upsert a@3`, `delete a`. */
export function describeEvent(event: WatchEvent): string {
	switch (event.kind) {
		case "upsert":
			return `upsert ${nameOf(event.resource)}@${event.resource.version}`;
		case "delete":
			return `delete ${nameOf(event.resource)}`;
		default:
			return event.kind;
	}
}

/** A short description of a state, to compare: `name key@version uid=text` lines, in order of names. */
export function describeState(resources: Iterable<Resource>): readonly string[] {
	return [...resources]
		.map((each) => `${nameKey(idOf(each))}@${each.version} ${each.id?.uid}=${textOf(each)}`)
		.sort();
}

/** Applies an event of a watch to a state. */
export function followEvent(state: Map<string, Resource>, event: WatchEvent): void {
	if (event.kind === "upsert") {
		state.set(nameKey(idOf(event.resource)), event.resource);
	} else if (event.kind === "delete") {
		state.delete(nameKey(idOf(event.resource)));
	}
}
