import { Entry, type Node, nameOf } from "./node.ts";
import type { Scope } from "./scope.ts";
import { type Position, seek, take } from "./seek.ts";
import type { Snapshot } from "./snapshot.ts";
import type { Chunks } from "./sorted-list.ts";
import { segmentOf } from "./visit.ts";

/** A list that the cursor is currently iterating. */
interface Frame {
	/** The node that has these entries or children. */
	readonly node: Node;
	readonly items: Chunks<Entry> | Chunks<Node>;
	readonly position: Position;
	/** The prefix of the items' names: the frame ends at the first item without it. */
	readonly open: string;
}

/** An entry, and the node at which the cursor reached it. */
export interface CursorItem {
	readonly entry: Entry;
	readonly node: Node;
}

/** Iterates the entries of a scope in order, in the state of a snapshot. */
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

	/** The next entry and its node; `undefined` at the end. */
	next(): CursorItem | undefined {
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
