import type { Transport } from "@connectrpc/connect";
import type { Timer } from "@plinth/runtime";
import type { Port, ToTab, ToWorker } from "../view.ts";
import { type LinkContext, ServerLink } from "./server-link.ts";
import { Tab } from "./tab.ts";

/** What the hub depends on. */
export interface HubContext extends LinkContext {
	/** Calls a server with a token; an empty one is no token. */
	readonly connect: (serverUrl: string, token: string) => Transport;
}

/** After this time without a message, in milliseconds, a tab counts as hidden. Tabs that can be seen send something each 10 s. */
const silentMs = 45_000;

/** After this time without a message, in milliseconds, a tab is forgotten. Hidden tabs send something each minute. */
const forgottenMs = 15 * 60_000;

interface KnownTab {
	readonly tab: Tab;
	readonly port: Port<ToWorker, ToTab>;
	link: SharedLink | undefined;
	/** On the monotonic clock. */
	heardMs: number;
}

/** A link, with the tabs that use it: those with the same token. */
interface SharedLink {
	readonly key: string;
	readonly link: ServerLink;
	readonly tabs: Set<KnownTab>;
}

/** Serves the views of all tabs. Tabs with the same token share the streams of the server. */
export class Hub {
	readonly #context: HubContext;
	readonly #tabs = new Set<KnownTab>();
	readonly #links = new Map<string, SharedLink>();
	#check: Timer | undefined;

	constructor(context: HubContext) {
		this.#context = context;
	}

	/** Serves a tab until it says bye, or the returned function is called. */
	add(port: Port<ToWorker, ToTab>): () => void {
		let known: KnownTab | undefined;
		port.listen((message) => {
			if (message.kind === "hello" && (known === undefined || !this.#tabs.has(known))) {
				const tab = new Tab(port, this.#context.clock);
				known = { tab, port, link: undefined, heardMs: 0 };
				this.#tabs.add(known);
				this.#checkSoon();
			}
			if (known === undefined || !this.#tabs.has(known)) {
				if (message.kind !== "bye") {
					port.post({ kind: "unknown" });
				}
				return;
			}
			known.heardMs = this.#context.clock.monotonic();
			this.#receive(known, message);
		});
		return () => known && this.#forget(known);
	}

	#receive(known: KnownTab, message: ToWorker): void {
		const { tab } = known;
		switch (message.kind) {
			case "hello":
				this.#connect(known, message.serverUrl, message.token);
				break;
			case "visible":
				tab.show(message.isVisible);
				break;
			case "open":
				tab.open(message.view, message.request);
				break;
			case "reshape":
				tab.reshape(message);
				break;
			case "close":
				tab.close(message.view);
				break;
			case "retry":
				known.link?.link.retryNow();
				break;
			case "ready":
				tab.ready();
				break;
			case "bye":
				this.#forget(known);
		}
	}

	#connect(known: KnownTab, serverUrl: string, token: string): void {
		const shared = this.#linkTo(serverUrl, token);
		if (shared === known.link) {
			return;
		}
		const left = known.link;
		known.link = shared;
		shared.tabs.add(known);
		known.tab.use(shared.link);
		this.#leave(known, left);
	}

	#linkTo(serverUrl: string, token: string): SharedLink {
		const key = `${serverUrl} ${token}`;
		const existing = this.#links.get(key);
		if (existing !== undefined) {
			return existing;
		}
		const shared: SharedLink = {
			key,
			tabs: new Set(),
			link: new ServerLink(this.#context.connect(serverUrl, token), this.#context, () => {
				for (const { port } of shared.tabs) {
					port.post({ kind: "refused", token });
				}
			}),
		};
		this.#links.set(key, shared);
		// The first table needs them.
		shared.link.types().catch(() => {});
		return shared;
	}

	#leave(known: KnownTab, shared: SharedLink | undefined): void {
		shared?.tabs.delete(known);
		if (shared?.tabs.size === 0) {
			this.#links.delete(shared.key);
			shared.link.close();
		}
	}

	#forget(known: KnownTab): void {
		if (this.#tabs.delete(known)) {
			known.tab.use(undefined);
			this.#leave(known, known.link);
			known.link = undefined;
		}
	}

	#checkSoon(): void {
		this.#check ??= this.#context.clock.setTimer(silentMs / 3, () => {
			this.#check = undefined;
			const now = this.#context.clock.monotonic();
			for (const known of this.#tabs) {
				if (now - known.heardMs >= forgottenMs) {
					this.#forget(known);
				} else if (now - known.heardMs >= silentMs) {
					known.tab.show(false);
				}
			}
			if (this.#tabs.size > 0) {
				this.#checkSoon();
			}
		});
	}
}
