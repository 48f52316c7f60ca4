import { Code, ConnectError } from "@connectrpc/connect";
import type { WatchEvent } from "@plinth/proto";
import { type Random, sleep, systemClock } from "@plinth/runtime";
import type { SeenEvent, WatchSession } from "../history/history.ts";
import { Register } from "../module/types.ts";
import type { Life, Target } from "./life.ts";
import { textOf } from "./perform.ts";

/** How a watcher goes about it. */
export interface WatcherOptions {
	/** The servers that it watches at, one after the other. */
	readonly targets: readonly Target[];
	readonly random: Random;
	/** After how long it goes on at another server, in milliseconds, in the mean. */
	readonly moveAfterMs?: number;
}

/** A client that watches all registers, and resumes after its streams break. */
export class Watcher {
	readonly sessions: WatchSession[] = [];
	/** Streams that ended because the server said that they can't go on, or not from there. */
	readonly restarts: string[] = [];
	readonly #options: WatcherOptions;
	#version = "";
	#reached = 0;

	constructor(options: WatcherOptions) {
		this.#options = options;
	}

	/** The revision that it has got to. */
	get reached(): number {
		return this.#reached;
	}

	/** Watches until the signal aborts. */
	async run(signal: AbortSignal): Promise<void> {
		const { targets, random, moveAfterMs } = this.#options;
		for (let turn = 0; !signal.aborted; turn += 1) {
			const life = await targets[turn % targets.length]?.life(signal);
			if (life === undefined) {
				return;
			}
			const move = new AbortController();
			const moves = systemClock.setTimer(
				moveAfterMs === undefined ? Number.POSITIVE_INFINITY : moveAfterMs * 2 * random.next(),
				() => move.abort(),
			);
			await this.#watch(life, AbortSignal.any([signal, move.signal]), signal);
			moves.cancel();
			await sleep(systemClock, 50, signal).catch(() => {});
		}
	}

	/** Watches at one server, until that ends it or the signal does. */
	async #watch(life: Life, signal: AbortSignal, over: AbortSignal): Promise<void> {
		const events: SeenEvent[] = [];
		const afterVersion = this.#version;
		// A server that has not come as far yet has to catch up first.
		const strong = afterVersion !== "" || this.#options.random.next() < 0.5;
		const headers = strong ? { "x-plinth-consistency-mode": "consistent" } : {};
		const request = { type: Register.type, afterVersion };
		try {
			for await (const event of life.client.watchList(request, { signal, headers })) {
				this.#see(event, events);
			}
		} catch (error) {
			this.#ended(error, events, afterVersion);
		}
		const complete = over.aborted;
		this.sessions.push({ life: life.number, afterVersion, events, complete });
	}

	#see({ event, version }: WatchEvent, events: SeenEvent[]): void {
		if (event.case === "upsert" || event.case === "delete") {
			const { resource } = event.value;
			const stored = { version: resource?.version ?? "", text: textOf(resource) };
			const atMs = performance.now();
			events.push({ kind: event.case, register: resource?.id?.name ?? "", stored, version, atMs });
		} else if (event.case === "endOfSnapshot") {
			events.push({ kind: "end-of-snapshot", version });
		}
		if (version !== "") {
			this.#version = version;
			this.#reached = Number(version);
		}
	}

	#ended(error: unknown, events: readonly SeenEvent[], afterVersion: string): void {
		if (!(error instanceof ConnectError)) {
			throw error;
		}
		const { code, rawMessage } = error;
		const mustRestart =
			code === Code.OutOfRange || (code === Code.Aborted && rawMessage.includes("watch again"));
		if (mustRestart) {
			this.restarts.push(`${Code[code]}: ${rawMessage}`);
			this.#version = "";
			this.#reached = 0;
		}
		// A watch can't resume after half a snapshot, which has no version.
		if (afterVersion === "" && !events.some(({ kind }) => kind === "end-of-snapshot")) {
			this.#version = "";
		}
	}
}
