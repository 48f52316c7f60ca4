import { isDeepStrictEqual } from "node:util";
import { durationMs } from "@bufbuild/protobuf/wkt";
import { type Client, Code, ConnectError } from "@connectrpc/connect";
import type {
	AccessPolicy,
	AgentCacheService,
	FollowAccessResponse,
} from "@plinth/proto/gen/plinth/agent/v1/agent_cache_service_pb.js";
import type { Access } from "@plinth/resource";
import { type Policy, policyAccess } from "@plinth/resource-service";
import { Backoff, type Clock, type Random, type Timer } from "@plinth/runtime";
import { cacheLimits } from "./cache-limits.ts";
import { Suspension } from "./suspension.ts";

/** Options of `FollowedToken`. */
export interface FollowedTokenOptions {
	/** `undefined` for calls without a token. */
	readonly token: string | undefined;
	readonly client: Pick<Client<typeof AgentCacheService>, "followAccess">;
	readonly clock: Clock;
	readonly random: Random;
	/** Called once, when the token is no longer followed. @param failure - if its rights were never known. */
	readonly onOver: (failure: ConnectError | undefined) => void;
}

interface Granted {
	readonly policy: Policy;
	readonly access: Access;
	readonly end: AbortController;
}

/**
 * The rights of one token, as servers stream them.
 *
 * ```
 *   call of FollowAccess ──▶ policy ──▶ still valid ──▶ still valid ──╳ lost ──▶ called again
 *   at t                     proven at t + elapsed, for 10 s each         │
 *                                                                        └─ not again in time: the rights end
 * ```
 *
 * Invariants:
 *
 * - The rights are those that a server had at a time which is at most `rightsMs` ago. That time is the one of the call, plus how
 *   long its stream had existed at the server: the call began before the stream did, so a message that was delayed on its way
 *   proves nothing about the time when it arrives. No clocks are compared, but the stream is timed by that of the server, which
 *   may run faster: nothing is proven about a time to come.
 * - Rights that were known before the machine of the agent was suspended are not used after that.
 * - They are not used after the token expires.
 * - Rights do not change: if they do, the access ends with Unauthenticated, as at a server, and a new one begins.
 */
export class FollowedToken {
	/** Calls that need the rights until they end: watches. */
	uses = 0;
	/** On the monotonic clock. */
	lastUsedMs: number;
	readonly #options: FollowedTokenOptions;
	readonly #stop = new AbortController();
	readonly #opened = Promise.withResolvers<void>();
	#granted: Granted | undefined;
	#provenUntilMs = Number.NEGATIVE_INFINITY;
	#expiresMs = Number.POSITIVE_INFINITY;
	#deadline: Timer | undefined;
	readonly #suspension: Suspension;
	#isOver = false;

	constructor(options: FollowedTokenOptions) {
		this.#options = options;
		this.lastUsedMs = options.clock.monotonic();
		this.#suspension = new Suspension(options.clock);
		void this.#follow();
	}

	/** Resolves when the first attempt has told the rights, or has failed. */
	get opened(): Promise<void> {
		return this.#opened.promise;
	}

	/** The rights; `undefined` if they are not known, or not for certain. */
	get access(): Access | undefined {
		// The timer may be late.
		this.endIfDue();
		return this.#granted?.access;
	}

	/** Ends the rights, and the watches that need them. */
	close(reason: ConnectError): void {
		this.#over(reason, undefined);
	}

	async #follow(): Promise<void> {
		const { clock, random } = this.#options;
		const backoff = new Backoff({ baseMs: 100, maxMs: 2_000, clock, random });
		for (;;) {
			const failure = await this.#attempt(() => backoff.reset());
			if (this.#isOver) {
				return;
			}
			if (isFinal(failure.code)) {
				this.#over(failure.code === Code.Unauthenticated ? undefined : unknownRights(), failure);
				return;
			}
			// The attempt may have failed late, after the rights have ended.
			if (this.access === undefined) {
				this.#over(unknownRights(), failure);
				return;
			}
			try {
				await backoff.wait(this.#stop.signal);
			} catch {
				return;
			}
		}
	}

	/** Reads one stream. Returns why it has ended. */
	async #attempt(onMessage: () => void): Promise<ConnectError> {
		const { token, client, clock } = this.#options;
		const end = new AbortController();
		const stop = () => end.abort();
		this.#stop.signal.addEventListener("abort", stop);
		let silence: Timer | undefined;
		const listen = () => {
			silence?.cancel();
			silence = clock.setTimer(cacheLimits.rightsSilenceMs, stop);
		};
		listen();
		const calledMs = clock.monotonic();
		try {
			const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
			for await (const message of client.followAccess({}, { headers, signal: end.signal })) {
				if (this.#isOver) {
					break;
				}
				listen();
				onMessage();
				this.#received(calledMs, message);
				if (clock.monotonic() - calledMs >= cacheLimits.rightsStreamMs) {
					return new ConnectError("the stream is opened again after a while", Code.Unavailable);
				}
			}
			return new ConnectError("the server ended the stream", Code.Unavailable);
		} catch (failure) {
			return end.signal.aborted
				? new ConnectError("the server sends nothing", Code.Unavailable)
				: ConnectError.from(failure);
		} finally {
			silence?.cancel();
			end.abort();
			this.#stop.signal.removeEventListener("abort", stop);
		}
	}

	#received(calledMs: number, { policy, elapsed, expiresIn }: FollowAccessResponse): void {
		const { clock } = this.#options;
		// A message that has come after a suspension may be from before it.
		this.endIfDue();
		if (this.#isOver) {
			return;
		}
		const existedMs = elapsed === undefined ? 0 : durationMs(elapsed);
		const provenMs = Math.min(calledMs + existedMs, clock.monotonic());
		if (policy !== undefined) {
			this.#grant(policyFrom(policy));
		}
		this.#provenUntilMs = Math.max(this.#provenUntilMs, provenMs + cacheLimits.rightsMs);
		this.#expiresMs =
			expiresIn === undefined ? Number.POSITIVE_INFINITY : provenMs + durationMs(expiresIn);
		this.#deadline?.cancel();
		const untilMs = Math.min(this.#provenUntilMs, this.#expiresMs);
		this.#deadline = clock.setTimer(untilMs - clock.monotonic(), () => this.endIfDue());
		this.endIfDue();
		this.#opened.resolve();
	}

	#grant(policy: Policy): void {
		if (this.#granted !== undefined && isDeepStrictEqual(this.#granted.policy, policy)) {
			return;
		}
		this.#end(undefined);
		this.#provenUntilMs = Number.NEGATIVE_INFINITY;
		const end = new AbortController();
		this.#granted = { policy, end, access: policyAccess(policy, end.signal) };
	}

	/** Ends the rights if they are not known any more. */
	endIfDue(): void {
		const nowMs = this.#options.clock.monotonic();
		if (this.#suspension.wasSuspended()) {
			this.#over(unknownRights(), undefined);
		} else if (this.#granted === undefined) {
			return;
		} else if (nowMs >= this.#expiresMs) {
			this.#over(undefined, undefined);
		} else if (nowMs >= this.#provenUntilMs) {
			this.#over(unknownRights(), undefined);
		}
	}

	/** @param reason - of the end; by default, that the token has expired or was revoked. */
	#end(reason: ConnectError | undefined): void {
		const granted = this.#granted;
		this.#granted = undefined;
		granted?.end.abort(reason);
	}

	#over(reason: ConnectError | undefined, failure: ConnectError | undefined): void {
		if (this.#isOver) {
			return;
		}
		this.#isOver = true;
		this.#deadline?.cancel();
		this.#stop.abort();
		const wasKnown = this.#provenUntilMs > Number.NEGATIVE_INFINITY;
		this.#end(reason);
		this.#opened.resolve();
		this.#options.onOver(wasKnown ? undefined : failure);
	}
}

/** Whether another attempt would fail as well. */
function isFinal(code: Code): boolean {
	switch (code) {
		case Code.Unauthenticated:
		case Code.PermissionDenied:
		case Code.FailedPrecondition:
		case Code.InvalidArgument:
		case Code.Unimplemented:
			return true;
		default:
			return false;
	}
}

function unknownRights(): ConnectError {
	return new ConnectError(
		`no server has confirmed the rights of the token for ${cacheLimits.rightsMs / 1_000} s: watch again`,
		Code.Unavailable,
	);
}

function policyFrom({ subject, rules }: AccessPolicy): Policy {
	return {
		subject,
		rules: rules.map(({ operations, type, partition, namespace, namePrefix }) => ({
			operations,
			...(type !== undefined && { type }),
			...(partition !== undefined && { partition }),
			...(namespace !== undefined && { namespace }),
			...(namePrefix !== undefined && { namePrefix }),
		})),
	};
}
