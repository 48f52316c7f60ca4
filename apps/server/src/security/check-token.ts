import { Code, ConnectError } from "@connectrpc/connect";
import type { Access, Authorizer } from "@plinth/resource";
import { PolicyAuthorizer, tokenHash } from "@plinth/resource-service";
import type { Clock, Logger, Timer } from "@plinth/runtime";
import type { TokenGrant } from "./access-file.ts";
import type { AccessOptions } from "./access-options.ts";
import type { JwtAuthorizer, JwtAuthorizerOptions } from "./check-jwt.ts";
import { type FollowedFiles, followFiles } from "./followed-files.ts";

/** An authorizer that follows files. */
export interface AccessAuthorizer extends Authorizer {
	/** Checks the files now. */
	reload(): Promise<void>;
	close(): void;
}

/**
 * Creates an authorizer from an access file and, if configured, the keys of JWTs. Both are followed: watches of
 * tokens that have expired, or whose rights have changed, end with Unauthenticated.
 *
 * @throws Error if a file can't be read or is malformed.
 */
export async function createAccessAuthorizer(
	options: AccessOptions,
	context: { readonly clock: Clock; readonly logger: Logger; readonly pollIntervalMs?: number },
): Promise<AccessAuthorizer> {
	const { clock } = context;
	const tokens = new ExpiringTokens(clock);
	// The library for JWTs is not loaded where none are accepted.
	const jwts = options.jwt && (await createJwtAuthorizer({ ...options.jwt, ...context }));
	// The index of this package exports this function: only a server with an access file loads its parser.
	const { parseAccessFile } = await import("./access-file.ts");
	const followed: FollowedFiles[] = [];
	const close = () => {
		for (const files of followed) {
			files.close();
		}
		tokens.close();
		jwts?.close();
	};
	try {
		followed.push(
			await followFiles({
				...context,
				files: { access: options.file },
				apply: ({ access }) => {
					const rules = parseAccessFile(options.file, access);
					tokens.replaceAll(rules.tokens);
					jwts?.setClaims(rules.claims);
				},
			}),
		);
		if (options.jwt !== undefined) {
			const { keys } = options.jwt;
			const { keysAt, keysOf } = await import("./jwt-keys.ts");
			if ("url" in keys) {
				jwts?.setKeys(keysAt(keys.url, clock));
			} else {
				followed.push(
					await followFiles({
						...context,
						files: { keys: keys.file },
						apply: (contents) => jwts?.setKeys(keysOf(keys.file, contents.keys)),
					}),
				);
			}
		}
	} catch (failure) {
		close();
		throw failure;
	}
	return {
		authenticate: (token) =>
			token !== undefined && jwts !== undefined && looksLikeJwt(token)
				? jwts.authenticate(token)
				: tokens.authenticate(token),
		expiryOf: (token) =>
			(jwts !== undefined && looksLikeJwt(token) ? jwts : tokens).expiryOf(token),
		reload: async () => {
			await Promise.all(followed.map((files) => files.check()));
		},
		close,
	};
}

/** Loads the library for JWTs only in servers that accept them. */
async function createJwtAuthorizer(options: JwtAuthorizerOptions): Promise<JwtAuthorizer> {
	const { JwtAuthorizer } = await import("./check-jwt.ts");
	return new JwtAuthorizer(options);
}

/** Whether a token has three parts of base64url. Tokens that `new-token` creates have no dots. */
function looksLikeJwt(token: string): boolean {
	return /^[\w-]+\.[\w-]+\.[\w-]*$/.test(token);
}

/** Tokens of the access file, known by their hashes; some of them expire. */
class ExpiringTokens {
	readonly #policies = new PolicyAuthorizer();
	readonly #clock: Clock;
	readonly #expiries = new Map<string, { readonly atMs: number; readonly timer: Timer }>();

	constructor(clock: Clock) {
		this.#clock = clock;
	}

	replaceAll(grants: readonly TokenGrant[]): void {
		this.close();
		for (const { hash, expiresMs } of grants) {
			if (expiresMs !== undefined) {
				const timer = this.#clock.setTimer(expiresMs - this.#clock.now(), () =>
					this.#policies.revokeHashed(hash),
				);
				this.#expiries.set(hash, { atMs: expiresMs, timer });
			}
		}
		this.#policies.replaceAll(new Map(grants.map(({ hash, policy }) => [hash, policy])));
	}

	authenticate(token: string | undefined): Access {
		const access = this.#policies.authenticate(token);
		const mayExpire = token !== undefined && this.#expiries.size > 0;
		const expiry = mayExpire ? this.#expiries.get(tokenHash(token)) : undefined;
		if (expiry !== undefined && expiry.atMs <= this.#clock.now()) {
			throw new ConnectError("the token has expired", Code.Unauthenticated);
		}
		return access;
	}

	/** When a token expires, in milliseconds since the epoch. */
	expiryOf(token: string): number | undefined {
		return this.#expiries.size === 0 ? undefined : this.#expiries.get(tokenHash(token))?.atMs;
	}

	close(): void {
		for (const { timer } of this.#expiries.values()) {
			timer.cancel();
		}
		this.#expiries.clear();
	}
}
