import { create, equals } from "@bufbuild/protobuf";
import { timestampDate, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Resource, ResourceSchema } from "@plinth/proto";
import {
	type RegistryEntry,
	RegistryEntrySchema,
	RegistryRecordSchema,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { decodeShared } from "@plinth/resource";
import { type Logger, type Runtime, sleep } from "@plinth/runtime";
import type { Mutation, ReadOptions, StorageBackend } from "@plinth/storage";
import { isConflict } from "../commit/conflict.ts";
import { isPlanted } from "../fault-points.ts";
import { hashOf } from "../shadow/resource-key.ts";
import {
	putRecord,
	ResourceShadow,
	recordOf,
	type StoredRecord,
} from "../shadow/shadow-records.ts";
import { Deployment, metaService, Service } from "./meta-types.ts";
import type { RegistryView, ReportedResource } from "./registry-view.ts";
import type { NamedServers, RunningServers } from "./running-servers.ts";

/** Options of a `StoredView`. */
export interface StoredViewOptions {
	readonly backend: StorageBackend;
	readonly view: RegistryView;
	/** When the view had the contents of all meta deployments last, in milliseconds; `undefined` if it never had. */
	readonly upToDateMs: () => number | undefined;
	/** The sources that are followed now: only what was read of these is newer than what is stored. */
	readonly followed: () => FollowedSources;
	/** The running servers of the other deployments. */
	readonly running: RunningServers;
	readonly runtime: Runtime;
	readonly logger: Logger;
}

/** The sources that a server follows now. */
export interface FollowedSources {
	readonly addresses: ReadonlySet<string>;
	/** Whether they are all: at least one server of each meta deployment. */
	readonly areAll: boolean;
}

/** Changes are collected for this long before they are written. */
const collectMs = 1_000;

/** How long to wait after a write that failed. */
const againMs = 10_000;

/** How often it is recorded that the view is up to date, though it has not changed. */
const refreshMs = 60 * 60_000;

/** By how much the recorded time may be too early if nothing else is to be written. */
const toleranceMs = 60_000;

/** A commit has at most so many records. */
const batchSize = 100;

const prefix = "registry";

/**
 * The registry view in the storage of this deployment: a record for each Deployment and each Service, so that a change
 * of the registry writes what has changed, and one record that says when all of it was up to date.
 *
 * Each server of the deployment writes what it sees, as long as it follows the source: one that is cut off changes
 * nothing that another one has written since, nor does it take the time back. Of the addresses of servers, those that were
 * named at the latest version are stored, whichever server has learned them.
 *
 * A server that lags behind may write an older content of what another one has written, and writes the newer one when it has
 * caught up. But what it has never seen, it does not remove: when the meta deployment is restored, it never catches up, and the
 * deployment has to report what any of its servers has seen. A Deployment and the record of a deletion are removed only by a server
 * that has seen that they are gone. Like a view that was not updated, the records prove nothing by what they lack.
 */
export class StoredView {
	readonly #options: StoredViewOptions;
	/** The sources that were followed at some change which is not written yet. */
	#changedAt = new Set<string>();
	/** The last write, if it has succeeded. */
	#last: LastWrite | undefined;
	/** Whether something older was stored since the last write has begun to read. */
	#isReplaced = false;
	#changed = Promise.withResolvers<void>();

	constructor(options: StoredViewOptions) {
		this.#options = options;
	}

	/**
	 * Puts what is stored into the view: of the given meta deployments, and of those whose Deployments they have. Others
	 * may have been removed permanently.
	 *
	 * @returns when it was up to date, or `undefined` if the registry was never read completely. Then nothing changes.
	 * @throws StorageError if the storage can't be read.
	 */
	async load(metaAddresses: readonly string[]): Promise<Date | undefined> {
		const { view, running } = this.#options;
		const { entries, record } = await this.#read();
		const asOf = asOfOf(record);
		if (asOf === undefined || isPlanted("start only once a meta deployment responds")) {
			return undefined;
		}
		for (const { source, resource, servers } of reportedAt(entries, metaAddresses)) {
			view.apply(source, resource, "stored");
			running.takeStored(resource.id?.uid ?? "", servers);
		}
		return asOf;
	}

	/**
	 * The view of this server together with what is stored of the given meta deployments, at whichever of their servers it
	 * was read, and of those whose Deployments they have: another server may have read what this one has not. The record of a
	 * deletion wins over a Deployment, whichever of the two is stored, and of a Deployment the newest content.
	 *
	 * @throws StorageError if the storage can't be read.
	 */
	async withStored(metaAddresses: readonly string[]): Promise<RegistryView> {
		const { view } = this.#options;
		if (isPlanted("report only what this server has read")) {
			return view;
		}
		const { entries } = await this.#read({ consistency: "strong" });
		const sources = [...entries.values()].map(({ value }) => value.source);
		const all = view.with(reportedAt(entries, sources));
		return view.with(reportedAt(entries, all.sourcesWith(metaAddresses)));
	}

	/** Writes the view soon. */
	changed(): void {
		for (const address of this.#options.followed().addresses) {
			this.#changedAt.add(address);
		}
		this.#changed.resolve();
	}

	/** Writes the view soon, also if it was written since its last change: the storage has something older again. */
	replaced(): void {
		if (isPlanted("leave older servers in the storage")) {
			return;
		}
		this.#isReplaced = true;
		this.changed();
	}

	/** Writes changes until the signal aborts. */
	async run(signal: AbortSignal): Promise<void> {
		const { runtime, logger } = this.#options;
		while (!signal.aborted) {
			await this.#nextChange(signal);
			try {
				await sleep(runtime.clock, collectMs, signal);
				this.#changed = Promise.withResolvers();
				if (!(this.#isWritten() || isPlanted("store no registry view"))) {
					await this.#write();
				}
			} catch (failure) {
				if (!(signal.aborted || isConflict(failure))) {
					logger.warn({ err: failure }, "the registry view could not be stored: trying again");
				}
				this.changed();
				await sleep(runtime.clock, againMs, signal).catch(() => {});
			}
		}
	}

	/** Waits for a change, or until it is to be recorded that there was no change. */
	#nextChange(signal: AbortSignal): Promise<void> {
		return new Promise((resolve) => {
			const end = () => {
				timer.cancel();
				signal.removeEventListener("abort", end);
				resolve();
			};
			const timer = this.#options.runtime.clock.setTimer(refreshMs, end);
			signal.addEventListener("abort", end, { once: true });
			void this.#changed.promise.then(end);
		});
	}

	/** Whether there is nothing to write: most often, a watch has broken and continued. */
	#isWritten(): boolean {
		const { view, running, runtime, upToDateMs } = this.#options;
		const { addresses, areAll } = this.#options.followed();
		const last = this.#last;
		return (
			last !== undefined &&
			!this.#isReplaced &&
			last.viewRevision === view.revision &&
			last.runningRevision === running.revision &&
			(last.areAll || !areAll) &&
			addresses.isSubsetOf(last.sources) &&
			(upToDateMs() ?? 0) - last.asOfMs <= toleranceMs &&
			runtime.clock.monotonic() - last.atMs < refreshMs
		);
	}

	async #write(): Promise<void> {
		const { backend, runtime, view, running, upToDateMs } = this.#options;
		const followed = this.#options.followed();
		const { revision: viewRevision } = view;
		const atMs = runtime.clock.monotonic();
		this.#last = undefined;
		this.#isReplaced = false;
		const { entries, record } = await this.#read();
		this.#takeNewerServers(entries);
		const changedAt = this.#changedAt;
		this.#changedAt = new Set();
		const { revision: runningRevision } = running;
		const wanted = this.#wanted();
		const mutations: Mutation[] = [];
		for (const [name, seen] of wanted) {
			const stored = entries.get(name);
			const isFollowed = followed.addresses.has(seen.source) || changedAt.has(seen.source);
			const value = merged(seen, stored?.value, isFollowed);
			if (value !== undefined && !(stored && isSame(stored.value, value))) {
				mutations.push(
					putRecord(runtime, name, stored?.resource, { case: "registryEntry", value }),
				);
			}
		}
		const asOfMs = upToDateMs();
		let recordedMs = asOfOf(record)?.getTime() ?? 0;
		if (asOfMs !== undefined) {
			const isKept = keptBy(wanted, followed, view);
			for (const [name, { resource, value }] of entries) {
				if (!(wanted.has(name) || isKept(value)) && resource.id !== undefined) {
					mutations.push({ op: "delete", id: resource.id, expectedVersion: resource.version });
				}
			}
			const aheadMs = asOfMs - recordedMs;
			if (aheadMs > (mutations.length > 0 ? 0 : toleranceMs)) {
				const value = create(RegistryRecordSchema, { asOf: timestampFromMs(asOfMs) });
				mutations.push(putRecord(runtime, prefix, record?.resource, { case: "registry", value }));
				recordedMs = asOfMs;
			}
		}
		try {
			for (let at = 0; at < mutations.length; at += batchSize) {
				await backend.commit(mutations.slice(at, at + batchSize));
			}
		} catch (failure) {
			this.#changedAt = this.#changedAt.union(changedAt);
			throw failure;
		}
		this.#last = {
			...{ viewRevision, runningRevision, atMs, areAll: followed.areAll },
			sources: followed.addresses.union(changedAt),
			asOfMs: recordedMs,
		};
	}

	/** Another server may have stored addresses that this one has not received yet. */
	#takeNewerServers(entries: ReadonlyMap<string, StoredEntry>): void {
		const { running } = this.#options;
		for (const { value } of entries.values()) {
			const uid = value.resource?.id?.uid ?? "";
			const servers = storedServers(value);
			if (running.isNewer(uid, servers)) {
				running.takeStored(uid, servers);
			}
		}
	}

	#wanted(): ReadonlyMap<string, RegistryEntry> {
		const { view, running } = this.#options;
		const wanted = new Map<string, RegistryEntry>();
		for (const { source, resource } of view.reported()) {
			const uid = resource.id?.uid ?? "";
			const { addresses, version } = running.of(uid);
			const servers = { endpoints: [...addresses], endpointsVersion: version };
			wanted.set(
				`${prefix}-${hashOf(`${source} ${uid}`).slice(0, 40)}`,
				create(RegistryEntrySchema, { source, resource, ...servers }),
			);
		}
		return wanted;
	}

	async #read(options: ReadOptions = {}) {
		const query = {
			type: ResourceShadow.type,
			tenancy: { partition: "", namespace: "" },
			namePrefix: prefix,
		};
		const { resources } = await this.#options.backend.list(query, options);
		const entries = new Map<string, StoredEntry>();
		let record: StoredRecord | undefined;
		for (const resource of resources) {
			const stored = recordOf(resource);
			if (stored.record.case === "registryEntry") {
				entries.set(resource.id?.name ?? "", { resource, value: stored.record.value });
			} else if (stored.record.case === "registry") {
				record = stored;
			}
		}
		return { entries, record };
	}
}

/** What a write was of. */
interface LastWrite {
	readonly viewRevision: number;
	readonly runningRevision: number;
	/** When it began, on the monotonic clock. */
	readonly atMs: number;
	/** The sources whose contents it has written. */
	readonly sources: ReadonlySet<string>;
	/** Whether these were all. */
	readonly areAll: boolean;
	/** When the view was up to date, as is recorded: by the wall clock. */
	readonly asOfMs: number;
}

interface StoredEntry {
	readonly resource: Resource;
	readonly value: RegistryEntry;
}

/** What is stored of the given sources, and of those whose Deployments they have. */
function* reportedAt(
	entries: ReadonlyMap<string, StoredEntry>,
	addresses: readonly string[],
): Iterable<ReportedResource & { readonly servers: NamedServers }> {
	const bySource = Map.groupBy(entries.values(), ({ value }) => value.source);
	const sources = new Set(addresses);
	for (const source of sources) {
		for (const { value } of bySource.get(source) ?? []) {
			const { resource } = value;
			if (resource === undefined) {
				continue;
			}
			yield { source, resource, servers: storedServers(value) };
			const meta = metaAddressOf(resource);
			if (meta !== undefined) {
				sources.add(meta);
			}
		}
	}
}

/** What is to be stored of an entry; `undefined` if nothing of it, since another server may have removed it. */
function merged(
	seen: RegistryEntry,
	stored: RegistryEntry | undefined,
	isFollowed: boolean,
): RegistryEntry | undefined {
	if (stored === undefined) {
		return isFollowed ? seen : undefined;
	}
	const { endpoints, endpointsVersion } = seen;
	return isFollowed ? seen : { ...stored, endpoints, endpointsVersion };
}

/**
 * Whether a stored entry stays that the view of this server does not have: it may not know better, and another server of
 * the same meta deployment, which another server of this deployment follows, may have reported the same.
 */
function keptBy(
	wanted: ReadonlyMap<string, RegistryEntry>,
	{ addresses, areAll }: FollowedSources,
	view: RegistryView,
): (stored: RegistryEntry) => boolean {
	const seen = new Map<string, Resource>();
	for (const { source, resource } of wanted.values()) {
		if (addresses.has(source) && resource?.id !== undefined) {
			seen.set(resource.id.uid, resource);
		}
	}
	return ({ source, resource }) => {
		const same = seen.get(resource?.id?.uid ?? "");
		if (same === undefined && !isGone(resource, view)) {
			return true;
		}
		if (addresses.has(source)) {
			return false;
		}
		// By its own Deployment, of any version, a source is known as a server of that meta deployment after the next start.
		const isMeta =
			resource !== undefined &&
			metaAddressOf(resource) !== undefined &&
			!isPlanted("forget a meta server that is down");
		return !areAll || (same !== undefined && (isMeta || isSameResource(resource, same)));
	};
}

/** Whether a view that does not have a resource knows that it is gone. Of services, nothing depends on that. */
function isGone(resource: Resource | undefined, view: RegistryView): boolean {
	const uid = resource?.id?.uid ?? "";
	return (
		resource?.id?.type?.kind === Service.type.kind ||
		(resource !== undefined && view.hasRemoved(resource)) ||
		view.isDeleted(uid) ||
		isPlanted("remove what another server has stored")
	);
}

/** The servers that a stored entry names. */
export function storedServers({ endpoints, endpointsVersion }: RegistryEntry): NamedServers {
	return { addresses: endpoints, version: endpointsVersion };
}

/** Whether two entries say the same. A later version alone is not worth a commit. */
function isSame(stored: RegistryEntry, wanted: RegistryEntry): boolean {
	return (
		stored.source === wanted.source &&
		isSameList(stored.endpoints, wanted.endpoints) &&
		isSameResource(stored.resource, wanted.resource)
	);
}

function isSameList(a: readonly string[], b: readonly string[]): boolean {
	return a.length === b.length && a.every((each, at) => each === b[at]);
}

/**
 * What stored resources were found to be equal to. All entries are compared at each write, and few have changed since the
 * last one: comparing their contents again would be most of the work.
 */
const equalTo = new WeakMap<Resource, Resource>();

function isSameResource(stored: Resource | undefined, wanted: Resource | undefined): boolean {
	if (stored === undefined || wanted === undefined) {
		return stored === wanted;
	}
	if (stored === wanted || equalTo.get(stored) === wanted) {
		return true;
	}
	const isEqual = equals(ResourceSchema, stored, wanted);
	if (isEqual) {
		equalTo.set(stored, wanted);
	}
	return isEqual;
}

/** The address of a meta deployment, if this is its Deployment. */
function metaAddressOf(resource: Resource): string | undefined {
	if (resource.id?.type?.kind !== Deployment.type.kind) {
		return undefined;
	}
	const { service, address } = decodeShared(Deployment, resource).data;
	return service === metaService ? address : undefined;
}

function asOfOf(stored: StoredRecord | undefined): Date | undefined {
	const asOf = stored?.record.case === "registry" ? stored.record.value.asOf : undefined;
	return asOf && timestampDate(asOf);
}
