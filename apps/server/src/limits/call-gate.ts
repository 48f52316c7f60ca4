import {
	Code,
	ConnectError,
	type ContextValues,
	createContextKey,
	type HandlerContext,
} from "@connectrpc/connect";
import type { Access, Authorizer } from "@plinth/resource";
import { accessOf } from "@plinth/resource-service";
import type { Clock } from "@plinth/runtime";
import type { CallLimits } from "./call-limits.ts";
import { RateLimiter } from "./rate-limiter.ts";

/** Why a gate did not let a call in. */
export type Refusal = "unauthenticated" | "rate" | "calls" | "streams" | "streams-of-subject";

/** What a gate tells about a call that it did not let in. */
export interface RefusedCall {
	readonly call: HandlerContext;
	readonly why: Refusal;
	/** Who called; `undefined` where that is not known. */
	readonly subject: string | undefined;
	readonly error: ConnectError;
}

/** What a gate is made with. */
export interface CallGateOptions {
	readonly authorizer: Authorizer;
	readonly limits: CallLimits;
	readonly clock: Clock;
	/** Full names of services that need no token and count for nothing: health and leases. */
	readonly exempt: ReadonlySet<string>;
	readonly onRefused: (refused: RefusedCall) => void;
}

const accessKey = createContextKey<Access | undefined>(undefined, {
	description: "what the caller may do",
});

/** What the caller of a call that passed a gate may do. */
export function callerOf(values: ContextValues): Access | undefined {
	return values.get(accessKey);
}

/** What of a listener is in use. */
export interface GateState {
	readonly calls: number;
	readonly streams: number;
}

/** Whoever calls without a good token, for counting. No subject is empty. */
const unknownCaller = "";

/**
 * Lets calls into a listener: those with a token that is good, within the limits. It runs before a
 * call's body is read, and makes room again when the call's signal aborts, which Connect does at the end
 * of each call.
 */
export class CallGate {
	readonly #options: CallGateOptions;
	readonly #rates: RateLimiter;
	readonly #streamsOf = new Map<string, number>();
	#calls = 0;
	#streams = 0;

	constructor(options: CallGateOptions) {
		const { limits, clock } = options;
		this.#options = options;
		this.#rates = new RateLimiter(
			{ perSecond: limits.callsPerSecond, burst: limits.callBurst },
			clock,
		);
	}

	get state(): GateState {
		return { calls: this.#calls, streams: this.#streams };
	}

	/** @throws ConnectError Unauthenticated or ResourceExhausted. */
	readonly enter = (call: HandlerContext): void | Promise<void> => {
		if (this.#options.exempt.has(call.service.typeName)) {
			return;
		}
		this.#leaveAtEnd(call, this.#count(call));
		let access: Access | Promise<Access>;
		try {
			access = accessOf(this.#options.authorizer, call);
		} catch (failure) {
			return this.#stranger(call, failure);
		}
		return access instanceof Promise
			? access.then(
					(known) => this.#known(call, known),
					(failure: unknown) => this.#stranger(call, failure),
				)
			: this.#known(call, access);
	};

	#stranger(call: HandlerContext, failure: unknown): never {
		if (!(failure instanceof ConnectError)) {
			throw failure;
		}
		if (!this.#rates.take(unknownCaller)) {
			throw this.#refusal(call, "rate", undefined, "too many calls without a good token");
		}
		this.#options.onRefused({ call, why: "unauthenticated", subject: undefined, error: failure });
		throw failure;
	}

	#known(call: HandlerContext, access: Access): void {
		const { limits } = this.#options;
		const { subject } = access;
		if (!this.#rates.take(subject)) {
			const message = `too many calls of ${subject}: at most ${limits.callsPerSecond} a second on average; slow down, and try again`;
			throw this.#refusal(call, "rate", subject, message);
		}
		if (isStream(call)) {
			const streams = this.#streamsOf.get(subject) ?? 0;
			if (streams >= limits.streamsPerSubject) {
				const message = `too many streams of ${subject}: at most ${limits.streamsPerSubject} at once; end some`;
				throw this.#refusal(call, "streams-of-subject", subject, message);
			}
			this.#streamsOf.set(subject, streams + 1);
			this.#leaveAtEnd(call, () => this.#streamEnded(subject));
		}
		call.values.set(accessKey, access);
	}

	/** Counts a call as in flight, and answers what takes it back. */
	#count(call: HandlerContext): () => void {
		const { limits } = this.#options;
		if (isStream(call)) {
			if (this.#streams >= limits.streamsInFlight) {
				const message = `the server has ${this.#streams} streams, as many as it takes: try again later`;
				throw this.#refusal(call, "streams", undefined, message);
			}
			this.#streams += 1;
			return () => {
				this.#streams -= 1;
			};
		}
		if (this.#calls >= limits.callsInFlight) {
			const message = `the server works on ${this.#calls} calls, as many as it takes: try again`;
			throw this.#refusal(call, "calls", undefined, message);
		}
		this.#calls += 1;
		return () => {
			this.#calls -= 1;
		};
	}

	#streamEnded(subject: string): void {
		const left = (this.#streamsOf.get(subject) ?? 1) - 1;
		if (left === 0) {
			this.#streamsOf.delete(subject);
		} else {
			this.#streamsOf.set(subject, left);
		}
	}

	#leaveAtEnd({ signal }: HandlerContext, leave: () => void): void {
		if (signal.aborted) {
			leave();
		} else {
			signal.addEventListener("abort", leave, { once: true });
		}
	}

	#refusal(
		call: HandlerContext,
		why: Refusal,
		subject: string | undefined,
		message: string,
	): ConnectError {
		const error = new ConnectError(message, Code.ResourceExhausted);
		this.#options.onRefused({ call, why, subject, error });
		return error;
	}
}

function isStream(call: HandlerContext): boolean {
	return call.method.methodKind !== "unary";
}
