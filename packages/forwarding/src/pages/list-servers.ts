/** The header of a response with the key of a list that has more pages: they must be requested from the same server. */
export const pagesHeader = "x-plinth-pages";

/** A longer key is not remembered. Those of servers have 26 characters. */
const keyLength = 64;

/** Remembers which server holds the snapshot of each list that is read in pages. The oldest ones are forgotten. */
export class ListServers<Server> {
	readonly #limit: number;
	/** The server of each key, in the order of their last pages. */
	readonly #servers = new Map<string, Server>();

	/** @param limit - of lists. */
	constructor(limit: number) {
		this.#limit = limit;
	}

	remember(key: string, server: Server): void {
		if (key.length > keyLength) {
			return;
		}
		this.#servers.delete(key);
		this.#servers.set(key, server);
		if (this.#servers.size > this.#limit) {
			const [oldest] = this.#servers.keys();
			this.#servers.delete(oldest ?? key);
		}
	}

	serverOf(key: string): Server | undefined {
		return this.#servers.get(key);
	}
}
