import { getHeapStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { StateTooLarge } from "../errors.ts";
import type { StorageLimits } from "../limits.ts";

const mebibyte = 1024 * 1024;

/** Measures the heap, and collects garbage to find out how much of it is in use. */
export interface HeapProbe {
	/** Bytes in use, garbage included, and the most that the heap may hold. Cheap. */
	measure(): { readonly usedBytes: number; readonly limitBytes: number };
	/** Collects all garbage, which may block the process for seconds. */
	collectGarbage(): void;
}

/** The share of the heap that the state may occupy; the rest is needed to work with it. */
const heapShare = 0.85;
/** The additional share of the heap that must be in use before garbage is collected again. */
const lookAgainShare = 0.05;

/**
 * Checks while loading that the state fits into memory. Without this check, V8 aborts the process when its
 * heap is full, without reporting how much there was to load.
 *
 * The heap statistics include garbage, so above a share of the heap it is collected first: a few times
 * during a large load, and never if there is enough room.
 */
export class LoadCapacity {
	readonly #memoryBytes: number;
	readonly #heap: HeapProbe;
	#lookFromBytes: number;

	constructor(limits: Pick<StorageLimits, "memoryBytes">, heap: HeapProbe = nodeHeap) {
		this.#memoryBytes = limits.memoryBytes;
		this.#heap = heap;
		this.#lookFromBytes = heap.measure().limitBytes * heapShare;
	}

	/**
	 * Call it after each part of the state, including the last.
	 *
	 * @param loaded What was loaded so far; `total` is the number of resources, if known.
	 * @throws StateTooLarge, which names the limit and what to do.
	 */
	check(loaded: {
		readonly bytes: number;
		readonly size: number;
		readonly total?: number | undefined;
	}): void {
		if (loaded.bytes > this.#memoryBytes) {
			throw new StateTooLarge(
				`the state does not fit into the memory limit: ${progress(loaded)} take ${loaded.bytes} bytes, and the limit is ${this.#memoryBytes} bytes; raise it (--memory-limit)`,
			);
		}
		if (this.#heap.measure().usedBytes < this.#lookFromBytes) {
			return;
		}
		this.#heap.collectGarbage();
		const { usedBytes, limitBytes } = this.#heap.measure();
		if (usedBytes > limitBytes * heapShare) {
			throw new StateTooLarge(
				`the state does not fit into the heap of Node: ${progress(loaded)} take ${loaded.bytes} bytes and fill ${inMebibytes(usedBytes)} MiB of a heap of ${inMebibytes(limitBytes)} MiB; give Node a larger heap, as with NODE_OPTIONS=--max-old-space-size=${suggestedMebibytes(usedBytes, limitBytes, loaded)}`,
			);
		}
		this.#lookFromBytes = Math.max(limitBytes * heapShare, usedBytes + limitBytes * lookAgainShare);
	}
}

function progress({ size, total }: { readonly size: number; readonly total?: number | undefined }) {
	return total === undefined ? `the first ${size} resources` : `${size} of ${total} resources`;
}

/** A heap size for the whole state, with room to work with it. */
function suggestedMebibytes(
	usedBytes: number,
	limitBytes: number,
	{ size, total = size }: { readonly size: number; readonly total?: number | undefined },
): number {
	const wholeBytes = (usedBytes * Math.max(total, size)) / Math.max(1, size);
	const step = 256;
	return Math.ceil(Math.max(wholeBytes * 1.5, limitBytes * 2) / mebibyte / step) * step;
}

function inMebibytes(bytes: number): number {
	return Math.round(bytes / mebibyte);
}

/** The space that V8 reserves for young objects, where loaded resources do not stay. */
const youngBytes = 96 * mebibyte;

let collect: (() => void) | undefined;

const nodeHeap: HeapProbe = {
	measure() {
		const { used_heap_size, heap_size_limit } = getHeapStatistics();
		return {
			usedBytes: used_heap_size,
			limitBytes: Math.max(heap_size_limit - youngBytes, heap_size_limit / 2),
		};
	},
	collectGarbage() {
		if (collect === undefined) {
			// Only contexts created after setting the flag have the function.
			setFlagsFromString("--expose-gc");
			collect = runInNewContext("gc") as () => void;
			setFlagsFromString("--no-expose-gc");
		}
		collect();
	},
};
