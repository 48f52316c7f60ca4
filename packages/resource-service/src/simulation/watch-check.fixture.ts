import { Code, ConnectError } from "@connectrpc/connect";
import type { Resource, WatchEvent, WatchListRequest } from "@plinth/proto";
import { nameKey } from "@plinth/resource";
import { Violation } from "./linearizability.fixture.ts";

/*
 * A check of the events of watches against the responses of writes. The responses of all commits, ordered by
 * version, are the complete history, which determines the events of each watch.
 *
 *   responses    12 a stored   13 b stored   14 a stored as v1   15 b deleted
 *   watch of v2, from 12 on:   upsert b      delete a (it left)  delete b
 */

/** The response of one commit. */
export interface Acknowledgement {
	readonly key: string;
	readonly version: string;
	/** The resource as stored; `undefined` if it was deleted. */
	readonly resource: Resource | undefined;
}

/** Whether a watch includes a resource. */
export type InView = (resource: Resource) => boolean;

/** The change that a watch must send for a commit. */
interface Expected {
	readonly revision: number;
	readonly kind: "upsert" | "delete";
	readonly resource: Resource;
}

/** All commits in the order of their versions. */
export class Commits {
	readonly #acknowledgements: readonly (Acknowledgement & { readonly revision: number })[];

	/** @throws Violation if two commits returned one version. */
	constructor(responses: readonly Acknowledgement[]) {
		this.#acknowledgements = responses
			.map((response) => ({ ...response, revision: Number(response.version) }))
			.sort((a, b) => a.revision - b.revision);
		for (const [index, { revision }] of this.#acknowledgements.entries()) {
			if (revision === this.#acknowledgements[index - 1]?.revision) {
				throw new Violation(`two writers were told of version ${revision}`);
			}
		}
	}

	/** The stored resources at a revision. */
	stateAt(revision: number): ReadonlyMap<string, Resource> {
		const state = new Map<string, Resource>();
		for (const response of this.#acknowledgements) {
			if (response.revision > revision) {
				break;
			}
			put(state, response);
		}
		return state;
	}

	/** The states of the resource of a key, after each revision from `revision` on. */
	*statesFrom(key: string, revision: number): Generator<Resource | undefined> {
		yield this.stateAt(revision).get(key);
		for (const response of this.#acknowledgements) {
			if (response.revision > revision && response.key === key) {
				yield response.resource;
			}
		}
	}

	/** The events that a watch sends for the changes after a revision. */
	changesAfter(revision: number, inView: InView): readonly Expected[] {
		const state = new Map<string, Resource>();
		const changes: Expected[] = [];
		for (const response of this.#acknowledgements) {
			const before = state.get(response.key);
			put(state, response);
			if (response.revision <= revision) {
				continue;
			}
			const { resource } = response;
			if (resource !== undefined && inView(resource)) {
				changes.push({ revision: response.revision, kind: "upsert", resource });
			} else if (before !== undefined && inView(before)) {
				changes.push({ revision: response.revision, kind: "delete", resource: before });
			}
		}
		return changes;
	}
}

function put(state: Map<string, Resource>, { key, resource }: Acknowledgement): void {
	if (resource === undefined) {
		state.delete(key);
	} else {
		state.set(key, resource);
	}
}

/** The events of one watch from its start to its end. */
export interface Session {
	/** The version after which it resumed; empty if it began with a snapshot. */
	readonly afterVersion: string;
	readonly events: readonly WatchEvent[];
	/** Whether it was read until no more events could follow. */
	readonly complete: boolean;
}

/**
 * Checks that a watch sent exactly the required events: a snapshot at its version, then each change once and in
 * order.
 *
 * @throws Violation
 */
export function checkSession(commits: Commits, inView: InView, session: Session): void {
	let after = Number(session.afterVersion);
	let live = session.events;
	if (session.afterVersion === "") {
		const end = live.findIndex(({ event }) => event.case === "endOfSnapshot");
		if (end < 0) {
			if (session.complete) {
				throw new Violation("the snapshot has no end");
			}
			return;
		}
		after = Number(live[end]?.version);
		checkSnapshot(commits, inView, after, live.slice(0, end));
		live = live.slice(end + 1);
	}
	const expected = commits.changesAfter(after, inView);
	let next = 0;
	for (const { event, version } of live) {
		const change = expected[next];
		if (event.case === "bookmark") {
			if (change !== undefined && change.revision <= Number(version)) {
				throw new Violation(`bookmark ${version} before the event of ${change.revision}`);
			}
			continue;
		}
		if (event.case !== "upsert" && event.case !== "delete") {
			throw new Violation(`${event.case} among live events`);
		}
		if (
			change === undefined ||
			event.case !== change.kind ||
			Number(version) !== change.revision ||
			!isSame(event.value.resource, change.resource)
		) {
			throw new Violation(
				`${event.case} ${version} of ${event.value.resource?.id?.name} where ${change?.kind} ${change?.revision} is due`,
			);
		}
		next += 1;
	}
	if (session.complete && next < expected.length) {
		throw new Violation(`the event of version ${expected[next]?.revision} is missing`);
	}
}

function checkSnapshot(
	commits: Commits,
	inView: InView,
	revision: number,
	events: readonly WatchEvent[],
): void {
	const expected = new Map([...commits.stateAt(revision)].filter(([, each]) => inView(each)));
	for (const { event } of events) {
		const resource = event.case === "upsert" ? event.value.resource : undefined;
		const key = resource?.id === undefined ? "" : nameKey(resource.id);
		if (resource === undefined || !isSame(resource, expected.get(key))) {
			throw new Violation(`snapshot ${revision}: unexpected ${key} of ${resource?.version}`);
		}
		expected.delete(key);
	}
	if (expected.size > 0) {
		throw new Violation(`snapshot ${revision} lacks ${[...expected.keys()]}`);
	}
}

/** Whether both are the same content: a version has one. */
export function isSame(a: Resource | undefined, b: Resource | undefined): boolean {
	return (
		a?.version === b?.version &&
		a?.generation === b?.generation &&
		a?.id?.uid === b?.id?.uid &&
		a?.id?.name === b?.id?.name
	);
}

/** The view of a watcher, built from the events that it has received. */
export class View {
	readonly #resources = new Map<string, Resource>();

	clear(): void {
		this.#resources.clear();
	}

	apply({ event }: WatchEvent): void {
		if (event.case === "upsert" && event.value.resource?.id !== undefined) {
			this.#resources.set(nameKey(event.value.resource.id), event.value.resource);
		} else if (event.case === "delete" && event.value.resource?.id !== undefined) {
			this.#resources.delete(nameKey(event.value.resource.id));
		}
	}

	/** @throws Violation if it differs from what a list returns. */
	checkEquals(listed: readonly Resource[]): void {
		const missing = new Map(this.#resources);
		for (const resource of listed) {
			const key = resource.id === undefined ? "" : nameKey(resource.id);
			if (!isSame(resource, missing.get(key))) {
				throw new Violation(`the view lacks ${key} of version ${resource.version}`);
			}
			missing.delete(key);
		}
		if (missing.size > 0) {
			throw new Violation(`the view still has ${[...missing.keys()]}`);
		}
	}
}

/** The query of a watch. */
export type WatchQuery = Pick<WatchListRequest, "namePrefix"> & {
	readonly type: { readonly group: string; readonly groupVersion: string; readonly kind: string };
	readonly tenancy?: { readonly partition?: string; readonly namespace?: string };
	readonly bookmarks: boolean;
};

/** The filter of a query. */
export function viewOf({ type, tenancy, namePrefix }: WatchQuery): InView {
	const namespace = tenancy === undefined ? "*" : tenancy.namespace || "default";
	return ({ id }) =>
		id?.type?.groupVersion === type.groupVersion &&
		(namespace === "*" || id.tenancy?.namespace === namespace) &&
		id.name.startsWith(namePrefix);
}

/** Whether a watch ended because it fell behind, and has to start again. */
export function mustWatchAgain(error: unknown): boolean {
	return (
		error instanceof ConnectError && (error.code === Code.Aborted || error.code === Code.OutOfRange)
	);
}
