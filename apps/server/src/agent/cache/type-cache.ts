import { EmptySchema } from "@bufbuild/protobuf/wkt";
import { type Client, Code, ConnectError } from "@connectrpc/connect";
import type { ForwarderPosition } from "@plinth/forwarding";
import type { Resource, ResourceService, Scope } from "@plinth/proto";
import type {
	AgentCacheService,
	DescribeTypeResponse,
} from "@plinth/proto/gen/plinth/agent/v1/agent_cache_service_pb.js";
import {
	type Authorizer,
	familyKey,
	gvkKey,
	type ResourceType,
	type TypeLike,
	TypeRegistry,
	typeOf,
} from "@plinth/resource";
import {
	createResourceService,
	type ResourceServiceMethods,
	wholeTypeHeader,
} from "@plinth/resource-service";
import type { Logger, Runtime, Timer } from "@plinth/runtime";
import {
	defaultStorageLimits,
	StateStore,
	WatchClosed,
	type WatchDeliveries,
	wildcard,
} from "@plinth/storage";
import { type Watch, WatchClient, type WatchUpdate } from "@plinth/watch-client";
import { cacheBackend } from "./cache-backend.ts";
import { cacheLimits } from "./cache-limits.ts";
import { Suspension } from "./suspension.ts";
import { within } from "./within.ts";

/** The time of what has not happened yet. */
const never = Number.NEGATIVE_INFINITY;

/** Options of `TypeCache`. */
export interface TypeCacheOptions {
	readonly type: TypeLike;
	/** Calls servers with the token of the caches. */
	readonly resources: Client<typeof ResourceService>;
	readonly describing: Pick<Client<typeof AgentCacheService>, "describeType">;
	/** Decides what callers may see. */
	readonly authorizer: Authorizer;
	readonly position: ForwarderPosition;
	readonly deliveries: Pick<WatchDeliveries, "add">;
	readonly runtime: Runtime;
	readonly logger: Logger;
}

/** What a cache holds from the end of a snapshot until another one begins. */
interface Primed {
	readonly store: StateStore;
	readonly scope: Scope;
	/** Serves calls from the store. */
	service: ResourceServiceMethods;
	/** How often the storage had been replaced when the snapshot was complete. */
	readonly replaced: number;
	/** When the cache had all that the storage had, for certain, on the monotonic clock. */
	currentMs: number;
}

/** A check that a cache has all that the storage has. */
interface Check {
	/** The version that the storage has reached at least. */
	readonly notBefore: number;
	readonly done: Promise<void>;
}

/**
 * The cache of one type.
 *
 * ```
 *   describe ──▶ watch ──▶ snapshot ──▶ primed: changes are applied, one revision at a time
 *      ▲                      ▲            │
 *      │                      └── too old ─┤   the watch can't resume, or the storage was replaced
 *      └──────── after a pause ── refused ─┘   the type, or the rights of the agent
 * ```
 *
 * Invariants:
 *
 * - The store is a state of the type that the storage had, at the version of the store: each revision is applied whole, and a
 *   version without changes only if there are none of the type up to it.
 * - The upstream watch shows all resources of the type, or else is refused, by whichever server it reaches.
 * - There is one upstream watch, which resumes after the version of the last revision that was applied.
 * - What is read was proven to be no older than `ageMs`. The proof is a check: the storage tells its newest version, and the
 *   version of the last change of the type. Once the store has reached that one, it has all that the storage had when the
 *   check began. A check proves nothing if the machine was suspended after it began: then another one begins at once.
 */
export class TypeCache {
	readonly key: string;
	readonly #options: TypeCacheOptions;
	readonly #stop = new AbortController();
	readonly #described = Promise.withResolvers<void>();
	#primed: Primed | undefined;
	/** The resources of a snapshot that is not complete. */
	#loading: Resource[] = [];
	#upstream: Watch | undefined;
	#watchClient: WatchClient | undefined;
	#check: Check | undefined;
	readonly #suspension: Suspension;
	/** How often the machine was suspended. */
	#suspensions = 0;
	#allowedHosts: ReadonlySet<string> | undefined;
	/** The region of the servers, empty for none; `undefined` until one has told it. */
	#region: string | undefined;
	/** Whether the last attempt to follow the type has failed, and the next one has not succeeded yet. */
	#isRefused = false;
	/** Called when something has changed. */
	readonly #waiters = new Set<() => void>();
	#timer: Timer | undefined;
	/** Why the type is not cached, as it was logged. */
	#problem = "";
	/** Watches that are served from the store. */
	watches = 0;

	constructor(options: TypeCacheOptions) {
		this.#options = options;
		this.key = gvkKey(options.type);
		this.#suspension = new Suspension(options.runtime.clock);
		// Not every agent waits for it.
		this.#described.promise.catch(() => {});
		void this.#begin();
	}

	/** Resolves when servers have described the type, or have refused to. @throws the refusal. */
	get described(): Promise<void> {
		return this.#described.promise;
	}

	/** Serves calls; `undefined` while the cache can't, so that they are forwarded. */
	get service(): ResourceServiceMethods | undefined {
		const primed = this.#primed;
		if (primed === undefined || this.#ageOf(primed) > cacheLimits.ageMs) {
			return undefined;
		}
		if (primed.replaced !== this.#options.position.replaced) {
			this.#startOver("the storage was replaced");
			return undefined;
		}
		return primed.service;
	}

	/** Whether the type can't be cached now. */
	get isRefused(): boolean {
		return this.#isRefused;
	}

	/** The version of the cache; 0 if it is not primed. */
	get version(): number {
		return this.#primed?.store.revision ?? 0;
	}

	/** For how long the cache may lack changes, in milliseconds. */
	get ageMs(): number {
		return this.#primed === undefined ? Number.POSITIVE_INFINITY : this.#ageOf(this.#primed);
	}

	/** Whether a server has told its region. All servers of a storage have the same one, and some may be older. */
	get knowsRegion(): boolean {
		return this.#region !== undefined;
	}

	/** The names by which clients may call servers, as they have last said; `undefined` if any will do. */
	get allowedHosts(): ReadonlySet<string> | undefined {
		return this.#allowedHosts;
	}

	/** Waits until the cache is primed. Returns whether it is, and false at once for a type that can't be cached now. */
	async whenPrimed(limitMs: number): Promise<boolean> {
		const untilMs = this.#options.runtime.clock.monotonic() + limitMs;
		while (this.ageMs === Number.POSITIVE_INFINITY) {
			if (this.#isRefused || !(await this.#changed(untilMs))) {
				return false;
			}
		}
		return true;
	}

	/**
	 * Waits until the cache has reached a version. Returns whether it has.
	 *
	 * @param known - a version that the storage has reached, though the agent may not have passed it on.
	 */
	async reach(version: number, limitMs: number, known = 0): Promise<boolean> {
		const { runtime, position } = this.#options;
		const { clock } = runtime;
		const untilMs = clock.monotonic() + limitMs;
		const leftMs = () => untilMs - clock.monotonic();
		if (this.version < version && this.#check !== undefined) {
			await within(clock, leftMs(), this.#check.done);
		}
		if (this.version < version && this.#primed !== undefined) {
			const running = this.#check;
			const newest = Math.max(position.newest, known);
			const isShared = version <= newest;
			// A client may name any version. What only that client waits for must not fail for others.
			const done = !isShared
				? this.#runCheck(version).catch(() => {})
				: running !== undefined && running.notBefore >= version
					? running.done
					: this.#beginCheck(newest).done;
			await within(clock, leftMs(), done);
		}
		return this.version >= version;
	}

	/** Ends all watches of the cache. */
	close(): void {
		this.#stop.abort();
		this.#isRefused = true;
		this.#timer?.cancel();
		this.#watchClient?.close();
		this.#drop("the agent is stopping");
		this.#described.resolve();
	}

	#ageOf(primed: Primed): number {
		this.#noticeSuspension();
		return this.#options.runtime.clock.monotonic() - primed.currentMs;
	}

	/** After a suspension of the machine, the time since the last check is not known: the cache is current after the next one. */
	#noticeSuspension(): void {
		if (!this.#suspension.wasSuspended()) {
			return;
		}
		this.#suspensions += 1;
		const primed = this.#primed;
		if (primed !== undefined) {
			primed.currentMs = never;
			this.#beginCheck();
		}
	}

	/** Learns what the type is, and follows it. */
	async #begin(): Promise<void> {
		const { resources, runtime } = this.#options;
		try {
			const { scope } = await this.#describe();
			this.#isRefused = false;
			this.#described.resolve();
			const watchClient = new WatchClient({
				client: resources,
				// The server of the watch need not be the one that has described the type.
				callOptions: () => ({ headers: { [wholeTypeHeader]: "true" } }),
				clock: runtime.clock,
				random: () => runtime.random.next(),
			});
			this.#watchClient = watchClient;
			this.#watch(watchClient, scope);
			this.#planCheck();
		} catch (failure) {
			if (!this.#stop.signal.aborted) {
				this.#refused(ConnectError.from(failure));
			}
		}
	}

	/** Asks a server about the type. @param notBefore - as in the request. */
	async #describe(notBefore = ""): Promise<DescribeTypeResponse> {
		const { type, describing } = this.#options;
		const described = await describing.describeType(
			{ type, notBefore },
			{ signal: this.#stop.signal, timeoutMs: cacheLimits.checkMs },
		);
		const { allowedHosts } = described;
		this.#allowedHosts = allowedHosts && new Set(allowedHosts.names);
		this.#learnRegion(described.region);
		return described;
	}

	/** Requests are read as in that region from now on. */
	#learnRegion(region: string | undefined): void {
		if (region === undefined || region === this.#region) {
			return;
		}
		this.#region = region;
		const primed = this.#primed;
		if (primed !== undefined) {
			primed.service = this.#serviceOf(primed.store, primed.scope);
			this.#wake();
		}
	}

	#serviceOf(store: StateStore, scope: Scope): ResourceServiceMethods {
		const { authorizer, runtime, logger } = this.#options;
		return createResourceService({
			backend: cacheBackend(store),
			registry: new TypeRegistry([this.#cachedType(scope)]),
			region: this.#region || undefined,
			...{ authorizer, runtime, logger },
		});
	}

	#watch(watchClient: WatchClient, scope: Scope): void {
		const watch: Watch = watchClient.watch(
			{
				type: typeOf(this.#options.type),
				tenancy: { partition: wildcard, namespace: wildcard },
				// With copies: whether a caller sees them depends on what it requests of the cache.
				region: wildcard,
			},
			(update) => {
				if (this.#upstream === watch) {
					this.#received(update, scope);
				}
			},
		);
		this.#upstream = watch;
		this.#primeAgain = () => {
			watch.close();
			this.#watch(watchClient, scope);
		};
	}

	/** Begins the upstream watch with a snapshot. */
	#primeAgain = () => {};

	#received(update: WatchUpdate, scope: Scope): void {
		switch (update.kind) {
			case "snapshot-begins":
				this.#loading = [];
				this.#drop("the cache of the agent is primed again");
				break;
			case "present":
				this.#loading.push(update.resource);
				break;
			case "snapshot-complete":
				this.#prime(Number(update.version), scope);
				break;
			case "changes":
				this.#advance(Number(update.version), update.changes);
				break;
			case "current":
				if (Number(update.version) > this.version) {
					this.#advance(Number(update.version), []);
				}
				break;
			case "lost":
				// The checks of the cache decide until when it is current.
				break;
			case "ended":
				this.#refused(update.error);
		}
	}

	#prime(version: number, scope: Scope): void {
		const { runtime, logger, deliveries, position } = this.#options;
		const store = new StateStore(runtime, defaultStorageLimits, deliveries);
		for (const resource of this.#loading) {
			store.load(resource);
		}
		this.#loading = [];
		store.begin(version);
		this.#primed = {
			...{ store, scope },
			service: this.#serviceOf(store, scope),
			replaced: position.replaced,
			currentMs: never,
		};
		this.#problem = "";
		logger.info({ type: this.key, resources: store.size, version }, "the cache is primed");
		this.#beginCheck();
	}

	/** The type as far as reads need it: data is not decoded, and no hooks decide about it. */
	#cachedType(scope: Scope): ResourceType {
		const { group, groupVersion, kind } = this.#options.type;
		const type = { group, groupVersion, kind };
		return { schema: EmptySchema, type, key: this.key, family: familyKey(type), scope, hooks: {} };
	}

	#advance(
		version: number,
		changes: Extract<WatchUpdate, { readonly kind: "changes" }>["changes"],
	): void {
		const store = this.#primed?.store;
		if (store === undefined) {
			return;
		}
		if (version <= store.revision) {
			// A check has proven that there is no such change: something is wrong with what servers say.
			this.#startOver(`a change of version ${version} came after version ${store.revision}`);
			return;
		}
		if (this.watches > 0) {
			this.#options.position.shown(version);
		}
		store.apply(
			version,
			changes.map(({ kind, resource }) => ({
				op: kind === "upsert" ? ("put" as const) : ("delete" as const),
				resource,
			})),
		);
		this.#wake();
	}

	#startOver(reason: string): void {
		const { logger } = this.#options;
		logger.warn({ type: this.key, reason }, "the cache is primed again");
		this.#drop("the cache of the agent is primed again");
		this.#primeAgain();
	}

	/** Forgets all that is cached. */
	#drop(reason: string): void {
		this.#primed?.store.close(new WatchClosed(reason));
		this.#primed = undefined;
		this.#wake();
	}

	#planCheck(): void {
		const { clock } = this.#options.runtime;
		this.#timer?.cancel();
		this.#timer = clock.setTimer(cacheLimits.checkEveryMs, () => {
			this.#beginCheck();
			this.#planCheck();
		});
	}

	/** @param notBefore - the version that is to be reached; 0 for all that the storage has. */
	#beginCheck(notBefore = 0): Check {
		const check: Check = {
			notBefore,
			done: this.#runCheck(notBefore)
				.catch((failure: unknown) => this.#checkFailed(ConnectError.from(failure)))
				.finally(() => {
					if (this.#check === check) {
						this.#check = undefined;
					}
				}),
		};
		this.#check = check;
		return check;
	}

	async #runCheck(notBefore: number): Promise<void> {
		const { runtime } = this.#options;
		const primed = this.#primed;
		if (primed === undefined) {
			return;
		}
		const { store } = primed;
		// Events go on while the check does.
		const begunRevision = store.revision;
		const begunMs = runtime.clock.monotonic();
		this.#noticeSuspension();
		const suspensions = this.#suspensions;
		const { version, typeVersion } = await this.#describe(notBefore === 0 ? "" : String(notBefore));
		const [reached, lastChange] = [Number(version), Number(typeVersion)];
		if (notBefore === 0 && reached < begunRevision && this.#primed === primed) {
			this.#startOver(
				`the storage is at version ${reached}, and the cache was at ${begunRevision}`,
			);
			return;
		}
		await this.#whenApplied(primed, lastChange, begunMs + cacheLimits.checkMs);
		if (this.#primed !== primed || store.revision < lastChange) {
			return;
		}
		if (reached > store.revision) {
			this.#advance(reached, []);
		}
		this.#noticeSuspension();
		if (notBefore === 0 && this.#suspensions === suspensions) {
			primed.currentMs = Math.max(primed.currentMs, begunMs);
			this.#wake();
		}
	}

	/** Waits until the changes up to a version were applied, or until it takes too long. */
	async #whenApplied(primed: Primed, version: number, untilMs: number): Promise<void> {
		while (this.#primed === primed && primed.store.revision < version) {
			if (!(await this.#changed(untilMs))) {
				return;
			}
		}
	}

	/** Waits until something has changed about the cache. Returns false when that takes too long. */
	async #changed(untilMs: number): Promise<boolean> {
		const { clock } = this.#options.runtime;
		const leftMs = untilMs - clock.monotonic();
		if (leftMs <= 0) {
			return false;
		}
		const changed = Promise.withResolvers<void>();
		this.#waiters.add(changed.resolve);
		try {
			await within(clock, leftMs, changed.promise);
		} finally {
			this.#waiters.delete(changed.resolve);
		}
		return true;
	}

	#wake(): void {
		for (const wake of [...this.#waiters]) {
			wake();
		}
	}

	#checkFailed(failure: ConnectError): void {
		switch (failure.code) {
			case Code.NotFound:
			case Code.FailedPrecondition:
			case Code.PermissionDenied:
			case Code.Unauthenticated:
			case Code.Unimplemented:
				if (this.#primed !== undefined) {
					this.#refused(failure);
				}
				break;
			default:
				this.#options.logger.debug({ type: this.key, err: failure }, "a check of the cache failed");
		}
	}

	/** The type can't be cached now: its calls are forwarded until it can. */
	#refused(failure: ConnectError): void {
		const { runtime, logger } = this.#options;
		this.#isRefused = true;
		this.#upstream = undefined;
		this.#watchClient?.close();
		this.#watchClient = undefined;
		this.#drop("the agent can't cache the type any more");
		const isUnavailable =
			failure.code === Code.Unavailable || failure.code === Code.DeadlineExceeded;
		if (!isUnavailable) {
			this.#described.reject(failure);
			if (this.#problem !== failure.message) {
				this.#problem = failure.message;
				logger.warn(
					{ type: this.key, problem: failure.message },
					`the type is not cached, and its calls are forwarded${hint(failure.code)}`,
				);
			}
		}
		const { retryMs, retryUnavailableMs } = cacheLimits;
		this.#timer?.cancel();
		this.#timer = runtime.clock.setTimer(
			isUnavailable ? retryUnavailableMs : retryMs,
			() => void this.#begin(),
		);
	}
}

/** What to do about a failure. */
function hint(code: Code): string {
	switch (code) {
		case Code.Unimplemented:
			return ": the servers are older than this agent, or --servers names ports that are not for agents";
		case Code.PermissionDenied:
			return ": grant operator:read on all of its resources to the token of --cache-token-file";
		case Code.Unauthenticated:
			return ": check --cache-token-file";
		default:
			return "";
	}
}
