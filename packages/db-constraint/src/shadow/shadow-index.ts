import type { Resource } from "@plinth/proto";
import type {
	DeploymentRecord,
	RegistryEntry,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { type Logger, type Runtime, sleep } from "@plinth/runtime";
import type { StorageBackend, WatchEvent } from "@plinth/storage";
import { isPlanted } from "../fault-points.ts";
import { addressesIn, type EndpointAddresses, type Endpoints } from "./endpoint-addresses.ts";
import { type KeyLike, keyString } from "./resource-key.ts";
import { ResourceShadow, recordOf, type StoredShadow, shadowOf } from "./shadow-records.ts";
import { compareVersions } from "./versions.ts";

/** Receives each changed shadow; a removed one with its last contents. `before` is the shadow in the index. */
export type ShadowListener = (
	shadow: StoredShadow,
	change: "stored" | "removed",
	before: StoredShadow | undefined,
) => void;

/** The active schema, and the version of its record. */
export interface ActiveDescriptor {
	readonly fingerprint: string;
	readonly version: string;
}

/** The record of the deployment's identity, and its version. */
export interface StoredDeployment {
	readonly record: DeploymentRecord;
	readonly version: string;
}

/**
 * All shadows of this deployment in memory, by name, target and owner, up to a version of the storage's event
 * log.
 *
 *     commit ──▶ event log ──watch──▶ index, complete up to `version`
 */
export class ShadowIndex {
	readonly #backend: StorageBackend;
	readonly #runtime: Runtime;
	readonly #logger: Logger;
	readonly #byName = new Map<string, StoredShadow>();
	/** By target, then by the name of the referencing shadow. */
	readonly #byTarget = new Map<string, Map<string, StoredShadow>>();
	/** By owner, then by the name of the ownee's shadow. */
	readonly #byOwner = new Map<string, Map<string, StoredShadow>>();
	readonly #listeners = new Set<ShadowListener>();
	readonly #waiting = new Set<{ readonly version: string; readonly resolve: () => void }>();
	#version = "";
	readonly #descriptorListeners = new Set<(descriptor: ActiveDescriptor) => void>();
	#descriptor: ActiveDescriptor | undefined;
	#endpoints: Endpoints = new Map();
	/** Those of a snapshot or commit that is being read, which `version` does not include yet; none if there are no others. */
	#nextEndpoints: Map<string, EndpointAddresses> | undefined;
	readonly #endpointListeners = new Set<() => void>();
	readonly #registryListeners = new Set<(entry: RegistryEntry) => void>();
	readonly #dropped = new Set<string>();
	readonly #succeeded = new Map<string, string>();
	#deployment: StoredDeployment | undefined;
	readonly #deploymentListeners = new Set<() => void>();
	readonly #releaseListeners = new Set<(target: KeyLike) => void>();

	constructor(backend: StorageBackend, runtime: Runtime, logger: Logger) {
		this.#backend = backend;
		this.#runtime = runtime;
		this.#logger = logger;
	}

	/** The version of the storage up to which the index is complete. */
	get version(): string {
		return this.#version;
	}

	/** The active schema, and the version of its record. */
	get descriptor(): ActiveDescriptor | undefined {
		return this.#descriptor;
	}

	/**
	 * The addresses of the deployment's servers, by the names of their records: of those that run, or did lately.
	 *
	 * Invariant: they are those of `version`, with which they are named, so they change with it: once a snapshot, or all
	 * changes of one version, have been read. Each change replaces the map.
	 */
	get endpoints(): Endpoints {
		return this.#endpoints;
	}

	/** The uids of the deleted deployments whose sources are dropped. Their records are never removed. */
	get dropped(): ReadonlySet<string> {
		return this.#dropped;
	}

	/** The deployments that others have taken over, as this one has recorded: their uids, and those of the successors. */
	get succeeded(): ReadonlyMap<string, string> {
		return this.#succeeded;
	}

	/** The identity that this deployment has recorded; `undefined` before it has one. Its uid is empty if that was given up. */
	get deployment(): StoredDeployment | undefined {
		return this.#deployment;
	}

	/** Follows the storage until the signal aborts. A broken watch restarts. */
	async run(signal: AbortSignal): Promise<void> {
		while (!signal.aborted) {
			try {
				await this.#follow(signal);
			} catch (failure) {
				if (signal.aborted) {
					return;
				}
				this.#logger.warn({ err: failure }, "the watch of resource shadows broke, restarting");
				await sleep(this.#runtime.clock, restartMs, signal).catch(() => {});
			}
		}
	}

	/** Resolves once the index has reached the version. Rejects when the signal aborts. */
	async reached(version: string, signal?: AbortSignal): Promise<void> {
		if (compareVersions(this.#version, version) >= 0) {
			return;
		}
		signal?.throwIfAborted();
		await new Promise<void>((resolve, reject) => {
			const waiting = {
				version,
				resolve: () => {
					signal?.removeEventListener("abort", abort);
					this.#waiting.delete(waiting);
					resolve();
				},
			};
			const abort = () => {
				this.#waiting.delete(waiting);
				reject(signal?.reason);
			};
			signal?.addEventListener("abort", abort, { once: true });
			this.#waiting.add(waiting);
		});
	}

	/** Like `reached`, but rejects after a timeout in milliseconds. */
	async reachedWithin(version: string, limitMs: number): Promise<void> {
		if (compareVersions(this.#version, version) >= 0) {
			return;
		}
		const timeout = new AbortController();
		const timer = this.#runtime.clock.setTimer(limitMs, () =>
			timeout.abort(new Error(`the index of shadows has not reached version ${version}`)),
		);
		try {
			await this.reached(version, timeout.signal);
		} finally {
			timer.cancel();
		}
	}

	/** Resolves once the index has the first snapshot. Rejects when the signal aborts. */
	async ready(signal: AbortSignal): Promise<void> {
		await this.reached("0", signal);
	}

	/** The shadow of this name. */
	get(name: string): StoredShadow | undefined {
		return this.#byName.get(name);
	}

	/** All shadows, in no order. */
	all(): Iterable<StoredShadow> {
		return this.#byName.values();
	}

	/**
	 * The shadows that reference any incarnation of the target, without a copy: costs what is iterated. The index may
	 * change meanwhile: a shadow that stays is visited once, with its contents at that time; one that is removed before
	 * its visit is not visited; one that is added may be.
	 */
	referencing(target: KeyLike): IterableIterator<StoredShadow> {
		return valuesOf(this.#byTarget, target);
	}

	/** The shadows that name any incarnation of it as an owner; as `referencing`. */
	ownedBy(owner: KeyLike): IterableIterator<StoredShadow> {
		return valuesOf(this.#byOwner, owner);
	}

	/** Calls the listener for each change, until the returned function is called. */
	onChange(listener: ShadowListener): () => void {
		this.#listeners.add(listener);
		return () => this.#listeners.delete(listener);
	}

	/** Calls the listener with each stored descriptor, until the returned function is called. */
	onDescriptor(listener: (descriptor: ActiveDescriptor) => void): () => void {
		this.#descriptorListeners.add(listener);
		return () => this.#descriptorListeners.delete(listener);
	}

	/** Calls the listener with each target that a shadow no longer references, until the returned function is called. */
	onReleased(listener: (target: KeyLike) => void): () => void {
		this.#releaseListeners.add(listener);
		return () => this.#releaseListeners.delete(listener);
	}

	/** Calls the listener when the endpoints have changed, until the returned function is called. */
	onEndpoints(listener: () => void): () => void {
		this.#endpointListeners.add(listener);
		return () => this.#endpointListeners.delete(listener);
	}

	/** Calls the listener with each stored entry of the registry view. */
	onRegistryEntry(listener: (entry: RegistryEntry) => void): void {
		this.#registryListeners.add(listener);
	}

	/** Calls the listener when the record of the deployment has changed, until the returned function is called. */
	onDeployment(listener: () => void): () => void {
		this.#deploymentListeners.add(listener);
		return () => this.#deploymentListeners.delete(listener);
	}

	async #follow(signal: AbortSignal): Promise<void> {
		const query = {
			type: ResourceShadow.type,
			tenancy: { partition: "", namespace: "" },
			namePrefix: "",
		};
		const before = new Set(this.#byName.keys());
		this.#nextEndpoints = new Map();
		for await (const event of this.#backend.watchList(query, { signal })) {
			await this.#runtime.scheduler.turn();
			if (event.kind === "upsert") {
				before.delete(event.resource.id?.name ?? "");
			} else if (event.kind === "end-of-snapshot") {
				for (const name of before) {
					this.#remove(name);
				}
			}
			this.#apply(event);
		}
	}

	#apply(event: WatchEvent): void {
		if (event.kind === "upsert") {
			this.#store(event.resource);
		} else if (event.kind === "delete") {
			this.#remove(event.resource.id?.name ?? "");
		}
		if (event.version === undefined) {
			return;
		}
		if (compareVersions(event.version, this.#version) > 0) {
			this.#version = event.version;
			for (const waiting of this.#waiting) {
				if (compareVersions(this.#version, waiting.version) >= 0) {
					waiting.resolve();
				}
			}
		}
		this.#nameEndpoints();
	}

	#store(resource: Resource): void {
		const stored = shadowOf(resource);
		if (stored === undefined) {
			this.#storeRecord(resource);
			return;
		}
		const before = this.#byName.get(stored.name);
		this.#byName.set(stored.name, stored);
		const released = relink(this.#byTarget, targetsOf(before), targetsOf(stored), stored);
		relink(this.#byOwner, ownersOf(before), ownersOf(stored), stored);
		this.#notify(stored, "stored", before);
		this.#notifyReleased(released);
	}

	#storeRecord(resource: Resource): void {
		const { record } = recordOf(resource);
		switch (record.case) {
			case "endpoint":
				this.#changeEndpoints((next) => {
					next.set(resource.id?.name ?? "", addressesIn(record.value));
				});
				break;
			case "descriptor":
				this.#descriptor = { fingerprint: record.value.fingerprint, version: resource.version };
				for (const listener of this.#descriptorListeners) {
					listener(this.#descriptor);
				}
				break;
			case "registryEntry":
				for (const listener of this.#registryListeners) {
					listener(record.value);
				}
				break;
			case "dropped":
				this.#dropped.add(record.value.uid);
				break;
			case "succeeded":
				this.#succeeded.set(record.value.uid, record.value.successorUid);
				break;
			case "deployment":
				this.#deployment = { record: record.value, version: resource.version };
				for (const listener of this.#deploymentListeners) {
					listener();
				}
				break;
		}
	}

	#changeEndpoints(change: (next: Map<string, EndpointAddresses>) => void): void {
		this.#nextEndpoints ??= new Map(this.#endpoints);
		change(this.#nextEndpoints);
		if (isPlanted("name servers before the version that has them")) {
			this.#nameEndpoints();
		}
	}

	#nameEndpoints(): void {
		if (this.#nextEndpoints === undefined) {
			return;
		}
		this.#endpoints = this.#nextEndpoints;
		this.#nextEndpoints = undefined;
		for (const listener of this.#endpointListeners) {
			listener();
		}
	}

	#remove(name: string): void {
		if ((this.#nextEndpoints ?? this.#endpoints).has(name)) {
			this.#changeEndpoints((next) => {
				next.delete(name);
			});
		}
		const stored = this.#byName.get(name);
		if (stored !== undefined) {
			this.#byName.delete(name);
			const released = relink(this.#byTarget, targetsOf(stored), [], stored);
			relink(this.#byOwner, ownersOf(stored), [], stored);
			this.#notify(stored, "removed", stored);
			this.#notifyReleased(released);
		}
	}

	#notifyReleased(targets: readonly KeyLike[]): void {
		for (const target of targets) {
			for (const listener of this.#releaseListeners) {
				listener(target);
			}
		}
	}

	#notify(...args: Parameters<ShadowListener>): void {
		for (const listener of this.#listeners) {
			listener(...args);
		}
	}
}

const restartMs = 100;

type Links = Map<string, Map<string, StoredShadow>>;

type Keys = readonly (KeyLike | undefined)[];

function targetsOf(stored: StoredShadow | undefined): Keys {
	return stored?.shadow.outgoing.map(({ target }) => target) ?? [];
}

function ownersOf(stored: StoredShadow | undefined): Keys {
	return stored?.shadow.metaOwners.map(({ owner }) => owner) ?? [];
}

function valuesOf(links: Links, key: KeyLike): IterableIterator<StoredShadow> {
	return (links.get(keyString(key)) ?? none).values();
}

const none: ReadonlyMap<string, StoredShadow> = new Map();

/**
 * Links a shadow at the keys of its contents instead of those of its earlier contents. Where it is linked already, it
 * keeps its place: one that went to the end with each change would be visited again by those that iterate.
 *
 * @returns the keys at which it is no longer linked.
 */
function relink(links: Links, before: Keys, after: Keys, stored: StoredShadow): readonly KeyLike[] {
	const left = new Map(before.flatMap((key) => (key === undefined ? [] : [[textOf(key), key]])));
	for (const key of after) {
		const at = textOf(key);
		left.delete(at);
		const entries = links.get(at);
		if (entries !== undefined) {
			entries.set(stored.name, stored);
		} else if (key !== undefined) {
			links.set(at, new Map([[stored.name, stored]]));
		}
	}
	for (const at of left.keys()) {
		const entries = links.get(at);
		entries?.delete(stored.name);
		if (entries?.size === 0) {
			links.delete(at);
		}
	}
	return [...left.values()];
}

function textOf(key: KeyLike | undefined): string {
	return key === undefined ? "" : keyString(key);
}
