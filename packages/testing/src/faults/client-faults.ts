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

/** The calls that a fault applies to; omitted fields match any call. */
export interface CallSelector {
	readonly method?: UnaryMethod;
	readonly type?: ResourceType;
}

/** The watches that a fault applies to; omitted fields match any watch. */
export interface WatchSelector {
	readonly type?: ResourceType;
}

/** A point at which calls or watches are stalled. */
export interface Stall {
	/** How many are stalled now. */
	readonly waiting: number;
	/** Resumes them, and stalls no later ones. Releasing twice has no effect. */
	release(): void;
}

/** A point of a call: before the request reaches the server, or before the response reaches the caller. */
export type CallPoint = "request" | "response";

/** A point of a watch: before it is opened, or before it delivers its next event. */
export type WatchPoint = "open" | "event";

interface Gate extends Stall {
	readonly matches: (place: FaultPoint) => boolean;
	pass(): Promise<void>;
}

interface Failure {
	readonly matches: (place: FaultPoint) => boolean;
	readonly error: ConnectError;
	left: number;
}

/** A point at which a fault may apply, as the faulty client reports it. */
export interface FaultPoint {
	readonly point: CallPoint | WatchPoint | "resume";
	readonly method: UnaryMethod | "watchList";
	readonly type: TypeLike | undefined;
}

/** A watch that can be broken. */
export interface BreakableWatch {
	readonly type: TypeLike | undefined;
	/** The error that replaces the next event. */
	broken: ConnectError | undefined;
	/** Whether to swap the next two events that are available together. */
	swapsNext: boolean;
	/** Wakes a waiting watch, so that it notices that it has been broken. */
	wake(): void;
}

/**
 * Injects the faults of a network, and of a server that is slow, fails or has compacted its log, into a
 * client. There are no faults until a method is called; `clear` ends all of them.
 */
export class ClientFaults {
	readonly #gates = new Set<Gate>();
	readonly #failures: Failure[] = [];
	readonly #watches = new Set<BreakableWatch>();

	/** Stalls unary calls. */
	stallCalls(point: CallPoint, calls: CallSelector = {}): Stall {
		return this.#stall((place) => place.point === point && isFor(calls, place));
	}

	/** Stalls watches, including open ones. */
	stallWatches(point: WatchPoint, watches: WatchSelector = {}): Stall {
		return this.#stall((place) => place.point === point && isFor(watches, place));
	}

	/**
	 * Fails the next calls: before they reach the server or, with `response`, after the server has executed
	 * them.
	 */
	failCalls(
		point: CallPoint,
		error: ConnectError,
		calls: CallSelector & { readonly times?: number } = {},
	): void {
		const { times = 1, ...selector } = calls;
		const matches = (place: FaultPoint) => place.point === point && isFor(selector, place);
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

	/** Refuses the next watches that resume after a version, with that error. */
	refuseResumption(
		error: ConnectError,
		watches: WatchSelector & { readonly times?: number } = {},
	): void {
		const { times = 1, ...selector } = watches;
		const matches = (place: FaultPoint) => place.point === "resume" && isFor(selector, place);
		this.#failures.push({ matches, error, left: times });
	}

	/**
	 * Makes open watches deliver their next two events in the wrong order, which no server may do, to verify
	 * that a test detects it.
	 */
	swapEvents(watches: WatchSelector = {}): void {
		for (const watch of this.#watches) {
			watch.swapsNext ||= isOfType(watches.type, watch.type);
		}
	}

	/** Releases all stalls, and drops all failures that have not occurred yet. */
	clear(): void {
		this.#failures.length = 0;
		for (const gate of this.#gates) {
			gate.release();
		}
		for (const watch of this.#watches) {
			watch.swapsNext = false;
		}
	}

	/** For the faulty client: resolves when nothing stalls the place; rejects if it is to fail. */
	async pass(place: FaultPoint): Promise<void> {
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

	/** For the faulty client: whether `pass` would have an effect. */
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

	#gateAt(place: FaultPoint): Gate | undefined {
		for (const gate of this.#gates) {
			if (gate.matches(place)) {
				return gate;
			}
		}
		return undefined;
	}

	#stall(matches: (place: FaultPoint) => boolean): Stall {
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

function isFor({ method, type }: CallSelector, place: FaultPoint): boolean {
	return (method === undefined || method === place.method) && isOfType(type, place.type);
}

function isOfType(wanted: ResourceType | undefined, type: TypeLike | undefined): boolean {
	return (
		wanted === undefined ||
		(type !== undefined && type.group === wanted.type.group && type.kind === wanted.type.kind)
	);
}
