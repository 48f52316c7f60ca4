import { isPlanted } from "../fault-points.ts";
import type { ConstraintContext } from "../node/constraint-context.ts";
import type { StoredShadow } from "../shadow/shadow-records.ts";
import { responsibleUid } from "../succession/successors.ts";
import { ownerDeployment } from "./owner-deployments.ts";

/** The shadows that depend on one fact of the registry, and what that was when they were queued last. */
interface Dependents {
	readonly names: Set<string>;
	known: string;
}

/**
 * The shadows that a change of the registry concerns: those that reference a deployment which has appeared, disappeared
 * or got a successor, and those with owners or missing targets whose deployment is another one, or has announced another
 * version.
 *
 * A change costs one lookup for each deployment and each place of owners and missing targets that the shadows name,
 * however many shadows and deployments there are.
 *
 * The index may learn of a shadow later than the passes do, and the registry may have changed in between: a pass has seen
 * the shadow with the registry before the change, and the change has not queued what the index did not have. So a shadow is
 * also queued when the index learns what it depends on.
 */
export class ConcernedShadows {
	readonly #context: Pick<ConstraintContext, "descriptor" | "environment" | "index">;
	/** By uid of the referenced deployment. */
	readonly #byDeployment = new Map<string, Dependents>();
	/** By group and region of the owner or missing target, and the deployment that is recorded for the owner. */
	readonly #byPlace = new Map<string, Dependents>();

	constructor(context: Pick<ConstraintContext, "descriptor" | "environment" | "index">) {
		this.#context = context;
	}

	/** Calls `queue` with the shadows that each change concerns, until the returned function is called. */
	follow(queue: (shadowName: string) => void): () => void {
		const { index, environment } = this.#context;
		for (const stored of index.all()) {
			this.#relink(stored, undefined, stored);
		}
		const stops = [
			index.onChange((stored, change, before) => {
				const dependsOnMore = this.#relink(
					stored,
					before,
					change === "stored" ? stored : undefined,
				);
				if (dependsOnMore && !isPlanted("learn of shadows late without queueing them")) {
					queue(stored.name);
				}
			}),
			environment.onChange(() => {
				requeue(this.#byDeployment, (uid) => this.#deployment(uid), queue);
				requeue(this.#byPlace, (place) => this.#deploymentAt(place), queue);
			}),
		];
		return () => {
			for (const stop of stops) {
				stop();
			}
		};
	}

	/** Records what a shadow depends on now. Returns whether that is something on which it did not depend before. */
	#relink(
		{ name }: StoredShadow,
		before: StoredShadow | undefined,
		after: StoredShadow | undefined,
	): boolean {
		const uids = { before: deploymentsOf(before), after: deploymentsOf(after) };
		relink(this.#byDeployment, name, uids, (uid) => this.#deployment(uid));
		const places = { before: placesOf(before), after: placesOf(after) };
		relink(this.#byPlace, name, places, (place) => this.#deploymentAt(place));
		return !(uids.after.isSubsetOf(uids.before) && places.after.isSubsetOf(places.before));
	}

	/** What a reference depends on. */
	#deployment(uid: string): string {
		const { environment } = this.#context;
		const { disabled } = environment.byUid(uid) ?? {};
		return `${disabled} ${responsibleUid(environment, uid)}`;
	}

	/** What an owner or a missing target depends on. */
	#deploymentAt(place: string): string {
		const [group = "", region = "", deploymentUid = ""] = place.split(separator);
		const found = ownerDeployment(this.#context, { owner: { group, region }, deploymentUid });
		return `${found?.uid} ${found?.version} ${found?.disabled} ${found?.established}`;
	}
}

/** Occurs in no group, region or uid. */
const separator = "\n";

const none: ReadonlySet<string> = new Set();

function deploymentsOf(stored: StoredShadow | undefined): ReadonlySet<string> {
	const uids = stored?.shadow.outgoing.flatMap(({ deploymentUid }) => deploymentUid || []) ?? [];
	return uids.length === 0 ? none : new Set(uids);
}

function placesOf(stored: StoredShadow | undefined): ReadonlySet<string> {
	const { metaOwners = [], outgoing = [] } = stored?.shadow ?? {};
	const places = [
		...metaOwners.map(({ owner, deploymentUid }) => ({ key: owner, deploymentUid })),
		...outgoing.flatMap(({ target, targetUid }) =>
			targetUid === "" ? { key: target, deploymentUid: "" } : [],
		),
	].flatMap(({ key, deploymentUid }) =>
		key === undefined ? [] : [key.group, key.region, deploymentUid].join(separator),
	);
	return places.length === 0 ? none : new Set(places);
}

function relink(
	links: Map<string, Dependents>,
	name: string,
	{ before, after }: { readonly before: ReadonlySet<string>; readonly after: ReadonlySet<string> },
	know: (key: string) => string,
): void {
	for (const key of before) {
		const dependents = links.get(key);
		if (!after.has(key) && dependents?.names.delete(name) && dependents.names.size === 0) {
			links.delete(key);
		}
	}
	for (const key of after) {
		const dependents = links.get(key);
		if (dependents === undefined) {
			links.set(key, { names: new Set([name]), known: know(key) });
		} else {
			dependents.names.add(name);
		}
	}
}

function requeue(
	links: ReadonlyMap<string, Dependents>,
	know: (key: string) => string,
	queue: (shadowName: string) => void,
): void {
	for (const [key, dependents] of links) {
		const now = know(key);
		if (now !== dependents.known) {
			dependents.known = now;
			for (const name of dependents.names) {
				queue(name);
			}
		}
	}
}
