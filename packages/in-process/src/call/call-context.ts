import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { type ContextValues, createContextValues, type HandlerContext } from "@connectrpc/connect";
import type { Clock } from "@plinth/runtime";
import type { Route } from "./route-table.ts";

/** Why a call ended, for a signal that is created later. */
interface Ended {
	readonly reason: unknown;
}

/**
 * The context that a handler receives. Its parts are created on first access: an abort signal costs
 * more than the rest of a call, and most handlers need none.
 *
 * The properties are getters of the class: pass the context on as it is, since a spread copies no getters.
 */
export class CallContext implements HandlerContext {
	readonly #route: Route;
	readonly #clock: Clock;
	readonly #deadlineMs: number | undefined;
	#requestHeader: Headers | undefined;
	#responseHeader: Headers | undefined;
	#responseTrailer: Headers | undefined;
	#values: ContextValues | undefined;
	#controller: AbortController | undefined;
	#ended: Ended | undefined;

	/** `deadlineMs` is a time on the clock's monotonic scale. */
	constructor(
		route: Route,
		clock: Clock,
		requestHeader: Headers | undefined,
		deadlineMs: number | undefined,
	) {
		this.#route = route;
		this.#clock = clock;
		this.#requestHeader = requestHeader;
		this.#deadlineMs = deadlineMs;
	}

	get service(): DescService {
		return this.#route.spec.method.parent;
	}

	get method(): DescMethod {
		return this.#route.spec.method;
	}

	get protocolName(): string {
		return "in-process";
	}

	get requestMethod(): string {
		return "POST";
	}

	get url(): string {
		return this.#route.url;
	}

	get requestHeader(): Headers {
		this.#requestHeader ??= new Headers();
		return this.#requestHeader;
	}

	get responseHeader(): Headers {
		this.#responseHeader ??= new Headers();
		return this.#responseHeader;
	}

	get responseTrailer(): Headers {
		this.#responseTrailer ??= new Headers();
		return this.#responseTrailer;
	}

	get values(): ContextValues {
		this.#values ??= this.#route.options.contextValues?.() ?? createContextValues();
		return this.#values;
	}

	get signal(): AbortSignal {
		if (this.#controller === undefined) {
			this.#controller = new AbortController();
			if (this.#ended !== undefined) {
				this.#controller.abort(this.#ended.reason);
			}
		}
		return this.#controller.signal;
	}

	/**
	 * A standalone function, so that destructuring `{ timeoutMs }` works as it does on the wire. In whole milliseconds,
	 * rounded up: Connect's clients send what they are passed, and servers accept no fractions.
	 */
	get timeoutMs(): () => number | undefined {
		const deadlineMs = this.#deadlineMs;
		const clock = this.#clock;
		return () => (deadlineMs === undefined ? undefined : Math.ceil(deadlineMs - clock.monotonic()));
	}

	/** The response headers, if the handler has accessed them. */
	get touchedHeader(): Headers | undefined {
		return this.#responseHeader;
	}

	/** The response trailers, if the handler has accessed them. */
	get touchedTrailer(): Headers | undefined {
		return this.#responseTrailer;
	}

	/** Aborts the handler's signal. Only the first reason counts. */
	abort(reason?: unknown): void {
		if (this.#ended === undefined) {
			this.#ended = { reason };
			this.#controller?.abort(reason);
		}
	}
}
