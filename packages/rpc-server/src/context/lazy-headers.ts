import type { RequestHead } from "../carrier.ts";

/**
 * The headers of a request. A look-up by name reads the head as it is; anything else creates the `Headers` first, which
 * costs more than a short call.
 */
export class LazyHeaders implements Headers {
	readonly #head: Pick<RequestHead, "header" | "headers">;
	#headers: Headers | undefined;

	constructor(head: Pick<RequestHead, "header" | "headers">) {
		this.#head = head;
	}

	get(name: string): string | null {
		if (this.#headers !== undefined) {
			return this.#headers.get(name);
		}
		return trimmed(this.#head.header(name.toLowerCase())) ?? null;
	}

	has(name: string): boolean {
		return this.#headers?.has(name) ?? this.#head.header(name.toLowerCase()) !== undefined;
	}

	append(name: string, value: string): void {
		this.#all.append(name, value);
	}

	delete(name: string): void {
		this.#all.delete(name);
	}

	set(name: string, value: string): void {
		this.#all.set(name, value);
	}

	getSetCookie(): string[] {
		return this.#all.getSetCookie();
	}

	forEach(callback: (value: string, name: string, headers: Headers) => void, self?: unknown): void {
		for (const [name, value] of this.#all) {
			callback.call(self, value, name, this);
		}
	}

	entries(): ReturnType<Headers["entries"]> {
		return this.#all.entries();
	}

	keys(): ReturnType<Headers["keys"]> {
		return this.#all.keys();
	}

	values(): ReturnType<Headers["values"]> {
		return this.#all.values();
	}

	[Symbol.iterator](): ReturnType<Headers["entries"]> {
		return this.#all.entries();
	}

	get #all(): Headers {
		if (this.#headers === undefined) {
			this.#headers = new Headers();
			for (const [name, value] of this.#head.headers()) {
				this.#headers.append(name, value);
			}
		}
		return this.#headers;
	}
}

const space = /^[\t ]|[\t ]$/;

/** Removes spaces around a value, as `Headers` does. */
function trimmed(value: string | undefined): string | undefined {
	return value !== undefined && space.test(value) ? value.trim() : value;
}
