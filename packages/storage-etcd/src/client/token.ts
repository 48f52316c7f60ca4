import type { Endpoint } from "./endpoint.ts";
import type { EtcdUser } from "./etcd-options.ts";

/** How long etcd may take to check a password, which is slow by design, in milliseconds. */
const timeoutMs = 5000;

/** The token of a user, asked for when it is needed and shared by all calls. */
export class Token {
	readonly #user: EtcdUser | undefined;
	#token: Promise<string> | undefined;

	constructor(user: EtcdUser | undefined) {
		this.#user = user;
	}

	/** The token, or `undefined` where there is no user. */
	async get(endpoint: Endpoint): Promise<string | undefined> {
		if (this.#user === undefined) {
			return undefined;
		}
		if (this.#token === undefined) {
			const asked = authenticate(endpoint, this.#user);
			this.#token = asked;
			asked.catch(() => this.#forget(asked));
		}
		return this.#token;
	}

	/** Asks for another one next time: etcd no longer knows this one. */
	expired(): void {
		this.#token = undefined;
	}

	#forget(token: Promise<string>): void {
		if (this.#token === token) {
			this.#token = undefined;
		}
	}
}

async function authenticate(endpoint: Endpoint, { user, password }: EtcdUser): Promise<string> {
	const { token } = await endpoint.auth.authenticate({ name: user, password }, { timeoutMs });
	return token;
}
