/** Rows sent by the thread that reads them: three buffers, however many rows there are. */
export interface Page {
	/** The revision of each row. */
	readonly revisions: Float64Array<ArrayBuffer>;
	/** Where the body of each row ends in `bodies`; it begins where the one before it ends. */
	readonly ends: Uint32Array<ArrayBuffer>;
	/** The serialized messages, one after the other. */
	readonly bodies: Uint8Array<ArrayBuffer>;
}

/** A row of a page. */
export interface LoadedRow {
	readonly revision: number;
	/** Part of the page's buffer. */
	readonly body: Uint8Array;
}

/** The maximum of rows per page: a millisecond or two of decoding. */
const pageRows = 128;
/** A page ends with the row that exceeds this size. */
const pageBytes = 256 * 1024;

/** Collects rows until they are a page. */
export class PageBuilder {
	#rows: LoadedRow[] = [];
	#bytes = 0;

	/** Adds a row, and returns whether the page is full. */
	add(row: LoadedRow): boolean {
		this.#rows.push(row);
		this.#bytes += row.body.byteLength;
		return this.#rows.length >= pageRows || this.#bytes >= pageBytes;
	}

	/** Returns the page, if it has rows, and begins the next one. */
	take(): Page | undefined {
		const rows = this.#rows;
		if (rows.length === 0) {
			return undefined;
		}
		const page: Page = {
			revisions: Float64Array.from(rows, ({ revision }) => revision),
			ends: new Uint32Array(rows.length),
			bodies: new Uint8Array(this.#bytes),
		};
		let end = 0;
		for (const [index, { body }] of rows.entries()) {
			page.bodies.set(body, end);
			end += body.byteLength;
			page.ends[index] = end;
		}
		this.#rows = [];
		this.#bytes = 0;
		return page;
	}
}

/** The rows of a page. */
export function* rowsOf({ revisions, ends, bodies }: Page): Generator<LoadedRow, void, undefined> {
	let begin = 0;
	for (const [index, end] of ends.entries()) {
		yield { revision: revisions[index] ?? 0, body: bodies.subarray(begin, end) };
		begin = end;
	}
}
