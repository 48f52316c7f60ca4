import { Entry, type Node, nameOf } from "./node.ts";
import type { Scope } from "./scope.ts";
import { type Position, seek, take } from "./seek.ts";
import type { Snapshot } from "./snapshot.ts";
import type { Chunks } from "./sorted-list.ts";
import { segmentOf } from "./visit.ts";

/** A list that the cursor is in the middle of. */
interface Frame {
	/** Whose entries or children these are. */
	readonly node: Node;
	readonly items: Chunks<Entry> | Chunks<Node>;
	readonly position: Position;
	/** What the items' names begin with: the frame ends at the first that does not. */
	readonly open: string;
}

/** An entry, and one of its nodes. */
export interface Met {
	readonly entry: Entry;
	readonly node: Node;
}

/** A reader's way through the entries of a scope, in the order and state of a snapshot. */
export class Cursor {
	readonly #snapshot: Snapshot;
	readonly #frames: Frame[] = [];

	constructor(snapshot: Snapshot, scope: Scope) {
		this.#snapshot = snapshot;
		const { top } = scope;
		switch (scope.kind) {
			case "subtree":
				this.#enter(top);
				break;
			case "children": {
				const items = snapshot.childrenOf(top);
				const { open } = scope;
				this.#frames.push({ node: top, items, position: seek(items, open, segmentOf), open });
				break;
			}
			case "entries": {
				const items = snapshot.entriesOf(top);
				const { open } = scope;
				this.#frames.push({ node: top, items, position: seek(items, open, nameOf), open });
				break;
			}
		}
	}

	/** The next entry and the node at which it was met, or `undefined` at the end. */
	next(): Met | undefined {
		for (let frame = this.#frames.at(-1); frame !== undefined; frame = this.#frames.at(-1)) {
			const item = take<Entry | Node>(frame.items, frame.position);
			if (item === undefined || !isOf(frame, item)) {
				this.#frames.pop();
			} else if (item instanceof Entry) {
				return { entry: item, node: frame.node };
			} else {
				this.#enter(item);
			}
		}
		return undefined;
	}

	/** Entries come before children: their key is a prefix of the children's. */
	#enter(node: Node): void {
		this.#push(node, this.#snapshot.childrenOf(node));
		this.#push(node, this.#snapshot.entriesOf(node));
	}

	#push(node: Node, items: Chunks<Entry> | Chunks<Node>): void {
		if (items.length > 0) {
			this.#frames.push({ node, items, position: { chunk: 0, item: 0 }, open: "" });
		}
	}
}

function isOf(frame: Frame, item: Entry | Node): boolean {
	return (
		frame.open === "" ||
		(item instanceof Entry ? nameOf(item) : item.segment).startsWith(frame.open)
	);
}
