/**
 * The field of a path, without the keys of maps: `spec.members.owner` for `spec.members["a"].owner`. The elements of a list
 * have one path already.
 */
export function fieldOfPath(path: string): string {
	return path.includes("[") ? path.replaceAll(mapKey, "") : path;
}

/** A JSON string, a number or a boolean in brackets. */
const mapKey = /\[(?:"(?:[^"\\]|\\.)*"|[^"\]]*)\]/g;
