import type { Content, Event, History, Key, Outcome, Seen } from "./history.ts";

/** What a resource is in a script: a content without its note, and what was seen of it. */
type Described = Partial<Omit<Content, "note">>;

/** Writes a history down, one call after the other, ten milliseconds each. */
export class Script {
	readonly #events: Event[] = [];
	readonly #seen = new Map<Key, Seen>();
	#now = 0;
	#notes = 0;

	/** All that was written down. */
	get history(): History {
		return this.#events;
	}

	/** A resource is created or replaced. Answers its uid. */
	writes(key: Key, described: Described = {}): string {
		const content = this.#content(described);
		const before = this.#seen.get(key);
		const value = { ...content, uid: before?.uid ?? `uid-${content.note}`, marked: false };
		this.#seen.set(key, value);
		this.#write(key, content, { kind: "done", value });
		return value.uid;
	}

	/** A write whose outcome is not known. */
	mayWrite(key: Key, described: Described = {}): Content {
		const content = this.#content(described);
		this.#write(key, content, { kind: "unknown", why: "the server was killed" });
		return content;
	}

	/** A write is refused. */
	isRefused(key: Key, described: Described, message: string, code = "failed_precondition"): void {
		this.#write(key, this.#content(described), { kind: "refused", code, message });
	}

	/** A deletion is answered; the resource is seen gone afterwards where `looks` is set. */
	deletes(key: Key, looks = true): void {
		this.#delete(key, { kind: "done", value: true });
		if (looks) {
			this.findsNothing(key);
		}
	}

	/** A deletion whose outcome is not known. */
	mayDelete(key: Key): void {
		this.#delete(key, { kind: "unknown", why: "the server was killed" });
	}

	/** A deletion is refused. */
	isKept(key: Key, message: string): void {
		this.#delete(key, { kind: "refused", code: "failed_precondition", message });
	}

	/** A resource is seen as it was last, but for what is given. */
	finds(key: Key, changed: Partial<Seen> = {}): void {
		const last = this.#seen.get(key);
		if (last === undefined) {
			throw new Error(`the script has not written ${key}`);
		}
		const seen = { ...last, ...changed };
		this.#seen.set(key, seen);
		this.#events.push({ call: "look", key, ...this.#span(), seen });
	}

	/** A resource is seen to be gone. */
	findsNothing(key: Key): void {
		this.#seen.delete(key);
		this.#events.push({ call: "look", key, ...this.#span(), seen: undefined });
	}

	#content({ references = {}, owners = [] }: Described): Content {
		this.#notes += 1;
		return { note: `note-${this.#notes}`, references, owners };
	}

	#write(key: Key, content: Content, outcome: Outcome<Seen>): void {
		this.#events.push({ call: "write", key, ...this.#span(), content, outcome });
	}

	#delete(key: Key, outcome: Outcome<boolean>): void {
		this.#events.push({ call: "delete", key, ...this.#span(), outcome });
	}

	#span(): { readonly from: number; readonly to: number } {
		this.#now += 10;
		return { from: this.#now - 9, to: this.#now };
	}
}
