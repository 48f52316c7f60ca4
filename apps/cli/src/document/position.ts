/** Where something stands in a file. Lines and columns count from 1, as editors do. */
export interface Position {
	readonly line: number;
	readonly column: number;
}

/** Something that is wrong in a document. */
export interface Problem {
	readonly position: Position;
	/** As `data.ports["http"]`; empty where it is about the document as a whole. */
	readonly path: string;
	readonly message: string;
}

/** Where a document comes from. */
export interface Origin {
	/** As it was given; `standard input` where it was read from there. */
	readonly file: string;
	/** Counts from 1 within the file. */
	readonly document: number;
}

/** The path of a field or entry below another one. */
export function fieldPath(parent: string, field: string): string {
	return parent === "" ? field : `${parent}.${field}`;
}

/** As `catalog.yaml:14:3 (document 2): data.prot: Workload has no such field`. */
export function describeProblem(origin: Origin, { position, path, message }: Problem): string {
	const place = `${origin.file}:${position.line}:${position.column} (document ${origin.document})`;
	return `${place}: ${path === "" ? "" : `${path}: `}${message}`;
}
