import { type Client, Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import type { ForwarderPosition } from "@plinth/forwarding";
import { ResourceService } from "@plinth/proto";
import type { AgentCacheService } from "@plinth/proto/gen/plinth/agent/v1/agent_cache_service_pb.js";
import type { Authorizer, TypeLike } from "@plinth/resource";
import {
	correctConnectError,
	type ResourceServiceMethods,
	rememberAccess,
	WatchSet,
} from "@plinth/resource-service";
import { createRpcRouter, type RpcRouter } from "@plinth/rpc-server";
import type { Logger, Runtime } from "@plinth/runtime";
import { WatchDeliveries } from "@plinth/storage";
import { type Exchange, exchangeOf } from "../../listener/exchange.ts";
import { ExchangeCarrier } from "../../listener/exchange-carrier.ts";
import { logFaults } from "../../listener/log-faults.ts";
import { type HttpRequest, type HttpResponse, pathOf } from "../../listener/request-handler.ts";
import { cacheLimits } from "./cache-limits.ts";
import type { CacheObserver } from "./cache-observer.ts";
import { cachedMethod } from "./cached-request.ts";
import { type AdmittedCall, CallAdmission, type ServedPart } from "./call-admission.ts";
import { TypeCache } from "./type-cache.ts";
import { within } from "./within.ts";

/** The header of a response from a cache with the version of the cache. */
export const cacheVersionHeader = "x-plinth-cache-version";

/** The header of a response from a cache: the cache has all changes that were made this many milliseconds ago, or before. */
const cacheAgeHeader = "x-plinth-cache-age-ms";

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

/** A call that caches serve. */
interface ServedCall extends AdmittedCall {
	hasFailed: boolean;
}

/**
 * Serves reads, lists and watches of some types from caches of the agent.
 *
 * ```
 *   call ─▶ head: may it be cached? ─▶ CallAdmission: can it be served? ─▶ the resource service, over the caches
 *                │ no                         │ no                            │ a read or a list fails
 *                └────────────────────────────┴───────────────────────────────┴──▶ forwarded
 * ```
 *
 * Invariants:
 *
 * - Calls are served by the service that servers run, over the state of the cache, with the rights that servers have told.
 * - A set of watches is served if all of them can be, each from the cache of its type. The first one counts until the response
 *   has ended, as it stands for the stream at a server.
 * - Requests of web pages are forwarded, and those whose Host servers would refuse: servers tell pages from programs.
 * - A read or a list that fails is forwarded, so that its error is one of the servers: only they know what else exists.
 * - A response is no older than what the agent has passed on before, or what the client has named.
 * - A call that was not served is forwarded whole, as it came.
 */
export class AgentCache {
	readonly #options: AgentCacheOptions;
	readonly #types: ReadonlyMap<string, TypeCache>;
	readonly #admission: CallAdmission;
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
		const { types, resources, describing, rights, position, observer, runtime, logger } = options;
		this.#options = options;
		const deliveries = new WatchDeliveries(runtime);
		const common = { resources, describing, position, deliveries, runtime, logger };
		const authorizer = this.#authorizer;
		const cached = types.map((type) => new TypeCache({ type, authorizer, ...common }));
		this.#types = new Map(cached.map((cache) => [cache.key, cache]));
		this.#admission = new CallAdmission({
			types: this.#types,
			...{ rights, position, observer, runtime, logger },
		});
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
				this.#showWatch(parts, call);
				return partOf(parts, 0).service.watchList(request, call);
			},
			watchSet: (request, call) => {
				const { parts } = this.#servedCall(call);
				this.#showWatch(parts, call);
				return new WatchSet(request, call, {
					admission: {
						watchesPerSet: cacheLimits.watchesPerSet,
						// They were counted when the call was admitted, and the first one is until its response has ended.
						admit: (_, index) => (index === 0 ? () => {} : partOf(parts, index).ended),
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
		return this.#admission.tokens;
	}

	/** The watches that caches serve. */
	get watches(): number {
		return this.#admission.watches;
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
		void this.#admission
			.admit(call)
			.catch((failure: unknown) => {
				this.#options.logger.debug({ err: failure }, "a call could not be served from a cache");
				return undefined;
			})
			.then((admitted) => {
				if (exchange.isClosed) {
					exchange.settled();
				} else if (admitted === undefined) {
					forward();
				} else {
					const served = { ...admitted, hasFailed: false };
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
		this.#admission.close(reason);
		for (const cache of this.#types.values()) {
			cache.close();
		}
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

	/** Forwards a read or a list that has failed. Returns whether it has. */
	#passOn(exchange: Exchange, { hasFailed, body }: ServedCall, forward: () => void): boolean {
		if (!hasFailed || body === undefined) {
			return false;
		}
		this.#options.observer.called("forwarded");
		exchange.body.putBack(body);
		forward();
		return true;
	}

	/** Begins a watch, unless a cache was dropped since the call was admitted: then the client watches again. */
	#showWatch(parts: readonly ServedPart[], call: HandlerContext): void {
		if (parts.some(({ cache, service }) => cache.service !== service)) {
			throw new ConnectError("the cache was dropped", Code.Unavailable);
		}
		this.#show(parts, call);
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

function partOf(parts: readonly ServedPart[], index: number): ServedPart {
	const part = parts[index];
	if (part === undefined) {
		throw new Error(`a call has no part ${index}`);
	}
	return part;
}
