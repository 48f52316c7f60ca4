import type { ServerRecord } from "@plinth/storage";

/** A record as the value of its key. */
export function encodeServerRecord(record: ServerRecord): Uint8Array {
	const { id, name, address, startedAtMs, version, secret } = record;
	return Buffer.from(JSON.stringify({ id, name, address, startedAtMs, version, secret }));
}

/** The record with that value. `undefined` if it is malformed; fields that a newer server has added are ignored. */
export function decodeServerRecord(value: Uint8Array): ServerRecord | undefined {
	let fields: Readonly<Record<string, unknown>>;
	try {
		fields = Object(JSON.parse(Buffer.from(value).toString()));
	} catch {
		return undefined;
	}
	const { id, name, address, startedAtMs, version, secret } = fields;
	return typeof id === "string" &&
		typeof name === "string" &&
		typeof address === "string" &&
		typeof startedAtMs === "number" &&
		typeof version === "string" &&
		typeof secret === "string"
		? { id, name, address, startedAtMs, version, secret }
		: undefined;
}
