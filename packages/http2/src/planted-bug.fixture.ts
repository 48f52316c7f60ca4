import type { Http2Connection, Http2Counters } from "./http2.ts";

/** From now on the connection fails whenever it changes a counter, as if that code had a bug. */
export function plantBug(connection: Http2Connection, counter: keyof Http2Counters): void {
	const value = connection.counters[counter];
	Object.defineProperty(connection.counters, counter, {
		get: () => value,
		set: () => {
			throw new Error("a bug");
		},
	});
}
