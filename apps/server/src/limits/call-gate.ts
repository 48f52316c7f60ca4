import {
	Code,
	ConnectError,
	type ContextValues,
	createContextKey,
	type HandlerContext,
} from "@connectrpc/connect";
import type { Access, Authorizer } from "@plinth/resource";
import { authenticateCall, rememberAccess } from "@plinth/resource-service";
import type { Clock } from "@plinth/runtime";
import type { Connection, Usage } from "../listener/connection.ts";
import { exchangeOf } from "../listener/exchange.ts";
import type { CallLimits } from "./call-limits.ts";
import { healthChecks, sharedConnections, type TurnTaker } from "./event-loop-turns.ts";
import { RateLimiter } from "./rate-limiter.ts";
import { noteRefusedWhileRunning } from "./refused-while-running.ts";

/** Why a gate refused a call. */
export type Refusal =
	| "unauthenticated"
	| "rate"
	| "calls"
	| "calls-of-subject"
	| "streams"
	| "streams-of-subject"
	| "fields";

/** A call that a gate refused. */
export interface RefusedCall {
	readonly call: Pick<HandlerContext, "method">;
	readonly why: Refusal;
	/** The caller; `undefined` if it is not known. */
	readonly subject: string | undefined;
	readonly error: ConnectError;
}

/** Options of `CallGate`. */
export interface CallGateOptions {
	readonly authorizer: Authorizer;
	readonly limits: CallLimits;
	readonly clock: Clock;
	/** The maximum number of streams of a connection. */
	readonly streamsPerConnection: number;
	/**
	 * Full names of services that need no token: those of health and of the cluster, whose responses are short or have limits
	 * of their own, and that of peers, whose calls enter by `enterPeer`.
	 */
	readonly exempt: ReadonlySet<string>;
	readonly onRefused: (refused: RefusedCall) => void;
	/** Called with each call before its token is checked. @throws ConnectError Unauthenticated. */
	readonly beforeToken?: (call: HandlerContext) => void;
}

const accessKey = createContextKey<Access | undefined>(undefined, {
	description: "the access of the caller",
});

/** The access of the caller, if the call was admitted by a gate. */
export function callerOf(values: ContextValues): Access | undefined {
	return values.get(accessKey);
}

const unknownTaker: TurnTaker = { caller: "", connection: {} };

const takerKey = createContextKey<TurnTaker>(unknownTaker, {
	description: "the caller on whose behalf the call takes turns on the event loop",
});

/** The caller on whose behalf a call takes turns on the event loop. All calls that were not admitted by a gate share one. */
export function takerOf(values: ContextValues): TurnTaker {
	return values.get(takerKey);
}

/** The usage of a listener. */
export interface GateState {
	readonly calls: number;
	readonly streams: number;
}

/**
 * The key of calls without a valid token, and of calls whose token is not checked yet. It can't be the subject of a
 * token, because no subject is empty.
 */
const anonymous = "";

/** The fraction of calls in flight from which on `callShare` is enforced. */
const crowded = 3 / 4;

/** The fraction of calls in flight that one subject may use while they are crowded. */
const callShare = 1 / 4;

/** The usage of a subject. */
class SubjectUsage implements Usage {
	calls = 0;
	streams = 0;
	pendingBytes = 0;
}

/**
 * Admits calls to a listener: it checks their token and the limits. It runs before the body of a call is read. A call
 * counts until its exchange is released: the client has read the response or is gone, and the handler has returned.
 *
 * Calls in flight are shared: from three quarters of the limit on, a subject that uses a quarter or more is refused, so
 * that others can make calls. If no tokens are required, connections count instead of subjects, and each may have as
 * many calls as streams.
 */
export class CallGate {
	readonly #options: CallGateOptions;
	readonly #rates: RateLimiter;
	/** Subjects with calls or streams. */
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
			call.values.set(takerKey, { caller: healthChecks, connection: connection.turnKey });
			return;
		}
		this.#checkRoom(call);
		let access: Access | Promise<Access>;
		try {
			this.#options.beforeToken?.(call);
			access = authenticateCall(this.#options.authorizer, call);
		} catch (failure) {
			return this.#refuseToken(call, failure);
		}
		if (!(access instanceof Promise)) {
			this.#admit(call, access);
			return;
		}
		// While the token is checked, the call counts as an anonymous one.
		this.#count(call, anonymous, undefined);
		const exchange = exchangeOf(call.values);
		return access.then(
			(known) => {
				exchange.dismiss();
				this.#checkRoom(call);
				this.#admit(call, known);
			},
			(failure: unknown) => {
				exchange.dismiss();
				this.#refuseToken(call, failure);
			},
		);
	};

	/**
	 * Admits a call of a peer to an exempt service, once its credential was checked: from then on, it counts for a subject of the
	 * peer. Calls of others in flight do not make it refused, as they would one with a token: a refused acknowledgment ends a
	 * stream. The share of each subject bounds how many calls a peer can add to them.
	 *
	 * @throws ConnectError ResourceExhausted.
	 */
	enterPeer(call: HandlerContext, { name }: { readonly name: string }): void {
		const subject = `peer:${name}`;
		try {
			if (isStream(call)) {
				this.#checkRoom(call);
			}
			this.#takeOfRate(call, subject);
			this.#count(call, subject, undefined);
		} catch (failure) {
			noteRefusedWhileRunning(call.values);
			throw failure;
		}
		takeTurnsAs(call, subject);
	}

	/**
	 * Admits a watch of a set, beyond the first one, for which the call itself counts: it counts as a call towards the rate of
	 * its subject, and as a stream until it has ended.
	 *
	 * @param call - a call that was admitted.
	 * @returns a function to be called once when the watch has ended.
	 * @throws ConnectError ResourceExhausted.
	 */
	enterWatch(call: HandlerContext): () => void {
		const subject = callerOf(call.values)?.subject ?? anonymous;
		this.#checkRoom(call);
		this.#takeOfRate(call, subject);
		const usage = this.#subjects.get(subject) ?? new SubjectUsage();
		this.#countStream(call, subject, usage);
		this.#subjects.set(subject, usage);
		return () => this.#leaveStream(subject, usage);
	}

	#refuseToken(call: HandlerContext, failure: unknown): never {
		if (!(failure instanceof ConnectError)) {
			throw failure;
		}
		if (!this.#rates.take(anonymous)) {
			throw this.#refusal(call, "rate", undefined, "too many calls without a valid token");
		}
		this.#options.onRefused({ call, why: "unauthenticated", subject: undefined, error: failure });
		throw failure;
	}

	#admit(call: HandlerContext, access: Access): void {
		const { authorizer } = this.#options;
		const { subject } = access;
		this.#takeOfRate(call, subject);
		const hasToken = access !== authorizer.tokenless;
		const { connection } = exchangeOf(call.values);
		this.#count(call, subject, hasToken ? undefined : connection);
		takeTurnsAs(call, hasToken ? subject : connection.turnKey);
		call.values.set(accessKey, access);
		rememberAccess(call.values, authorizer, access);
	}

	#takeOfRate(call: HandlerContext, subject: string): void {
		if (!this.#rates.take(subject)) {
			const { callsPerSecond } = this.#options.limits;
			const message = `too many calls from ${subject}: at most ${callsPerSecond} a second on average; slow down, and try again`;
			throw this.#refusal(call, "rate", subject, message);
		}
	}

	/** @throws ConnectError ResourceExhausted if the server has its maximum of calls or streams. */
	#checkRoom(call: HandlerContext): void {
		const { limits } = this.#options;
		if (isStream(call)) {
			if (this.#streams >= limits.streamsInFlight) {
				const message = `the server has reached its limit of ${limits.streamsInFlight} streams: try again later`;
				throw this.#refusal(call, "streams", undefined, message);
			}
		} else if (this.#calls >= limits.callsInFlight) {
			const message = `the server has reached its limit of ${limits.callsInFlight} calls in flight: try again`;
			throw this.#refusal(call, "calls", undefined, message);
		}
	}

	/**
	 * Counts a call until its exchange is released or dismissed.
	 *
	 * @param connection counts the call instead of the subject, if present.
	 * @throws ConnectError ResourceExhausted if the subject or the connection has too many.
	 */
	#count(call: HandlerContext, subject: string, connection: Connection | undefined): void {
		const exchange = exchangeOf(call.values);
		const known = this.#subjects.get(subject) ?? new SubjectUsage();
		const usage = connection ?? known;
		if (isStream(call)) {
			this.#countStream(call, subject, known);
		} else {
			this.#checkShare(call, subject, usage, connection !== undefined);
			this.#calls += 1;
			usage.calls += 1;
		}
		this.#subjects.set(subject, known);
		exchange.assign(usage);
		exchange.admit({
			leave: () => {
				// The few bytes that may be left count for the connection.
				exchange.assign(exchange.connection);
				if (isStream(call)) {
					this.#leaveStream(subject, known);
				} else {
					this.#calls -= 1;
					usage.calls -= 1;
					this.#forgetIdle(subject, known);
				}
			},
		});
	}

	#countStream(call: HandlerContext, subject: string, usage: SubjectUsage): void {
		const { limits } = this.#options;
		if (usage.streams >= limits.streamsPerSubject) {
			const message = `too many streams from ${nameOf(subject)}: at most ${limits.streamsPerSubject} at once; end some of them`;
			throw this.#refusal(call, "streams-of-subject", subject || undefined, message);
		}
		this.#streams += 1;
		usage.streams += 1;
	}

	#leaveStream(subject: string, usage: SubjectUsage): void {
		this.#streams -= 1;
		usage.streams -= 1;
		this.#forgetIdle(subject, usage);
	}

	/** Without tokens, calls count for connections: the usage may be forgotten, and have a successor, before they leave. */
	#forgetIdle(subject: string, usage: SubjectUsage): void {
		const isIdle = usage.calls === 0 && usage.streams === 0;
		if (isIdle && this.#subjects.get(subject) === usage) {
			this.#subjects.delete(subject);
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
			const message = `the server is overloaded, and ${calls} calls from ${isConnection ? "this connection" : nameOf(subject)} are in flight: the limit is ${most} under load; wait for some to finish`;
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

/** The rest of the call takes turns for the caller, and so do later requests on its connection if they are all the caller's. */
function takeTurnsAs({ values }: HandlerContext, caller: TurnTaker["caller"]): void {
	const { connection } = exchangeOf(values);
	connection.caller ??= caller;
	if (connection.caller !== caller) {
		// The connection of a proxy or gateway: no caller's requests start in the turn of another.
		connection.caller = sharedConnections;
	}
	values.set(takerKey, { caller, connection: connection.turnKey });
}

/** The name of a subject in messages. */
function nameOf(subject: string): string {
	return subject === anonymous ? "callers without a valid token" : subject;
}

function isStream(call: HandlerContext): boolean {
	return call.method.methodKind !== "unary";
}
