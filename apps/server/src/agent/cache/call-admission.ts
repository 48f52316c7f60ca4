import type { DescMethod } from "@bufbuild/protobuf";
import type { Client, ConnectError } from "@connectrpc/connect";
import type { ForwarderPosition } from "@plinth/forwarding";
import type { AgentCacheService } from "@plinth/proto/gen/plinth/agent/v1/agent_cache_service_pb.js";
import type { Access } from "@plinth/resource";
import { type ResourceServiceMethods, tokenOf } from "@plinth/resource-service";
import type { Logger, Runtime } from "@plinth/runtime";
import type { Exchange } from "../../listener/exchange.ts";
import { isOfProgram } from "../../listener/origin/origin-check.ts";
import type { HttpRequest, HttpResponse } from "../../listener/request-handler.ts";
import { type CachePositions, whenPrimed, whenReached } from "./await-caches.ts";
import { cacheLimits } from "./cache-limits.ts";
import type { CacheObserver } from "./cache-observer.ts";
import {
	type CachedRequest,
	decodeRequest,
	namedPosition,
	peekBody,
	versionOf,
} from "./cached-request.ts";
import type { FollowedToken } from "./followed-token.ts";
import { FollowedTokens } from "./followed-tokens.ts";
import { SubjectCounts } from "./subject-counts.ts";
import type { TypeCache } from "./type-cache.ts";

/** A call that caches may serve, as far as its head tells. */
export interface IncomingCall {
	readonly exchange: Exchange;
	readonly request: HttpRequest;
	readonly response: HttpResponse;
	readonly method: DescMethod;
}

/** What serves a call, or one of the watches of a set. */
export interface ServedPart {
	readonly cache: TypeCache;
	/** That of the cache when the call was admitted. */
	readonly service: ResourceServiceMethods;
	/** Counts a watch no longer. May be called again. */
	readonly ended: () => void;
}

/** A call that caches serve. */
export interface AdmittedCall {
	/** One for each watch of a set, in their order; one for other calls. */
	readonly parts: readonly ServedPart[];
	readonly access: Access;
	/** The body of a read or a list, so that it can be forwarded. Watches last, and do not keep theirs. */
	readonly body: Uint8Array | undefined;
}

/** Options of `CallAdmission`. */
export interface CallAdmissionOptions {
	/** The caches, by the keys of their types. */
	readonly types: ReadonlyMap<string, TypeCache>;
	/** Calls servers with the token of each call alone. */
	readonly rights: Pick<Client<typeof AgentCacheService>, "followAccess">;
	readonly position: Pick<ForwarderPosition, "newest">;
	/** Is notified of calls for cached types that are not admitted. */
	readonly observer: CacheObserver;
	readonly runtime: Runtime;
	readonly logger: Logger;
}

/**
 * Decides which calls caches serve:
 *
 * ```
 *   types cached? ─▶ rights known? ─▶ caches primed? ─▶ at the position? ─▶ room for it? ─▶ counted, until it has ended
 *       │ no            │ no              │ no              │ no               │ no
 *       └───────────────┴─────────────────┴─────────────────┴──────────────────┴──────────▶ forwarded
 * ```
 *
 * Invariants:
 *
 * - A call that names a region is served only if servers have told which region is theirs.
 * - A set is admitted if each of its watches can be served, and is forwarded as soon as one can't.
 * - Each watch counts until it ends, or until its call has ended at the latest.
 * - What is decided before a wait is decided again after it, if it may have changed: a call is admitted in one step.
 * - Only reads and lists keep the bodies of their requests: watches last.
 */
export class CallAdmission {
	readonly #options: CallAdmissionOptions;
	readonly #tokens: FollowedTokens;
	readonly #watches = new SubjectCounts(cacheLimits.watches);
	readonly #lists = new SubjectCounts(cacheLimits.lists);

	constructor(options: CallAdmissionOptions) {
		const { rights, runtime, logger } = options;
		this.#options = options;
		this.#tokens = new FollowedTokens({ client: rights, runtime, logger });
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
	 * Waits until caches can serve a call. Returns `undefined` if they can't in time, so that it is to be forwarded.
	 *
	 * @throws ConnectError if the body of the request can't be read.
	 */
	async admit(call: IncomingCall): Promise<AdmittedCall | undefined> {
		const body = await peekBody(call.exchange.body, cacheLimits.requestBytes);
		const decoded = body && decodeRequest(call.request, call.method, body);
		const queries = decoded && this.#cachedQueries(decoded);
		if (decoded === undefined || queries === undefined) {
			return undefined;
		}
		const admitted = await this.#admitted(queries, decoded, call);
		if (admitted === undefined) {
			this.#options.observer.called("forwarded");
		}
		return admitted && { ...admitted, body: opensStream(decoded) ? undefined : body };
	}

	/** Ends the rights of all tokens, and the watches that need them. */
	close(reason: ConnectError): void {
		this.#tokens.close(reason);
	}

	/** What a call reads, with the caches; `undefined` if there is not a cache for all of it. */
	#cachedQueries({ queries }: CachedRequest): readonly CacheQuery[] | undefined {
		const cached: CacheQuery[] = [];
		for (const { typeKey, namesRegion, afterVersion } of queries) {
			const cache = this.#options.types.get(typeKey);
			if (cache === undefined || (namesRegion && !cache.knowsRegion)) {
				return undefined;
			}
			cached.push({ cache, afterVersion });
		}
		return cached;
	}

	async #admitted(
		queries: readonly CacheQuery[],
		decoded: CachedRequest,
		call: IncomingCall,
	): Promise<Pick<AdmittedCall, "parts" | "access"> | undefined> {
		const { request } = call;
		const isStream = opensStream(decoded);
		const named = namedPositions(request, queries);
		if (named === undefined || queries.length > cacheLimits.watchesPerSet) {
			return undefined;
		}
		const caches = [...named.keys()];
		if (caches.some((cache) => (isStream ? cache.isRefused : cache.service === undefined))) {
			return undefined;
		}
		const requestHeader = { get: (name: string) => request.header(name) ?? null };
		const rights = await this.#tokens.rightsOf(tokenOf({ requestHeader }));
		if (rights === undefined) {
			return undefined;
		}
		if (isStream && !(await whenPrimed(caches, cacheLimits.primingMs))) {
			return undefined;
		}
		const mayServe = (cache: TypeCache) =>
			cache.service !== undefined && isOfProgram(request, cache.allowedHosts);
		if (!caches.every(mayServe)) {
			return undefined;
		}
		const positions = this.#positionsOf(named);
		if (!(await this.#haveReached(positions, isStream))) {
			return undefined;
		}
		// What was true before the waits need not be true any more.
		const { access } = rights;
		const isReached = [...positions].every(([cache, position]) => cache.version >= position);
		if (access === undefined || !isReached || call.exchange.isClosed) {
			return undefined;
		}
		const parts = this.#partsOf(queries, isStream, access);
		if (parts === undefined) {
			return undefined;
		}
		if (isStream) {
			this.#endWithCall(parts, call, rights);
		} else if (!this.#countList(call, decoded, access)) {
			return undefined;
		}
		return { parts, access };
	}

	/** The versions that caches must have reached: those that the client names, and what the agent has passed on. */
	#positionsOf(named: CachePositions): CachePositions {
		const { newest } = this.#options.position;
		return new Map([...named].map(([cache, version]) => [cache, Math.max(version, newest)]));
	}

	/** Waits until caches have reached their versions. Returns whether they have. */
	#haveReached(positions: CachePositions, isStream: boolean): Promise<boolean> {
		const { position, runtime } = this.#options;
		const { watch, call } = cacheLimits.positionMs;
		const limitMs = isStream ? watch : call;
		return whenReached(positions, { clock: runtime.clock, newest: position.newest, limitMs });
	}

	/** What serves a call now. Its watches are counted. Returns `undefined` if a cache can't, or if there is no room for all. */
	#partsOf(
		queries: readonly CacheQuery[],
		isStream: boolean,
		{ subject }: Access,
	): readonly ServedPart[] | undefined {
		const parts: ServedPart[] = [];
		for (const { cache } of queries) {
			const { service } = cache;
			const ended = isStream ? this.#countWatch(cache, subject) : () => {};
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
}

/** What a call reads, or one of the watches of a set. */
interface CacheQuery {
	readonly cache: TypeCache;
	/** The version that a watch resumes after; otherwise empty. */
	readonly afterVersion: string;
}

function opensStream({ method }: CachedRequest): boolean {
	return method === "WatchList" || method === "WatchSet";
}

/** The versions that the client names, those that watches resume after included; `undefined` if one is malformed. */
function namedPositions(
	request: HttpRequest,
	queries: readonly CacheQuery[],
): CachePositions | undefined {
	const named = namedPosition(request);
	const positions = new Map<TypeCache, number>();
	for (const { cache, afterVersion } of queries) {
		const after = versionOf(afterVersion);
		if (named === undefined || after === undefined) {
			return undefined;
		}
		positions.set(cache, Math.max(positions.get(cache) ?? 0, named, after));
	}
	return positions;
}

function endAll(parts: readonly ServedPart[]): void {
	for (const { ended } of parts) {
		ended();
	}
}
