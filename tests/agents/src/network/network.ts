import { constants } from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";
import { Exchange, type RequestHead } from "./exchange.ts";
import type { Faults } from "./faults.ts";

/** A process that can be called. */
export interface Host {
	/** Handles a call, of which nothing but the head has arrived. */
	handle(exchange: Exchange): void;
}

/** A connection from one process to another. */
export class Link {
	readonly to: string;
	/** The reason why it was lost; `undefined` while it is open. */
	failure: ConnectError | undefined;
	/** Whether the called side accepts no more calls on it. */
	isDraining = false;
	/** Called once, when it begins to drain. */
	onDraining: () => void = () => {};
	readonly exchanges = new Set<Exchange>();
	readonly #network: Network;

	constructor(network: Network, to: string) {
		this.#network = network;
		this.to = to;
	}

	/** Whether new calls can be made on it. */
	get isReady(): boolean {
		return this.failure === undefined && !this.isDraining;
	}

	/** Makes a call. */
	open(head: RequestHead): Exchange {
		const exchange = new Exchange(head, this.#network.faults, {
			arrived: (arrived) => this.#arrived(arrived),
			closed: (closed) => this.exchanges.delete(closed),
			broken: () => this.lose(),
		});
		this.exchanges.add(exchange);
		return exchange;
	}

	/** The called side accepts no more calls. Those that it has go on. */
	drain(): void {
		if (this.isReady) {
			this.isDraining = true;
			this.onDraining();
		}
	}

	#arrived(exchange: Exchange): void {
		const host = this.#network.hostOf(this.to);
		if (this.isDraining || host === undefined) {
			exchange.reset(constants.NGHTTP2_REFUSED_STREAM);
		} else {
			host.handle(exchange);
		}
	}

	/** Loses the connection, with all calls. */
	lose(isCalleeDead = false): void {
		if (this.failure !== undefined) {
			return;
		}
		this.failure = new ConnectError(`the connection to ${this.to} was lost`, Code.Unavailable);
		this.#network.links.delete(this);
		for (const exchange of [...this.exchanges]) {
			exchange.lose(isCalleeDead);
		}
		this.exchanges.clear();
	}
}

/** The simulated network between all processes. */
export class Network {
	readonly faults: Faults;
	/** The connections that are open. */
	readonly links = new Set<Link>();
	readonly #hosts = new Map<string, Host>();

	constructor(faults: Faults) {
		this.faults = faults;
	}

	hostOf(name: string): Host | undefined {
		return this.#hosts.get(name);
	}

	/** A process can be called from now on. */
	add(name: string, host: Host): void {
		this.#hosts.set(name, host);
	}

	/** A process can't be called any more: it has stopped or was killed. Its connections are lost. */
	remove(name: string): void {
		this.#hosts.delete(name);
		for (const link of this.#linksTo(name)) {
			link.lose(true);
		}
	}

	/** A process accepts no more calls. */
	drain(name: string): void {
		for (const link of this.#linksTo(name)) {
			link.drain();
		}
	}

	/** @throws ConnectError Unavailable if the process can't be reached. */
	async connect(to: string): Promise<Link> {
		await this.faults.delay();
		if (!this.#hosts.has(to) || this.faults.strikes(0.1)) {
			throw new ConnectError(`${to} can't be reached`, Code.Unavailable);
		}
		const link = new Link(this, to);
		this.links.add(link);
		return link;
	}

	#linksTo(name: string): readonly Link[] {
		return [...this.links].filter(({ to }) => to === name);
	}
}
