import { Code, ConnectError } from "@connectrpc/connect";
import type { Connection } from "./connection.ts";
import type { Session } from "./session.ts";

/** The first session that a connection has for a call, and none after it. */
export class OneSession implements Pick<Connection, "current" | "ready"> {
	readonly #connection: Pick<Connection, "current" | "ready">;
	#session: Session | undefined;

	constructor(connection: Pick<Connection, "current" | "ready">) {
		this.#connection = connection;
	}

	get current(): Session | undefined {
		this.#session ??= this.#connection.current;
		return this.#session?.isReady && !this.#session.needsVerification ? this.#session : undefined;
	}

	/** @throws ConnectError Unavailable if the server can't be reached, or the session has ended. */
	async ready(): Promise<Session> {
		const ready = this.#session ?? (await this.#connection.ready());
		// Another call may have come first.
		this.#session ??= ready;
		const session = this.#session;
		if (session.needsVerification) {
			await session.verify();
		}
		if (!session.isReady) {
			throw new ConnectError("the connection has ended", Code.Unavailable);
		}
		return session;
	}
}
