/** A copy of the headers. `undefined`, for headers that were never accessed and so not created, stays `undefined`. */
export function copyOfHeaders(from: Headers | undefined): Headers | undefined {
	return from === undefined ? undefined : new Headers(from);
}

/** Replaces the contents of `into` with those of `from`. */
export function replaceHeaders(into: Headers, from: Headers): void {
	if (into === from) {
		return;
	}
	for (const name of [...into.keys()]) {
		into.delete(name);
	}
	appendHeaders(into, from);
}

/** Appends all of `from` to `into`. */
export function appendHeaders(into: Headers, from: Headers): void {
	for (const [name, value] of from) {
		into.append(name, value);
	}
}
