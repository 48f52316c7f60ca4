import type { DescMethod } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import type { ForwarderPosition } from "@plinth/forwarding";
import { ResourceService } from "@plinth/proto";
import type { AgentCacheService } from "@plinth/proto/gen/plinth/agent/v1/agent_cache_service_pb.js";
import type { Access, Authorizer, TypeLike } from "@plinth/resource";
import {
	correctConnectError,
	type ResourceServiceMethods,
	rememberAccess,
	tokenOf,
	WatchSet,
} from "@plinth/resource-service";
import { createRpcRouter, type RpcRouter } from "@plinth/rpc-server";
import type { Logger, Runtime } from "@plinth/runtime";
import { WatchDeliveries } from "@plinth/storage";
import { type Exchange, exchangeOf } from "../../listener/exchange.ts";
import { ExchangeCarrier } from "../../listener/exchange-carrier.ts";
import { logFaults } from "../../listener/log-faults.ts";
import { isOfProgram } from "../../listener/origin/origin-check.ts";
import { type HttpRequest, type HttpResponse, pathOf } from "../../listener/request-handler.ts";
import { cacheLimits } from "./cache-limits.ts";
import {
	type CachedRequest,
	cachedMethod,
	decodeRequest,
	namedPosition,
	peekBody,
	versionOf,
} from "./cached-request.ts";
import type { FollowedToken } from "./followed-token.ts";
import { FollowedTokens } from "./followed-tokens.ts";
import { SubjectCounts } from "./subject-counts.ts";
import { TypeCache } from "./type-cache.ts";
import { within } from "./within.ts";

/** The header of a response from a cache with the version of the cache. */
export const cacheVersionHeader = "x-plinth-cache-version";

/** The header of a response from a cache: the cache has all changes that were made this many milliseconds ago, or before. */
const cacheAgeHeader = "x-plinth-cache-age-ms";

/** Counts what caches do. */
export interface CacheObserver {
	/** A call for a cached type was served from the cache, or forwarded. */
	called(outcome: "served" | "forwarded"): void;
}

/** Options of `AgentCache`. */
export interface AgentCacheOptions {
	readonly types: readonly TypeLike[];
	/** Calls servers with the token of the caches. */
	readonly resources: Client<typeof ResourceService>;
	/** The same. */
	readonly describing: Pick<Client<typeof AgentCacheService>, "describeType">;
	/** Calls servers with the token of each call alone. */
	readonly rights: Pick<Client<typeof AgentCacheService>, "followAccess">;
	readonly position: ForwarderPosition;
	readonly observer: CacheObserver;
	readonly runtime: Runtime;
	readonly logger: Logger;
}

/** What serves a call, or one of the watches of a set. */
interface ServedPart {
	readonly cache: TypeCache;
	/** That of the cache when the call was admitted. */
	readonly service: ResourceServiceMethods;
	/** Counts a watch no longer. May be called again. */
	readonly ended: () => void;
}

/** A call that caches serve. */
interface ServedCall {
	/** One for each watch of a set, in their order; one for other calls. */
	readonly parts: readonly ServedPart[];
	readonly access: Access;
	/** The body of the request, so that it can be forwarded. */
	readonly body: Uint8Array;
	hasFailed: boolean;
}

/**
 * Serves reads, lists and watches of some types from caches of the agent.
 *
 * ```
 *   call ─▶ a type that is cached? ─▶ rights known? ─▶ cache at its position? ─▶ served
 *                │ no                     │ no               │ no                  │ fails
 *                └────────────────────────┴──────────────────┴─────────────────────┴──▶ forwarded
 * ```
 *
 * Invariants:
 *
 * - Calls are served by the service that servers run, over the state of the cache, with the rights that servers have told.
 * - A set of watches is served if all of them can be, each from the cache of its type.
 * - Requests of web pages are forwarded, and those whose Host servers would refuse: servers tell pages from programs.
 * - A read or a list that fails is forwarded, so that its error is one of the servers: only they know what else exists.
 * - A response is no older than what the agent has passed on before, or what the client has named.
 * - A call that was not served is forwarded whole, as it came.
 */
export class AgentCache {
	readonly #options: AgentCacheOptions;
	readonly #types: ReadonlyMap<string, TypeCache>;
	readonly #tokens: FollowedTokens;
	readonly #watches = new SubjectCounts(cacheLimits.watches);
	readonly #lists = new SubjectCounts(cacheLimits.lists);
	readonly #calls = new WeakMap<Exchange, ServedCall>();
	readonly #router: RpcRouter;
	readonly #streamsEnd = new AbortController();
	readonly #callsEnd = new AbortController();

	/** The access of each call is remembered before it reaches the service. It is asked again only after the access has ended. */
	readonly #authorizer: Authorizer = {
		authenticate: () => {
			throw new ConnectError("the rights of the token are not known: call again", Code.Unavailable);
		},
	};

	constructor(options: AgentCacheOptions) {
		const { types, resources, describing, rights, position, runtime, logger } = options;
		this.#options = options;
		const deliveries = new WatchDeliveries(runtime);
		const common = { resources, describing, position, deliveries, runtime, logger };
		const authorizer = this.#authorizer;
		const cached = types.map((type) => new TypeCache({ type, authorizer, ...common }));
		this.#types = new Map(cached.map((cache) => [cache.key, cache]));
		this.#tokens = new FollowedTokens({ client: rights, runtime, logger });
		this.#router = createRpcRouter({
			clock: runtime.clock,
			// Requests are not compressed, and responses need not be.
			acceptCompression: [],
			readMaxBytes: cacheLimits.requestBytes,
			shutdownSignal: this.#callsEnd.signal,
			streamsEnd: this.#streamsEnd.signal,
			onFault: logFaults(logger),
			correctError: correctConnectError,
		});
		this.#router.service(ResourceService, {
			read: (request, call) =>
				this.#unary(call, (service) => Promise.resolve(service.read(request, call))),
			list: (request, call) =>
				this.#unary(call, (service) => Promise.resolve(service.list(request, call))),
			watchList: (request, call) => {
				const { parts } = this.#servedCall(call);
				this.#show(parts, call);
				return partOf(parts, 0).service.watchList(request, call);
			},
			watchSet: (request, call) => {
				const { parts } = this.#servedCall(call);
				this.#show(parts, call);
				return new WatchSet(request, call, {
					admission: {
						watchesPerSet: cacheLimits.watchesPerSet,
						// They were counted when the call was admitted.
						admit: (_, index) => partOf(parts, index).ended,
					},
					// The caches have reached it.
					reachPosition: async () => {},
					watchList: (watch, index) => partOf(parts, index).service.watchList(watch, call),
				});
			},
		});
	}

	/** The caches, for reports. */
	get types(): Iterable<TypeCache> {
		return this.#types.values();
	}

	/** The tokens whose rights are followed. */
	get tokens(): number {
		return this.#tokens.size;
	}

	/** The watches that caches serve. */
	get watches(): number {
		return this.#watches.all;
	}

	/**
	 * Waits until servers have described the types, or until that takes too long: the agent may start before they do.
	 *
	 * @throws ConnectError NotFound that names a type which is not registered.
	 */
	async checkTypes(): Promise<void> {
		const described = [...this.#types.values()].map((cache) =>
			cache.described.catch((failure: unknown) => {
				if (ConnectError.from(failure).code === Code.NotFound) {
					throw failure;
				}
			}),
		);
		await within(this.#options.runtime.clock, cacheLimits.startMs, Promise.all(described));
	}

	/** Serves a call from a cache, or forwards it. Does not throw. */
	serve(
		exchange: Exchange,
		request: HttpRequest,
		response: HttpResponse,
		forward: () => void,
	): void {
		const method = cachedMethod(request);
		const plan = method && this.#router.plan(pathOf(request), request);
		if (method === undefined || plan === undefined) {
			forward();
			return;
		}
		const call = { exchange, request, response, method };
		void this.#admit(call)
			.catch((failure: unknown) => {
				this.#options.logger.debug({ err: failure }, "a call could not be served from a cache");
				return undefined;
			})
			.then((served) => {
				if (exchange.isClosed) {
					exchange.settled();
				} else if (served === undefined) {
					forward();
				} else {
					this.#calls.set(exchange, served);
					const passOn = () => this.#passOn(exchange, served, forward);
					const carried = { head: request, method, exchange, response, meter: undefined, passOn };
					this.#router.serve(plan, new ExchangeCarrier(carried));
				}
			});
	}

	/** Ends watches, so that their clients open them elsewhere. */
	endStreams(reason: ConnectError): void {
		this.#streamsEnd.abort(reason);
	}

	/** Ends all calls, and closes the caches. */
	close(): void {
		const reason = new ConnectError("the agent has stopped", Code.Unavailable);
		this.#streamsEnd.abort(reason);
		this.#callsEnd.abort(reason);
		this.#tokens.close(reason);
		for (const cache of this.#types.values()) {
			cache.close();
		}
	}

	/** Decides who serves a call: a cache, or a server if it returns `undefined`. */
	async #admit(call: IncomingCall): Promise<ServedCall | undefined> {
		const body = await peekBody(call.exchange.body, cacheLimits.requestBytes);
		const decoded = body && decodeRequest(call.request, call.method, body);
		const queries = decoded && this.#cachedQueries(decoded);
		if (body === undefined || decoded === undefined || queries === undefined) {
			return undefined;
		}
		const served = await this.#servedBy(queries, decoded, call);
		if (served === undefined) {
			this.#options.observer.called("forwarded");
			return undefined;
		}
		return { ...served, body, hasFailed: false };
	}

	/** What a call reads, with the caches; `undefined` if there is not a cache for all of it. */
	#cachedQueries({ queries }: CachedRequest): readonly CacheQuery[] | undefined {
		const cached: CacheQuery[] = [];
		for (const { typeKey, afterVersion } of queries) {
			const cache = this.#types.get(typeKey);
			if (cache === undefined || cached.length === cacheLimits.watchesPerSet) {
				return undefined;
			}
			cached.push({ cache, afterVersion });
		}
		return cached;
	}

	/** Waits until caches can serve a call. Returns `undefined` if they can't in time. */
	async #servedBy(
		queries: readonly CacheQuery[],
		decoded: CachedRequest,
		call: IncomingCall,
	): Promise<Pick<ServedCall, "parts" | "access"> | undefined> {
		const { request } = call;
		const { positionMs, primingMs } = cacheLimits;
		const isWatch = decoded.method === "WatchList" || decoded.method === "WatchSet";
		const caches = [...new Set(queries.map(({ cache }) => cache))];
		if (caches.some((cache) => (isWatch ? cache.isRefused : cache.service === undefined))) {
			return undefined;
		}
		const requestHeader = { get: (name: string) => request.header(name) ?? null };
		const rights = await this.#tokens.rightsOf(tokenOf({ requestHeader }));
		if (rights === undefined) {
			return undefined;
		}
		if (isWatch) {
			await Promise.all(caches.map((cache) => cache.whenPrimed(primingMs)));
		}
		const mayServe = (cache: TypeCache) =>
			cache.service !== undefined && isOfProgram(request, cache.allowedHosts);
		if (!caches.every(mayServe)) {
			return undefined;
		}
		const positions = this.#positionsOf(request, queries);
		const limitMs = isWatch ? positionMs.watch : positionMs.call;
		if (positions === undefined || !(await reachAll(positions, limitMs))) {
			return undefined;
		}
		// What was true before the waits need not be true any more.
		const { access } = rights;
		const isReached = [...positions].every(([cache, position]) => cache.version >= position);
		if (access === undefined || !isReached || call.exchange.isClosed) {
			return undefined;
		}
		const parts = this.#partsOf(queries, isWatch, access);
		if (parts === undefined) {
			return undefined;
		}
		if (isWatch) {
			this.#endWithCall(parts, call, rights);
		} else if (!this.#countList(call, decoded, access)) {
			return undefined;
		}
		return { parts, access };
	}

	/** Serves a call that is not a watch. If it fails, it is passed on. */
	async #unary<Response>(
		call: HandlerContext,
		run: (service: ResourceServiceMethods) => Promise<Response>,
	): Promise<Response> {
		const served = this.#servedCall(call);
		const { parts, access } = served;
		const { cache, service } = partOf(parts, 0);
		try {
			const response = await run(service);
			// The rights may have ended, and the cache may have been dropped, during a long list.
			if (access.ended?.aborted || cache.service !== service) {
				throw new ConnectError("the cache was dropped, or the rights have ended", Code.Unavailable);
			}
			this.#show(parts, call);
			return response;
		} catch (failure) {
			served.hasFailed = true;
			throw failure;
		}
	}

	/** Forwards a call that has failed. Returns whether it has. */
	#passOn(exchange: Exchange, { hasFailed, body }: ServedCall, forward: () => void): boolean {
		if (hasFailed) {
			this.#options.observer.called("forwarded");
			exchange.body.putBack(body);
			forward();
		}
		return hasFailed;
	}

	/** Remembers what is shown to a client now, and tells in headers what the cache that is furthest behind has. */
	#show(parts: readonly ServedPart[], { responseHeader }: HandlerContext): void {
		this.#options.observer.called("served");
		const versions = parts.map(({ cache }) => cache.version);
		const ageMs = Math.max(0, ...parts.map(({ cache }) => cache.ageMs));
		this.#options.position.shown(Math.max(...versions));
		responseHeader.set(cacheVersionHeader, String(Math.min(...versions)));
		responseHeader.set(cacheAgeHeader, String(Math.ceil(ageMs)));
	}

	/** The versions that caches must have reached; `undefined` if the client names a malformed one. */
	#positionsOf(
		request: HttpRequest,
		queries: readonly CacheQuery[],
	): ReadonlyMap<TypeCache, number> | undefined {
		const named = namedPosition(request);
		const positions = new Map<TypeCache, number>();
		for (const { cache, afterVersion } of queries) {
			const after = versionOf(afterVersion);
			if (named === undefined || after === undefined) {
				return undefined;
			}
			const known = positions.get(cache) ?? this.#options.position.newest;
			positions.set(cache, Math.max(known, named, after));
		}
		return positions;
	}

	/** What serves a call now. Its watches are counted. Returns `undefined` if a cache can't, or if there is no room for all. */
	#partsOf(
		queries: readonly CacheQuery[],
		isWatch: boolean,
		{ subject }: Access,
	): readonly ServedPart[] | undefined {
		const parts: ServedPart[] = [];
		for (const { cache } of queries) {
			const { service } = cache;
			const ended = isWatch ? this.#countWatch(cache, subject) : () => {};
			if (service === undefined || ended === undefined) {
				ended?.();
				endAll(parts);
				return undefined;
			}
			parts.push({ cache, service, ended });
		}
		return parts;
	}

	/** Counts a watch until the function that is returned is called; `undefined` if there are too many. */
	#countWatch(cache: TypeCache, subject: string): (() => void) | undefined {
		const leave = this.#watches.enter(subject);
		if (leave === undefined) {
			return undefined;
		}
		cache.watches += 1;
		let isCounted = true;
		return () => {
			if (isCounted) {
				isCounted = false;
				leave();
				cache.watches -= 1;
			}
		};
	}

	/** Counts watches, and the use of the rights, until the call has ended at the latest. */
	#endWithCall(
		parts: readonly ServedPart[],
		{ response }: IncomingCall,
		rights: FollowedToken,
	): void {
		rights.uses += 1;
		response.onceClosed(() => {
			endAll(parts);
			rights.uses -= 1;
			rights.lastUsedMs = this.#options.runtime.clock.monotonic();
		});
	}

	/** Counts a list until its response was read. Returns whether there is room for it, and true for other calls. */
	#countList({ response }: IncomingCall, decoded: CachedRequest, { subject }: Access): boolean {
		// Further pages are of limited size, and can't be read elsewhere.
		if (decoded.method !== "List" || decoded.pageToken !== "") {
			return true;
		}
		const leave = this.#lists.enter(subject);
		if (leave === undefined) {
			return false;
		}
		response.onceClosed(leave);
		return true;
	}

	/** The call that is served, with the rights of its caller. */
	#servedCall({ values }: HandlerContext): ServedCall {
		const served = this.#calls.get(exchangeOf(values));
		if (served === undefined) {
			throw new Error("a call was served that was not admitted");
		}
		rememberAccess(values, this.#authorizer, served.access);
		return served;
	}
}

/** A call that a cache may serve. */
interface IncomingCall {
	readonly exchange: Exchange;
	readonly request: HttpRequest;
	readonly response: HttpResponse;
	readonly method: DescMethod;
}

/** What a call reads, or one of the watches of a set. */
interface CacheQuery {
	readonly cache: TypeCache;
	/** The version that a watch resumes after; otherwise empty. */
	readonly afterVersion: string;
}

/** Waits until each cache has reached its version. Returns whether all have. */
async function reachAll(
	positions: ReadonlyMap<TypeCache, number>,
	limitMs: number,
): Promise<boolean> {
	const reached = [...positions].map(([cache, position]) => cache.reach(position, limitMs));
	return (await Promise.all(reached)).every(Boolean);
}

function endAll(parts: readonly ServedPart[]): void {
	for (const { ended } of parts) {
		ended();
	}
}

function partOf(parts: readonly ServedPart[], index: number): ServedPart {
	const part = parts[index];
	if (part === undefined) {
		throw new Error(`a call has no part ${index}`);
	}
	return part;
}
