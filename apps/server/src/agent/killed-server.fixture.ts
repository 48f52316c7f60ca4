import { correctConnectError } from "@plinth/resource-service";
import { createRpcRouter, type RpcRouter } from "@plinth/rpc-server";
import { silentLogger, systemClock } from "@plinth/runtime";
import { http2OfTests } from "../http2.fixture.ts";
import { Exchanges } from "../listener/exchanges.ts";
import { defaultListenerLimits } from "../listener/limits.ts";
import { type Listener, openListener } from "../listener/listener.ts";
import { createPlainEndpoints } from "../listener/plain-endpoints.ts";
import { createRpcHandler } from "../listener/rpc-handler.ts";
import type { Agent } from "./agent.ts";

/** A server of services in this process, which can be killed and started again at the same address. */
export class KilledServer {
	readonly #register: (router: RpcRouter) => void;
	#listener: Listener | undefined;
	#port = 0;

	/** @param register - registers the services, at each start. */
	constructor(register: (router: RpcRouter) => void) {
		this.#register = register;
	}

	get address(): string {
		return `http://127.0.0.1:${this.#port}`;
	}

	get isRunning(): boolean {
		return this.#listener !== undefined;
	}

	async start(): Promise<void> {
		const limits = defaultListenerLimits;
		const router = createRpcRouter({
			...{ clock: systemClock, readMaxBytes: limits.messageBytes },
			correctError: correctConnectError,
		});
		this.#register(router);
		this.#listener = await openListener({
			address: { host: "127.0.0.1", port: this.#port },
			handler: createRpcHandler({
				router,
				fallback: createPlainEndpoints(router, () => ({ problems: [], pending: [] })),
				exchanges: new Exchanges({
					...{ clock: systemClock, logger: silentLogger, limits },
					onCut: () => {},
				}),
				logger: silentLogger,
			}),
			...{ limits, clock: systemClock, logger: silentLogger },
			...http2OfTests(),
		});
		this.#port = this.#listener.address.port;
	}

	/** Ends the server with all of its connections. */
	async kill(): Promise<void> {
		const listener = this.#listener;
		this.#listener = undefined;
		await listener?.close(0);
	}
}

/** Whether the agent takes all of the servers as ready. */
export async function areReady(agent: Agent, servers: readonly KilledServer[]): Promise<boolean> {
	const report = await (await fetch(`${agent.address}/readyz`)).text();
	return servers.every(({ address }) => report.includes(`${address}: ready`));
}
