import { Code, ConnectError } from "@connectrpc/connect";
import type { Clock } from "@plinth/runtime";
import type { Endpoint } from "./endpoint.ts";
import { EtcdError } from "./etcd-error.ts";
import type { EtcdUser } from "./etcd-options.ts";

/** How long etcd may take to check a password, which is slow by design, in milliseconds. */
const timeoutMs = 5000;
/** How long a password that etcd has rejected is not sent to it again, in milliseconds. */
const rejectedForMs = 1000;

/** A password that etcd rejected. */
interface Rejection {
	readonly password: string;
	readonly error: EtcdError;
	readonly atMs: number;
}

/** The token of a user, requested on demand and shared by all calls. */
export class Token {
	readonly #user: EtcdUser | undefined;
	readonly #clock: Clock;
	#token: Promise<string> | undefined;
	#rejection: Rejection | undefined;

	constructor(user: EtcdUser | undefined, clock: Clock) {
		this.#user = user;
		this.#clock = clock;
	}

	/**
	 * The token, or `undefined` if there is no user.
	 *
	 * @throws EtcdError with the code Unauthenticated if etcd rejects the password, or it can't be read.
	 */
	async get(endpoint: Endpoint): Promise<string | undefined> {
		if (this.#user === undefined) {
			return undefined;
		}
		if (this.#token === undefined) {
			const requested = this.#authenticate(endpoint, this.#user);
			this.#token = requested;
			requested.catch(() => this.#forget(requested));
		}
		return this.#token;
	}

	/** Discards the token, so that the next call requests another one. */
	expired(): void {
		this.#token = undefined;
	}

	#forget(token: Promise<string>): void {
		if (this.#token === token) {
			this.#token = undefined;
		}
	}

	async #authenticate(endpoint: Endpoint, user: EtcdUser): Promise<string> {
		const password = await passwordOf(user);
		const rejection = this.#rejection;
		const nowMs = this.#clock.monotonic();
		if (rejection?.password === password && nowMs - rejection.atMs < rejectedForMs) {
			throw rejection.error;
		}
		try {
			const request = { name: user.user, password };
			const { token } = await endpoint.auth.authenticate(request, { timeoutMs });
			this.#rejection = undefined;
			return token;
		} catch (reason) {
			const { code, rawMessage } = ConnectError.from(reason);
			if (code !== Code.InvalidArgument && code !== Code.Unauthenticated) {
				throw reason;
			}
			const message = `etcd rejects user ${JSON.stringify(user.user)}: ${rawMessage}`;
			const error = new EtcdError("refused", message, Code.Unauthenticated, { cause: reason });
			this.#rejection = { password, error, atMs: this.#clock.monotonic() };
			throw error;
		}
	}
}

async function passwordOf({ user, password }: EtcdUser): Promise<string> {
	if (typeof password === "string") {
		return password;
	}
	try {
		return await password();
	} catch (cause) {
		const why = cause instanceof Error ? cause.message : String(cause);
		const message = `can't read the password of etcd user ${JSON.stringify(user)}: ${why}`;
		throw new EtcdError("refused", message, Code.Unauthenticated, { cause });
	}
}
