import { Code, ConnectError } from "@connectrpc/connect";
import type { Resource } from "@plinth/proto";
import { newUlid, type ResourceName } from "@plinth/resource";
import type { Runtime, Timer } from "@plinth/runtime";
import type { Snapshot } from "@plinth/storage";
import { limits } from "./limits.ts";
import { malformed } from "./refusal.ts";

/** A list that a caller reads page by page. */
export interface PagedList {
	/** All pages are of this. */
	readonly snapshot: Snapshot;
	/** What was asked for, and by whom: a token is good for that alone. */
	readonly question: string;
}

/** Where a page begins: behind the resource of that name. */
type Position = Pick<ResourceName, "tenancy" | "name">;

interface HeldList {
	readonly list: PagedList;
	timer: Timer;
}

/**
 * The lists that are being paged. Each holds its snapshot until its newest token has run out; when
 * there are too many, the one that was used least recently goes.
 */
export class PagedLists {
	readonly #runtime: Runtime;
	/** Least recently used first. */
	readonly #held = new Map<string, HeldList>();

	constructor(runtime: Runtime) {
		this.#runtime = runtime;
	}

	/** A token for what comes after `last`, of a new list or of one that `token` was about. */
	tokenAfter(list: PagedList, last: Resource, token: string): string {
		const key = token === "" ? newUlid(this.#runtime) : keyOf(token);
		this.#held.get(key)?.timer.cancel();
		this.#held.delete(key);
		const timer = this.#runtime.clock.setTimer(limits.pageTokenMs, () => {
			this.#held.delete(key);
		});
		this.#held.set(key, { list, timer });
		const [oldest] = this.#held;
		if (oldest !== undefined && this.#held.size > limits.pagedLists) {
			oldest[1].timer.cancel();
			this.#held.delete(oldest[0]);
		}
		const { tenancy, name } = last.id ?? {};
		const position = JSON.stringify([tenancy?.partition ?? "", tenancy?.namespace ?? "", name]);
		return `${key}.${Buffer.from(position).toString("base64url")}`;
	}

	/**
	 * The list of a token, and where its next page begins.
	 *
	 * @throws ConnectError InvalidArgument where the token is malformed or of another list,
	 *   OutOfRange where it has run out.
	 */
	resume(token: string, question: string): { list: PagedList; after: Position } {
		const after = positionOf(token);
		const held = this.#held.get(keyOf(token));
		if (held === undefined) {
			throw new ConnectError("page_token has run out: list again from the start", Code.OutOfRange);
		}
		if (held.list.question !== question) {
			throw malformed("page_token", "is of another list");
		}
		return { list: held.list, after };
	}
}

function keyOf(token: string): string {
	return token.slice(0, token.indexOf("."));
}

function positionOf(token: string): Position {
	const separator = token.indexOf(".");
	const encoded = Buffer.from(token.slice(separator + 1), "base64url").toString();
	let position: unknown;
	try {
		position = separator < 0 ? undefined : JSON.parse(encoded);
	} catch {
		// Not JSON: malformed, like all that is no position.
	}
	if (!isPosition(position)) {
		throw malformed("page_token", "is not one that a list has answered");
	}
	const [partition, namespace, name] = position;
	return { tenancy: { partition, namespace }, name };
}

function isPosition(value: unknown): value is readonly [string, string, string] {
	return (
		Array.isArray(value) && value.length === 3 && value.every((part) => typeof part === "string")
	);
}
