import { getHeapStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { StateTooLarge } from "../errors.ts";
import type { StorageLimits } from "../limits.ts";

const mebibyte = 1024 * 1024;

/** How full the heap is, and how to find out what of it is still in use. */
export interface HeapProbe {
	/** Bytes in use, garbage included, and the most that the heap may hold. Cheap. */
	measure(): { readonly usedBytes: number; readonly limitBytes: number };
	/** Collects all garbage, which blocks the process for up to some seconds. */
	collectGarbage(): void;
}

/** What of the heap a state may take: the rest is for the work on it. */
const heapShare = 0.85;
/** How much more of the heap must be in use before garbage is collected for another look. */
const lookAgainShare = 0.05;

/**
 * Whether a state fits, checked while it is loaded. Without this check, V8 aborts the process when its
 * heap is full, and tells nobody how much there was to load.
 *
 * What is in use can't be told from garbage by looking, so from a share of the heap on, garbage is
 * collected: a few times in a load, and not at all in a load that has room.
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
	 * To be called after each part of the state, and after the last.
	 *
	 * @param loaded What was loaded so far, and of how many resources, where that is known.
	 * @throws StateTooLarge, which names the limit and what to do.
	 */
	check(loaded: {
		readonly bytes: number;
		readonly size: number;
		readonly of?: number | undefined;
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

function progress({ size, of }: { readonly size: number; readonly of?: number | undefined }) {
	return of === undefined ? `the first ${size} resources` : `${size} of ${of} resources`;
}

/** A heap for all of the state, with room to work on it. */
function suggestedMebibytes(
	usedBytes: number,
	limitBytes: number,
	{ size, of = size }: { readonly size: number; readonly of?: number | undefined },
): number {
	const wholeBytes = (usedBytes * Math.max(of, size)) / Math.max(1, size);
	const step = 256;
	return Math.ceil(Math.max(wholeBytes * 1.5, limitBytes * 2) / mebibyte / step) * step;
}

function inMebibytes(bytes: number): number {
	return Math.round(bytes / mebibyte);
}

/** What V8 sets aside for young objects, which what is loaded does not stay among. */
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
			// The flag gives new contexts a function that the ones before it lack.
			setFlagsFromString("--expose-gc");
			collect = runInNewContext("gc") as () => void;
			setFlagsFromString("--no-expose-gc");
		}
		collect();
	},
};
