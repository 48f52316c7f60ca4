import {
	Code,
	ConnectError,
	type ContextValues,
	createContextKey,
	type HandlerContext,
} from "@connectrpc/connect";
import type { Access, Authorizer } from "@plinth/resource";
import { authenticateCall } from "@plinth/resource-service";
import type { Clock } from "@plinth/runtime";
import type { Connection, Usage } from "../listener/connection.ts";
import { exchangeOf } from "../listener/exchange.ts";
import type { CallLimits } from "./call-limits.ts";
import { gateways, probes, type TurnTaker } from "./event-loop-turns.ts";
import { RateLimiter } from "./rate-limiter.ts";

/** Why a gate did not let a call in. */
export type Refusal =
	| "unauthenticated"
	| "rate"
	| "calls"
	| "calls-of-subject"
	| "streams"
	| "streams-of-subject"
	| "fields";

/** What a gate tells about a call that it did not let in. */
export interface RefusedCall {
	readonly call: Pick<HandlerContext, "method">;
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
	/** How many streams a connection may have. */
	readonly streamsPerConnection: number;
	/** Full names of services that need no token and have limits of their own: health. */
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

const nobody: TurnTaker = { caller: "", connection: {} };

const takerKey = createContextKey<TurnTaker>(nobody, {
	description: "who takes turns of the event loop for the call",
});

/** Who takes turns of the event loop for a call: all that passed no gate are one. */
export function takerOf(values: ContextValues): TurnTaker {
	return values.get(takerKey);
}

/** What of a listener is in use. */
export interface GateState {
	readonly calls: number;
	readonly streams: number;
}

/**
 * The key of calls without a valid token, and of those whose token is not checked yet. No subject is empty:
 * it can't be that of a token.
 */
const anonymous = "";

/** Of all calls in flight, what may be in use before shares are held against `callShare`. */
const crowded = 3 / 4;

/** What a subject may hold of all calls in flight while they are crowded. */
const callShare = 1 / 4;

/** What a subject holds. */
class SubjectUsage implements Usage {
	calls = 0;
	streams = 0;
	pendingBytes = 0;
}

/**
 * Lets calls into a listener: those with a token that is good, within the limits. It runs before a call's body is
 * read. A call keeps its place until its exchange is released: the client has taken the response or is
 * gone, and the handler has returned.
 *
 * Calls in flight are shared: above three quarters of the limit, a subject that holds more than a quarter is
 * refused, so that the others find room. Where no tokens are asked for, connections take the place of
 * subjects, and each may hold as many as it may have streams.
 */
export class CallGate {
	readonly #options: CallGateOptions;
	readonly #rates: RateLimiter;
	/** Those that hold anything. */
	readonly #subjects = new Map<string, SubjectUsage>();
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
			const { connection } = exchangeOf(call.values);
			call.values.set(takerKey, { caller: probes, connection: connection.turnKey });
			return;
		}
		this.#checkRoom(call);
		let access: Access | Promise<Access>;
		try {
			access = authenticateCall(this.#options.authorizer, call);
		} catch (failure) {
			return this.#stranger(call, failure);
		}
		if (!(access instanceof Promise)) {
			this.#known(call, access);
			return;
		}
		// While the token is checked, the call holds a place as the anonymous do.
		this.#take(call, anonymous, undefined);
		const exchange = exchangeOf(call.values);
		return access.then(
			(known) => {
				exchange.dismiss();
				this.#checkRoom(call);
				this.#known(call, known);
			},
			(failure: unknown) => {
				exchange.dismiss();
				this.#stranger(call, failure);
			},
		);
	};

	#stranger(call: HandlerContext, failure: unknown): never {
		if (!(failure instanceof ConnectError)) {
			throw failure;
		}
		if (!this.#rates.take(anonymous)) {
			throw this.#refusal(call, "rate", undefined, "too many calls without a valid token");
		}
		this.#options.onRefused({ call, why: "unauthenticated", subject: undefined, error: failure });
		throw failure;
	}

	#known(call: HandlerContext, access: Access): void {
		const { authorizer, limits } = this.#options;
		const { subject } = access;
		if (!this.#rates.take(subject)) {
			const message = `too many calls of ${subject}: at most ${limits.callsPerSecond} a second on average; slow down, and try again`;
			throw this.#refusal(call, "rate", subject, message);
		}
		const hasToken = access !== authorizer.tokenless;
		const { connection } = exchangeOf(call.values);
		this.#take(call, subject, hasToken ? undefined : connection);
		const { turnKey } = connection;
		const caller = hasToken ? subject : turnKey;
		connection.caller ??= caller;
		if (connection.caller !== caller) {
			// Of a proxy or a gateway: none of those behind it begins under the name of another.
			connection.caller = gateways;
		}
		call.values.set(takerKey, { caller, connection: turnKey });
		call.values.set(accessKey, access);
	}

	/** @throws ConnectError ResourceExhausted where there are as many calls as there may be. */
	#checkRoom(call: HandlerContext): void {
		const { limits } = this.#options;
		if (isStream(call)) {
			if (this.#streams >= limits.streamsInFlight) {
				const message = `the server has ${this.#streams} streams, its limit: try again later`;
				throw this.#refusal(call, "streams", undefined, message);
			}
		} else if (this.#calls >= limits.callsInFlight) {
			const message = `the server has ${this.#calls} calls in flight, its limit: try again`;
			throw this.#refusal(call, "calls", undefined, message);
		}
	}

	/**
	 * Takes a place for a call until its exchange is released or dismissed.
	 *
	 * @param connection what it counts for in place of the subject.
	 * @throws ConnectError ResourceExhausted where the subject or the connection holds too many.
	 */
	#take(call: HandlerContext, subject: string, connection: Connection | undefined): void {
		const exchange = exchangeOf(call.values);
		const known = this.#subjects.get(subject) ?? new SubjectUsage();
		const usage = connection ?? known;
		if (isStream(call)) {
			this.#checkStreams(call, subject, known);
			this.#streams += 1;
			known.streams += 1;
		} else {
			this.#checkShare(call, subject, usage, connection !== undefined);
			this.#calls += 1;
			usage.calls += 1;
		}
		this.#subjects.set(subject, known);
		exchange.assign(usage);
		exchange.admit({
			leave: () => {
				if (isStream(call)) {
					this.#streams -= 1;
					known.streams -= 1;
				} else {
					this.#calls -= 1;
					usage.calls -= 1;
				}
				// Its bytes, if any are left, are few: they count for the connection that they wait on.
				exchange.assign(exchange.connection);
				if (known.calls === 0 && known.streams === 0) {
					this.#subjects.delete(subject);
				}
			},
		});
	}

	#checkStreams(call: HandlerContext, subject: string, { streams }: SubjectUsage): void {
		const { limits } = this.#options;
		if (streams >= limits.streamsPerSubject) {
			const message = `too many streams of ${nameOf(subject)}: at most ${limits.streamsPerSubject} at once; end some`;
			throw this.#refusal(call, "streams-of-subject", subject || undefined, message);
		}
	}

	#checkShare(
		call: HandlerContext,
		subject: string,
		{ calls }: Usage,
		isConnection: boolean,
	): void {
		const { limits, streamsPerConnection } = this.#options;
		if (this.#calls < crowded * limits.callsInFlight) {
			return;
		}
		const share = Math.max(1, Math.floor(callShare * limits.callsInFlight));
		const most = isConnection ? Math.max(share, streamsPerConnection) : share;
		if (calls >= most) {
			const message = `the server is busy, and ${calls} calls from ${isConnection ? "this connection" : nameOf(subject)} are in flight: the limit is ${most} under load; wait for some to finish`;
			throw this.#refusal(call, "calls-of-subject", subject || undefined, message);
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

/** Who a subject is, in messages. */
function nameOf(subject: string): string {
	return subject === anonymous ? "callers without a valid token" : subject;
}

function isStream(call: HandlerContext): boolean {
	return call.method.methodKind !== "unary";
}
