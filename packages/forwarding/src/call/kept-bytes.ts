/** The memory for the beginnings of requests that may be sent again, which all calls share. */
export class KeptBytes {
	readonly #limit: number;
	#used = 0;

	/** @param limit - in bytes. */
	constructor(limit: number) {
		this.#limit = limit;
	}

	/** Takes so many bytes; false if there is no room for them. */
	take(bytes: number): boolean {
		if (this.#used + bytes > this.#limit) {
			return false;
		}
		this.#used += bytes;
		return true;
	}

	give(bytes: number): void {
		this.#used -= bytes;
	}
}
