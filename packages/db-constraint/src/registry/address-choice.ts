import { Code, ConnectError } from "@connectrpc/connect";
import { backoffDelayMs, type Clock } from "@plinth/runtime";
import { isPlanted } from "../fault-points.ts";
import { deletedHeader, succeededHeader } from "../protocol/dropped-deployments.ts";
import { endpointsHeader } from "../protocol/endpoints-header.ts";

/** Where a deployment may be reached. */
export interface Addresses {
	/** Those of its running servers, as one of them has named them last. */
	readonly running: readonly string[];
	/** The one in the registry. It may be a load balancer, or a server that no longer runs. */
	readonly registered: string;
}

/** Options of an `AddressChoice`. */
export interface AddressChoiceOptions {
	readonly addresses: () => Addresses;
	readonly onEndpoints: (value: string) => void;
	/** Called with the uid of a caller that is refused because it was deleted. */
	readonly onDeleted?: (uid: string) => void;
	/** Called with the uids of a caller or of the deployment itself that is refused, and of what has taken it over. */
	readonly onSucceeded?: (uid: string, successorUid: string) => void;
	readonly clock: Clock;
}

/** How long an address is avoided, by the number of failures in a row. */
const avoidance = { baseMs: 500, maxMs: 30_000 } as const;

/** How long an address that was avoided is left to the call that tries it again. */
const retrialMs = 2_000;

/** Failures in a row, when the last one was, and until when the address is avoided, on the monotonic clock. */
interface Avoided {
	readonly failures: number;
	readonly failedMs: number;
	readonly untilMs: number;
}

/**
 * Chooses the address of each call: the running servers in turns, then the registered address, then those that are
 * avoided, the one that has been avoided longest first. So there is always one.
 *
 * Invariant: a wrong list does no harm that lasts. Once none of the running servers has responded last time, the registered
 * address is one of them: the one that was tried longest ago is next. In turns, it might never be: calls that are rare find
 * one of the others whose time is over each time.
 *
 * Avoidance ends with a response. When its time is over, one call tries the address again, and the others wait for what
 * becomes of that: a server that hangs holds up one call, not all that would go there until it fails.
 */
export class AddressChoice {
	readonly #options: AddressChoiceOptions;
	readonly #avoided = new Map<string, Avoided>();
	#calls = 0;

	constructor(options: AddressChoiceOptions) {
		this.#options = options;
	}

	/** The address of the next attempt: none of those that were tried, if there is another. */
	next(tried: ReadonlySet<string>): string {
		const { running, registered } = this.#options.addresses();
		const at = this.#calls++ % Math.max(1, running.length);
		const inTurns = [...running.slice(at), ...running.slice(0, at), registered];
		const untried = inTurns.filter((address) => !tried.has(address));
		const now = this.#options.clock.monotonic();
		const untilMs = (address: string) => this.#avoided.get(address)?.untilMs ?? 0;
		const isListWrong =
			running.every((address) => this.#avoided.has(address)) &&
			!isPlanted("prefer servers that do not respond to the registered address");
		const available = isListWrong ? undefined : untried.find((address) => untilMs(address) <= now);
		const [first] = untried.sort((a, b) => untilMs(a) - untilMs(b));
		const address = available ?? first ?? registered;
		const avoided = this.#avoided.get(address);
		if (avoided !== undefined) {
			const until = Math.max(avoided.untilMs, now + retrialMs);
			this.#avoided.set(address, { ...avoided, untilMs: until });
		}
		return address;
	}

	/** Whether a running server is left that was not tried, and has not failed last time. */
	hasResponsive(tried: ReadonlySet<string>): boolean {
		const { running } = this.#options.addresses();
		return running.some((address) => !tried.has(address) && !this.#avoided.has(address));
	}

	/** Whether an address is left that was not tried. */
	hasOther(tried: ReadonlySet<string>): boolean {
		const { running, registered } = this.#options.addresses();
		return [...running, registered].some((address) => !tried.has(address));
	}

	/** A server at the address has responded. */
	responded(address: string, header: Headers): void {
		this.#avoided.delete(address);
		this.#learn(header);
	}

	/**
	 * A call at the address, which began at `startMs`, has failed. Returns whether another server may respond.
	 *
	 * @param wasShort - whether the attempt had less than the time of its call. A server that says itself that this was over
	 *   is avoided like one that hangs: otherwise attempts at slow servers would be shortened for ever, and none respond late.
	 */
	failed(address: string, failure: unknown, startMs: number, wasShort = false): boolean {
		const { code, metadata } = ConnectError.from(failure);
		const isFromDeployment = this.#learn(metadata);
		const deleted = metadata.get(deletedHeader);
		if (deleted !== null) {
			this.#options.onDeleted?.(deleted);
		}
		const [succeeded, successorUid] = metadata.get(succeededHeader)?.split(" ") ?? [];
		if (succeeded !== undefined && successorUid !== undefined) {
			this.#options.onSucceeded?.(succeeded, successorUid);
		}
		if (isFromDeployment && !(wasShort && code === Code.DeadlineExceeded)) {
			const { running } = this.#options.addresses();
			const isStopping = running.length > 0 && !running.includes(address);
			this.#avoided.delete(address);
			return isStopping && code === Code.Unavailable;
		}
		if (code === Code.Unavailable || code === Code.DeadlineExceeded) {
			this.#avoid(address, startMs);
		}
		return code === Code.Unavailable;
	}

	/** Returns whether the header names the running servers: it is from one of them. */
	#learn(header: Headers): boolean {
		const value = header.get(endpointsHeader);
		if (value !== null && !isPlanted("learn no servers from responses")) {
			this.#options.onEndpoints(value);
		}
		return value !== null;
	}

	#avoid(address: string, startMs: number): void {
		const { clock, addresses } = this.#options;
		const before = this.#avoided.get(address);
		if (before !== undefined && startMs < before.failedMs) {
			// The calls that one short stall has met count as one failure.
			return;
		}
		const failures = (before?.failures ?? 0) + 1;
		const failedMs = clock.monotonic();
		const untilMs = failedMs + backoffDelayMs(avoidance, failures);
		const { running, registered } = addresses();
		for (const known of this.#avoided.keys()) {
			if (known !== registered && !running.includes(known)) {
				this.#avoided.delete(known);
			}
		}
		this.#avoided.set(address, { failures, failedMs, untilMs });
	}
}
