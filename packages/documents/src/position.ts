/** A position in a file. Lines and columns count from 1, as in editors. */
export interface Position {
	readonly line: number;
	readonly column: number;
}

/** A problem in a document. */
export interface Problem {
	readonly position: Position;
	/** A path such as `data.ports["http"]`; empty for the document as a whole. */
	readonly path: string;
	readonly message: string;
}

/** The source of a document. */
export interface Origin {
	/** The file as specified, or `standard input`. */
	readonly file: string;
	/** The number of the document in the file, from 1. */
	readonly document: number;
}

/** The path of a field or entry below another one. */
export function fieldPath(parent: string, field: string): string {
	return parent === "" ? field : `${parent}.${field}`;
}

/** A message such as `catalog.yaml:14:3 (document 2): data.prot: Workload has no such field`. */
export function describeProblem(origin: Origin, { position, path, message }: Problem): string {
	const place = `${origin.file}:${position.line}:${position.column} (document ${origin.document})`;
	return `${place}: ${path === "" ? "" : `${path}: `}${message}`;
}
