import type { ConnectError } from "@connectrpc/connect";
import type { ResourceType, TypeLike } from "@plinth/resource";

/** The unary methods of the resource service. */
export type UnaryMethod =
	| "read"
	| "list"
	| "listByOwner"
	| "mutateAndValidate"
	| "write"
	| "writeStatus"
	| "delete";

/** Which calls a fault is for; what is left out is any. */
export interface CallSelector {
	readonly method?: UnaryMethod;
	readonly type?: ResourceType;
}

/** Which watches a fault is for; what is left out is any. */
export interface WatchSelector {
	readonly type?: ResourceType;
}

/** Where calls or watches stand still. */
export interface Stall {
	/** How many stand here now. */
	readonly waiting: number;
	/** Lets them go on, and those that come later as well. Releasing twice does nothing. */
	release(): void;
}

/**
 * Where a call stands: before it reaches the server, or when the server has done what was asked and
 * the caller does not know yet.
 */
export type CallPoint = "request" | "answer";

/** Where a watch stands: before it has been opened, or before it hands on its next event. */
export type WatchPoint = "open" | "event";

interface Gate extends Stall {
	readonly matches: (place: Place) => boolean;
	pass(): Promise<void>;
}

interface Failure {
	readonly matches: (place: Place) => boolean;
	readonly error: ConnectError;
	left: number;
}

/** Something that a fault may be for, as the faulty client sees it. */
export interface Place {
	readonly point: CallPoint | WatchPoint | "resume";
	readonly method: UnaryMethod | "watchList";
	readonly type: TypeLike | undefined;
}

/** A watch that can be broken. */
export interface BreakableWatch {
	readonly type: TypeLike | undefined;
	/** Takes the place of the next event. */
	broken: ConnectError | undefined;
	/** Whether the next two events that are there together change places. */
	swapsNext: boolean;
	/** Makes a watch that waits look whether it has been broken. */
	wake(): void;
}

/**
 * The faults of a client, on cue: those of a network and of a server that is slow, fails or has
 * forgotten. Nothing is wrong until a method is called; `relent` ends all that has been asked for.
 */
export class ClientFaults {
	readonly #gates = new Set<Gate>();
	readonly #failures: Failure[] = [];
	readonly #watches = new Set<BreakableWatch>();

	/** Makes unary calls stand still. */
	stallCalls(point: CallPoint, calls: CallSelector = {}): Stall {
		return this.#stall((place) => place.point === point && isFor(calls, place));
	}

	/** Makes watches stand still, those that are open as well. */
	stallWatches(point: WatchPoint, watches: WatchSelector = {}): Stall {
		return this.#stall((place) => place.point === point && isFor(watches, place));
	}

	/**
	 * Makes the next calls fail: before they reach the server, or, as `answer`, after it has done what
	 * was asked.
	 */
	failCalls(
		point: CallPoint,
		error: ConnectError,
		calls: CallSelector & { readonly times?: number } = {},
	): void {
		const { times = 1, ...selector } = calls;
		const matches = (place: Place) => place.point === point && isFor(selector, place);
		this.#failures.push({ matches, error, left: times });
	}

	/** Ends open watches with an error, each before its next event. */
	breakWatches(error: ConnectError, watches: WatchSelector = {}): void {
		for (const watch of this.#watches) {
			if (isOfType(watches.type, watch.type)) {
				watch.broken = error;
				watch.wake();
			}
		}
	}

	/** Refuses the next watches that would resume after a version, with that error. */
	refuseResumption(
		error: ConnectError,
		watches: WatchSelector & { readonly times?: number } = {},
	): void {
		const { times = 1, ...selector } = watches;
		const matches = (place: Place) => place.point === "resume" && isFor(selector, place);
		this.#failures.push({ matches, error, left: times });
	}

	/**
	 * Makes open watches hand on their next two events in the wrong order, as no server may: to see
	 * that a test would notice.
	 */
	swapEvents(watches: WatchSelector = {}): void {
		for (const watch of this.#watches) {
			watch.swapsNext ||= isOfType(watches.type, watch.type);
		}
	}

	/** Lets everything go on, and forgets all failures that have not come yet. */
	relent(): void {
		this.#failures.length = 0;
		for (const gate of this.#gates) {
			gate.release();
		}
		for (const watch of this.#watches) {
			watch.swapsNext = false;
		}
	}

	/** For the faulty client: resolves when nothing stalls the place; throws where it is to fail. */
	async pass(place: Place): Promise<void> {
		for (let gate = this.#gateAt(place); gate !== undefined; gate = this.#gateAt(place)) {
			await gate.pass();
		}
		const failure = this.#failures.find(({ matches }) => matches(place));
		if (failure !== undefined) {
			failure.left -= 1;
			if (failure.left <= 0) {
				this.#failures.splice(this.#failures.indexOf(failure), 1);
			}
			throw failure.error;
		}
	}

	/** For the faulty client: whether `pass` would do anything. */
	isClear(): boolean {
		return this.#gates.size === 0 && this.#failures.length === 0;
	}

	/** For the faulty client: a watch has been opened. */
	opened(watch: BreakableWatch): void {
		this.#watches.add(watch);
	}

	/** For the faulty client: a watch has ended. */
	ended(watch: BreakableWatch): void {
		this.#watches.delete(watch);
	}

	#gateAt(place: Place): Gate | undefined {
		for (const gate of this.#gates) {
			if (gate.matches(place)) {
				return gate;
			}
		}
		return undefined;
	}

	#stall(matches: (place: Place) => boolean): Stall {
		const { promise, resolve } = Promise.withResolvers<void>();
		let waiting = 0;
		const gate: Gate = {
			matches,
			get waiting() {
				return waiting;
			},
			pass: async () => {
				waiting += 1;
				await promise;
				waiting -= 1;
			},
			release: () => {
				this.#gates.delete(gate);
				resolve();
			},
		};
		this.#gates.add(gate);
		return gate;
	}
}

function isFor({ method, type }: CallSelector, place: Place): boolean {
	return (method === undefined || method === place.method) && isOfType(type, place.type);
}

function isOfType(wanted: ResourceType | undefined, type: TypeLike | undefined): boolean {
	return (
		wanted === undefined ||
		(type !== undefined && type.group === wanted.type.group && type.kind === wanted.type.kind)
	);
}
