import { versionOf } from "../positions/cluster-position.ts";
import type { ScannedEvent } from "./scanned-message.ts";

/** Where a watch can be continued at another server. */
export type Continuation =
	/** Nothing was passed on: the watch begins as the client has requested it. */
	| { readonly kind: "from-the-beginning" }
	/** After this version. */
	| { readonly kind: "after"; readonly version: string }
	/** Nowhere: a part of a snapshot was passed on, and no other server has the same snapshot. */
	| { readonly kind: "in-snapshot" }
	/** Nowhere: something was passed on that could not be read. */
	| { readonly kind: "unknown" };

/** What is done with a message: it is passed on, left out because the client has it, or can't be judged. */
export type Decision = "pass" | "skip" | "lost";

/** So many changes of one revision are remembered at most. A larger revision has no position before its end. */
const changesLimit = 1_024;

/** A revision of which changes were passed on, but not the end. */
interface PartialRevision {
	/** Its version, if it is known: an upsert of it has shown it, or its end has come. */
	version: number | undefined;
}

/**
 * What a client has received of one watch, and where another server can continue it.
 *
 * ```
 *   revision   7 ──────┐ 8 ────────────────────────┐ 9 ─────
 *   event      a   b@7 │ c       d       e       f@8 │ g@9
 *                      │                 ▲
 *          #version = 7┘                 └ the server is lost: #passed = {c, d}
 *
 *   continued after 7:  c       d       e       f@8   g@9
 *                       left out        passed on
 * ```
 *
 * Only the last event of a revision carries a version (`@`), so that a server that continues sends the whole revision
 * again in which the other one was lost. A change is known again by its action, its resource, and the version of the
 * resource, which occur together once.
 *
 * Invariants, whatever servers the events come from:
 *
 * - Each change is passed on once: what is in `#passed` or `#expected` is left out.
 * - No version is passed on before a change that the client has without a version: while changes are expected, bookmarks are
 *   left out. They may be older than that change.
 * - A change is no longer expected once a server has sent all up to its revision: it has come again, or the caller may no
 *   longer see it. A revision of deletions alone has no known version: they are expected until one of them comes.
 * - `#version` is the last version that was passed on, or the client's own, and all that was passed on after it is in
 *   `#passed`, unless `#isCertain` is false.
 */
export class WatchPosition {
	#version: string;
	#hasBegun = false;
	#isCertain = true;
	/** Changes that were passed on after `#version`. */
	readonly #passed = new Map<string, PartialRevision>();
	/** Changes that the current server sends again. */
	readonly #expected = new Map<string, PartialRevision>();
	/** The revision that the current server sends. */
	#revision: PartialRevision = { version: undefined };

	/** @param version - after which the client has requested to resume; empty if it begins with a snapshot. */
	constructor(version: string) {
		this.#version = version;
	}

	/** Whether something was passed on. */
	get hasBegun(): boolean {
		return this.#hasBegun;
	}

	/** Decides on the next event of the current server. */
	decide(event: ScannedEvent): Decision {
		switch (event.kind) {
			case "change":
				return this.#change(event);
			case "bookmark":
				this.#sentUpTo(event.version);
				if (this.#expected.size > 0) {
					return "skip";
				}
				this.#advance(event.version);
				break;
			case "end-of-snapshot":
				this.#advance(event.version);
				break;
			case "unknown":
				if (this.#expected.size > 0) {
					return "lost";
				}
				if (event.version === "") {
					this.#isCertain = false;
				} else {
					this.#advance(event.version);
				}
		}
		this.#hasBegun = true;
		return "pass";
	}

	/** Decides on a message that can't be read. */
	decideUnread(): Decision {
		if (this.#expected.size > 0) {
			return "lost";
		}
		this.#isCertain = false;
		this.#hasBegun = true;
		return "pass";
	}

	/** Where another server can continue. */
	get continuation(): Continuation {
		if (!this.#isCertain) {
			return { kind: "unknown" };
		}
		if (this.#version !== "") {
			return { kind: "after", version: this.#version };
		}
		return { kind: this.#hasBegun ? "in-snapshot" : "from-the-beginning" };
	}

	/** Another server continues after the version of `continuation`. */
	continued(): void {
		for (const [change, revision] of this.#passed) {
			this.#expected.set(change, revision);
		}
		this.#revision = { version: undefined };
	}

	#change({ change, version, shows }: ScannedEvent): Decision {
		const expected = this.#expected.get(change);
		if (expected !== undefined) {
			this.#expected.delete(change);
			this.#revision = expected;
			if (version !== "") {
				this.#endRevision(version);
			}
			return "skip";
		}
		this.#hasBegun = true;
		this.#revision.version ??= versionOf(shows);
		if (version !== "") {
			this.#endRevision(version);
		} else if (this.#version !== "") {
			if (this.#passed.size < changesLimit) {
				this.#passed.set(change, this.#revision);
			} else {
				this.#isCertain = false;
			}
		}
		return "pass";
	}

	#endRevision(version: string): void {
		this.#revision.version = versionOf(version);
		this.#sentUpTo(version);
		this.#advance(version);
	}

	/** The current server has sent all that it sends up to this version. */
	#sentUpTo(version: string): void {
		const sent = versionOf(version) ?? 0;
		for (const [change, revision] of this.#expected) {
			if (revision.version !== undefined && revision.version <= sent) {
				this.#expected.delete(change);
			}
		}
	}

	#advance(version: string): void {
		if (version === "") {
			return;
		}
		this.#version = version;
		this.#revision = { version: undefined };
		this.#isCertain = true;
		this.#passed.clear();
		// They come after this version if the servers show the caller different resources.
		for (const [change, revision] of this.#expected) {
			this.#passed.set(change, revision);
		}
	}
}
