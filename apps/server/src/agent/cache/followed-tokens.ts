import { type Client, Code, ConnectError } from "@connectrpc/connect";
import type { AgentCacheService } from "@plinth/proto/gen/plinth/agent/v1/agent_cache_service_pb.js";
import { tokenHash } from "@plinth/resource-service";
import type { Logger, Runtime, Timer } from "@plinth/runtime";
import { cacheLimits } from "./cache-limits.ts";
import { FollowedToken } from "./followed-token.ts";
import { within } from "./within.ts";

/** Options of `FollowedTokens`. */
export interface FollowedTokensOptions {
	readonly client: Pick<Client<typeof AgentCacheService>, "followAccess">;
	readonly runtime: Pick<Runtime, "clock" | "random">;
	readonly logger: Logger;
}

/** How many refused tokens are remembered, by their hashes. */
const rememberedRefusals = 1_000;

/**
 * The rights of the tokens of callers. A token is followed from its first call until it was not used for a while, or until
 * servers refuse it. A call whose token is not followed is forwarded: servers decide then.
 */
export class FollowedTokens {
	readonly #options: FollowedTokensOptions;
	/** The least recently used first. */
	readonly #tokens = new Map<string, FollowedToken>();
	/** Until when tokens are not tried again, on the monotonic clock, by their hashes. */
	readonly #refused = new Map<string, number>();
	#opening = 0;
	/** Until when no token is tried, because servers do not describe rights. */
	#unsupportedUntilMs = Number.NEGATIVE_INFINITY;
	#problem = "";
	#sweep: Timer | undefined;
	#isClosed = false;

	constructor(options: FollowedTokensOptions) {
		this.#options = options;
		this.#planSweep();
	}

	/** The tokens that are followed. */
	get size(): number {
		return this.#tokens.size;
	}

	/** The token with its rights; `undefined` if they are not known, and the call is to be forwarded. */
	async rightsOf(token: string | undefined): Promise<FollowedToken | undefined> {
		const followed = this.#followed(token);
		if (followed === undefined) {
			return undefined;
		}
		if (followed.access === undefined) {
			await within(this.#options.runtime.clock, cacheLimits.openTokenMs, followed.opened);
		}
		return followed.access === undefined ? undefined : followed;
	}

	close(reason: ConnectError): void {
		this.#isClosed = true;
		this.#sweep?.cancel();
		for (const followed of [...this.#tokens.values()]) {
			followed.close(reason);
		}
	}

	/** The tokens that are known to be valid. */
	get #opened(): number {
		return this.#tokens.size - this.#opening;
	}

	#followed(token: string | undefined): FollowedToken | undefined {
		const { clock } = this.#options.runtime;
		const key = token === undefined ? "" : `token ${token}`;
		const known = this.#tokens.get(key);
		if (known !== undefined) {
			known.lastUsedMs = clock.monotonic();
			this.#tokens.delete(key);
			this.#tokens.set(key, known);
			return known;
		}
		return this.#isClosed || !this.#mayOpen(token) ? undefined : this.#open(key, token);
	}

	#mayOpen(token: string | undefined): boolean {
		const nowMs = this.#options.runtime.clock.monotonic();
		if (nowMs < this.#unsupportedUntilMs || this.#opening >= cacheLimits.openingTokens) {
			return false;
		}
		const refusedUntilMs = this.#refused.get(hashOf(token)) ?? 0;
		return (
			refusedUntilMs <= nowMs && (this.#opened < cacheLimits.tokens || this.#unused() !== undefined)
		);
	}

	#open(key: string, token: string | undefined): FollowedToken {
		const { client, runtime } = this.#options;
		this.#opening += 1;
		const followed = new FollowedToken({
			...{ token, client, ...runtime },
			onOver: (failure) => {
				if (this.#tokens.get(key) === followed) {
					this.#tokens.delete(key);
				}
				if (failure !== undefined) {
					this.#failed(token, failure);
				}
			},
		});
		this.#tokens.set(key, followed);
		void followed.opened.then(() => {
			this.#opening -= 1;
			// One that is refused drives out none that is valid.
			if (followed.access !== undefined && this.#opened > cacheLimits.tokens) {
				(this.#unused(followed) ?? followed).close(unused());
			}
		});
		return followed;
	}

	#failed(token: string | undefined, { code, message }: ConnectError): void {
		const { runtime, logger } = this.#options;
		const nowMs = runtime.clock.monotonic();
		if (code === Code.Unimplemented || code === Code.FailedPrecondition) {
			this.#unsupportedUntilMs = nowMs + cacheLimits.retryMs;
			if (this.#problem !== message) {
				this.#problem = message;
				logger.warn({ problem: message }, "servers do not tell rights: calls are forwarded");
			}
		} else if (code !== Code.Unavailable) {
			if (this.#refused.size >= rememberedRefusals) {
				this.#refused.clear();
			}
			this.#refused.set(hashOf(token), nowMs + cacheLimits.refusedTokenMs);
		}
	}

	/** The valid token without watches that was not used for the longest time. */
	#unused(except?: FollowedToken): FollowedToken | undefined {
		for (const followed of this.#tokens.values()) {
			if (followed !== except && followed.uses === 0 && followed.access !== undefined) {
				return followed;
			}
		}
		return undefined;
	}

	#planSweep(): void {
		const { clock } = this.#options.runtime;
		this.#sweep = clock.setTimer(cacheLimits.sweepMs, () => {
			const nowMs = clock.monotonic();
			for (const followed of [...this.#tokens.values()]) {
				followed.endIfDue();
				if (followed.uses === 0 && nowMs - followed.lastUsedMs >= cacheLimits.tokenIdleMs) {
					followed.close(unused());
				}
			}
			this.#planSweep();
		});
	}
}

/** What a token is remembered by. Calls without one differ from those with an empty one. */
function hashOf(token: string | undefined): string {
	return token === undefined ? "" : tokenHash(token);
}

function unused(): ConnectError {
	return new ConnectError("the token was not used for a while: call again", Code.Unavailable);
}
