import { isDeepStrictEqual } from "node:util";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Access } from "@plinth/resource";
import { type Policy, policyAccess, tokenHash } from "@plinth/resource-service";
import type { Clock, Logger, Timer } from "@plinth/runtime";
import { errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from "jose";
import type { ClaimGrant } from "./access-file.ts";
import type { JwtOptions } from "./access-options.ts";
import { refusesToken } from "./jwt-keys.ts";

/** Asymmetric algorithms only: with others, every party that can verify a JWT could also create one. */
const algorithms = [
	...["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
	...["ES256", "ES384", "ES512", "EdDSA", "Ed25519"],
];

/** The tolerated difference between the clocks of issuer and server. */
const toleranceSeconds = 30;

/** The number of verified tokens that are remembered. Watches of an evicted token end, and can be reopened. */
const rememberedTokens = 10_000;

/** How long a verification is valid, so that tokens of withdrawn keys stop working. */
const trustedMs = 5 * 60_000;

/** How often expired verifications are repeated: an open watch makes no calls that would do it. */
const sweepEveryMs = 60_000;

interface Verified {
	readonly payload: JWTPayload;
	readonly policy: Policy;
	readonly access: Access;
	readonly end: AbortController;
	/** When it expires, with the tolerance, in milliseconds since the epoch. */
	readonly expiresMs: number;
	/** Ends access when the token expires. */
	readonly expiry: Timer;
	/** When it was verified, on the monotonic clock. */
	verifiedMs: number;
	/** Verifies the token again. It is in no field, so that it can't be printed. */
	readonly verifyAgain: () => Promise<unknown>;
}

/** Options of `JwtAuthorizer`. */
export interface JwtAuthorizerOptions extends Pick<JwtOptions, "issuer" | "audience"> {
	readonly clock: Clock;
	readonly logger: Logger;
}

/** Checks JWTs, and authorizes their bearers by the rights that are granted to their claims. */
export class JwtAuthorizer {
	readonly #options: JwtAuthorizerOptions;
	/** By the hash of the token, the most recently used last. */
	readonly #verified = new Map<string, Verified>();
	#keys: JWTVerifyGetKey | undefined;
	#claims: readonly ClaimGrant[] = [];
	#sweep: Timer | undefined;
	#isClosed = false;

	constructor(options: JwtAuthorizerOptions) {
		this.#options = options;
		this.#arm();
	}

	/** Replaces the keys, and verifies all tokens again. Watches of tokens that are no longer valid end. */
	setKeys(keys: JWTVerifyGetKey): void {
		this.#keys = keys;
		for (const verified of this.#verified.values()) {
			verified.verifiedMs = Number.NEGATIVE_INFINITY;
		}
		void this.#verifyDue();
	}

	/** Replaces the grants. Watches of tokens whose rights have changed end. */
	setClaims(claims: readonly ClaimGrant[]): void {
		this.#claims = claims;
		for (const [hash, { payload, policy }] of [...this.#verified]) {
			if (!isDeepStrictEqual(this.#policyOf(payload), policy)) {
				this.#forget(hash);
			}
		}
	}

	/** @throws ConnectError Unauthenticated; Unavailable if the keys can't be fetched. */
	async authenticate(token: string): Promise<Access> {
		const hash = tokenHash(token);
		const known = this.#verified.get(hash);
		const nowMs = this.#options.clock.monotonic();
		if (known !== undefined && nowMs - known.verifiedMs < trustedMs) {
			this.#verified.delete(hash);
			this.#verified.set(hash, known);
			return known.access;
		}
		const keys = this.#keys;
		try {
			const payload = await this.#verify(token);
			// If the keys were replaced in the meantime, the verification is valid for this call only.
			return this.#remember(token, payload, keys === this.#keys ? nowMs : Number.NEGATIVE_INFINITY);
		} catch (failure) {
			// Watches continue while the keys can't be fetched.
			if (isRefusal(failure)) {
				this.#forget(hash);
			}
			throw failure;
		}
	}

	/** When a token that was verified expires, in milliseconds since the epoch. */
	expiryOf(token: string): number | undefined {
		return this.#verified.get(tokenHash(token))?.expiresMs;
	}

	/** Forgets all tokens, and ends their watches. */
	close(): void {
		this.#isClosed = true;
		this.#sweep?.cancel();
		for (const hash of [...this.#verified.keys()]) {
			this.#forget(hash);
		}
	}

	async #verify(token: string): Promise<JWTPayload> {
		const { issuer, audience, clock, logger } = this.#options;
		if (this.#keys === undefined) {
			throw new ConnectError("the server has no keys to check the token", Code.Unavailable);
		}
		try {
			const { payload } = await jwtVerify(token, this.#keys, {
				issuer,
				audience,
				algorithms,
				clockTolerance: toleranceSeconds,
				currentDate: new Date(clock.now()),
				requiredClaims: ["exp", "sub"],
			});
			if (typeof payload.sub !== "string" || payload.sub === "") {
				throw new errors.JWTClaimValidationFailed("must be a non-empty string", payload, "sub");
			}
			return payload;
		} catch (failure) {
			if (refusesToken(failure)) {
				throw new ConnectError(refusalOf(failure), Code.Unauthenticated);
			}
			logger.warn({ err: failure }, "the keys of JWTs can't be fetched");
			throw new ConnectError(
				"the keys to check the token can't be fetched: try again",
				Code.Unavailable,
			);
		}
	}

	#arm(): void {
		if (!this.#isClosed) {
			const { clock } = this.#options;
			this.#sweep = clock.setTimer(
				sweepEveryMs,
				() => void this.#verifyDue().then(() => this.#arm()),
			);
		}
	}

	/** Repeats expired verifications, one at a time. */
	async #verifyDue(): Promise<void> {
		const { clock } = this.#options;
		for (const [hash, verified] of [...this.#verified]) {
			const isDue = clock.monotonic() - verified.verifiedMs >= trustedMs;
			if (!isDue || this.#verified.get(hash) !== verified) {
				continue;
			}
			try {
				await verified.verifyAgain();
			} catch (failure) {
				if (!isRefusal(failure)) {
					// The keys can't be fetched for the other tokens either.
					return;
				}
			}
		}
	}

	#remember(token: string, payload: JWTPayload, nowMs: number): Access {
		const { clock } = this.#options;
		const hash = tokenHash(token);
		const policy = this.#policyOf(payload);
		const known = this.#verified.get(hash);
		if (known !== undefined && isDeepStrictEqual(known.policy, policy)) {
			known.verifiedMs = nowMs;
			return known.access;
		}
		this.#forget(hash);
		const end = new AbortController();
		const expiresMs = ((payload.exp ?? 0) + toleranceSeconds) * 1_000;
		const verified: Verified = {
			payload,
			policy,
			end,
			expiresMs,
			access: policyAccess(policy, end.signal),
			expiry: clock.setTimer(expiresMs - clock.now(), () => this.#forget(hash)),
			verifiedMs: nowMs,
			verifyAgain: () => this.authenticate(token),
		};
		this.#verified.set(hash, verified);
		const [oldest] = this.#verified.keys();
		if (this.#verified.size > rememberedTokens && oldest !== undefined) {
			this.#forget(oldest);
		}
		return verified.access;
	}

	#forget(hash: string): void {
		const verified = this.#verified.get(hash);
		if (verified !== undefined) {
			this.#verified.delete(hash);
			verified.expiry.cancel();
			verified.end.abort();
		}
	}

	#policyOf(payload: JWTPayload): Policy {
		const rules = this.#claims
			.filter(({ claim, value }) => valuesOf(payload, claim).includes(value))
			.flatMap((grant) => grant.rules);
		return { subject: payload.sub ?? "", rules };
	}
}

function isRefusal(failure: unknown): boolean {
	return failure instanceof ConnectError && failure.code === Code.Unauthenticated;
}

function valuesOf(payload: JWTPayload, claim: string): readonly unknown[] {
	const value: unknown = Object.hasOwn(payload, claim) ? payload[claim] : undefined;
	return Array.isArray(value) ? value : [value];
}

/** Why a token is refused, without any of its contents. */
function refusalOf(failure: unknown): string {
	if (failure instanceof errors.JWTExpired) {
		return "the token has expired";
	}
	if (failure instanceof errors.JWTClaimValidationFailed) {
		return `the token is not valid for this server, or not yet: its claim ${failure.claim} is not accepted`;
	}
	return "the token is not signed by a key that this server knows";
}
