/** A copy, or nothing of nothing: headers that nobody touched are not made to be copied. */
export function copyOfHeaders(from: Headers | undefined): Headers | undefined {
	return from === undefined ? undefined : new Headers(from);
}

/** Makes `into` say what `from` says. */
export function replaceHeaders(into: Headers, from: Headers): void {
	if (into === from) {
		return;
	}
	for (const name of [...into.keys()]) {
		into.delete(name);
	}
	appendHeaders(into, from);
}

/** Adds all of `from` to what `into` says already. */
export function appendHeaders(into: Headers, from: Headers): void {
	for (const [name, value] of from) {
		into.append(name, value);
	}
}
