import type { RpcRouter } from "@plinth/rpc-server";
import { silentLogger, systemClock } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import { onTestFinished } from "vitest";
import { http2OfTests } from "./http2.fixture.ts";
import { Exchanges, type ExchangesOptions } from "./listener/exchanges.ts";
import type { Http2Implementation } from "./listener/http2/http2-server.ts";
import { defaultListenerLimits, type ListenerLimits } from "./listener/limits.ts";
import { openListener } from "./listener/listener.ts";
import { type RequestHandler, sendText } from "./listener/request-handler.ts";
import { createRpcHandler, type RpcHandlerOptions } from "./listener/rpc-handler.ts";
import type { TlsMaterial } from "./listener/tls/tls-files.ts";

/** A listener whose exchanges are checked on a clock that the test moves. */
export interface StartedListener {
	readonly address: string;
	readonly clock: FakeClock;
	readonly exchanges: Exchanges;
	/** Why exchanges were ended, in order. */
	readonly cuts: readonly string[];
	/** Closes the listener, and destroys connections that are open after `limitMs`. */
	close(limitMs: number): Promise<void>;
}

/** Serves a router on a free port, and text on all other paths, until the test is over. */
export async function startListener(
	router: RpcRouter,
	options: Pick<RpcHandlerOptions, "special" | "pages"> &
		Partial<Pick<ExchangesOptions, "logger" | "streamsMayStall">> & {
			readonly clock?: FakeClock;
			/** The clock of the listener's connections; the system's by default. */
			readonly connectionClock?: FakeClock;
			readonly limits?: Partial<ListenerLimits>;
			/** Wraps the handler of requests. */
			readonly wrap?: (handler: RequestHandler) => RequestHandler;
			readonly tls?: TlsMaterial;
			readonly http2?: Http2Implementation;
		} = {},
): Promise<StartedListener> {
	const { clock = new FakeClock(), logger = silentLogger, streamsMayStall, tls } = options;
	const { special, pages, wrap = (handler) => handler } = options;
	const limits = { ...defaultListenerLimits, ...options.limits };
	const cuts: string[] = [];
	const exchanges = new Exchanges({
		...{ clock, logger, limits },
		...(streamsMayStall !== undefined && { streamsMayStall }),
		onCut: (reason) => cuts.push(reason),
	});
	const listener = await openListener({
		address: { host: "127.0.0.1", port: 0 },
		handler: wrap(
			createRpcHandler({
				router,
				fallback: (_request, response) => sendText(response, 404, "no such path"),
				...{ exchanges, logger },
				...(special && { special }),
				...(pages && { pages }),
			}),
		),
		limits,
		...http2OfTests(),
		...(options.http2 && { http2: options.http2 }),
		clock: options.connectionClock ?? systemClock,
		logger,
		...(tls && { tls }),
	});
	onTestFinished(() => listener.close(0));
	const address = `${tls ? "https" : "http"}://127.0.0.1:${listener.address.port}`;
	return { ...{ address, clock, exchanges, cuts }, close: (limitMs) => listener.close(limitMs) };
}
