import type { Content, Event, History, Key, ObservedResource, Outcome } from "./history.ts";

/** The content of a resource in a script, without its note. */
type Described = Partial<Omit<Content, "note">>;

/** Builds a history of calls, ten milliseconds each. */
export class Script {
	readonly #events: Event[] = [];
	readonly #seen = new Map<Key, ObservedResource>();
	#now = 0;
	#notes = 0;

	/** The history. */
	get history(): History {
		return this.#events;
	}

	/** A resource is created or replaced. Returns its uid. */
	writes(key: Key, described: Described = {}): string {
		const content = this.#content(described);
		const before = this.#seen.get(key);
		const value = { ...content, uid: before?.uid ?? `uid-${content.note}`, marked: false };
		this.#seen.set(key, value);
		this.#write(key, content, { kind: "done", value });
		return value.uid;
	}

	/** A write of unknown outcome. */
	mayWrite(key: Key, described: Described = {}): Content {
		const content = this.#content(described);
		this.#write(key, content, { kind: "unknown", why: "the server was killed" });
		return content;
	}

	/** A write is refused. */
	isRefused(key: Key, described: Described, message: string, code = "failed_precondition"): void {
		this.#write(key, this.#content(described), { kind: "refused", code, message });
	}

	/** A deletion succeeds. The resource is then read as missing if `reads` is set. */
	deletes(key: Key, reads = true): void {
		this.#delete(key, { kind: "done", value: true });
		if (reads) {
			this.findsNothing(key);
		}
	}

	/** A deletion of unknown outcome. */
	mayDelete(key: Key): void {
		this.#delete(key, { kind: "unknown", why: "the server was killed" });
	}

	/** A deletion is refused. */
	isKept(key: Key, message: string): void {
		this.#delete(key, { kind: "refused", code: "failed_precondition", message });
	}

	/** A resource is read as last observed, with changes. */
	finds(key: Key, changed: Partial<ObservedResource> = {}): void {
		const last = this.#seen.get(key);
		if (last === undefined) {
			throw new Error(`the script has not written ${key}`);
		}
		const seen = { ...last, ...changed };
		this.#seen.set(key, seen);
		this.#events.push({ call: "read", key, ...this.#span(), seen });
	}

	/** A resource is read as missing. */
	findsNothing(key: Key): void {
		this.#seen.delete(key);
		this.#events.push({ call: "read", key, ...this.#span(), seen: undefined });
	}

	#content({ references = {}, owners = [] }: Described): Content {
		this.#notes += 1;
		return { note: `note-${this.#notes}`, references, owners };
	}

	#write(key: Key, content: Content, outcome: Outcome<ObservedResource>): void {
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
