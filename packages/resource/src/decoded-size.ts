/** V8 stores objects with more keys than this as hash tables. */
const fastKeys = 12;

/**
 * An estimate of the heap size of a decoded value in bytes, including everything that it refers to. The
 * constants were measured on 64-bit V8; they are more likely too large than too small.
 */
export function decodedSize(value: unknown): number {
	switch (typeof value) {
		case "string":
			// Strings of one character are shared.
			return value.length < 2 ? 0 : 24 + value.length;
		case "number":
			return Number.isInteger(value) ? 0 : 16;
		case "bigint":
			return 24;
		case "object":
			return value === null ? 0 : objectSize(value as Readonly<Record<string, unknown>>);
		default:
			return 0;
	}
}

function objectSize(value: Readonly<Record<string, unknown>>): number {
	if (Array.isArray(value)) {
		return listSize(value);
	}
	if (ArrayBuffer.isView(value)) {
		// It shares the encoded bytes. The default value of a field is one object for all messages.
		return value.byteLength === 0 ? 0 : viewBytes;
	}
	let keys = 0;
	let keyBytes = 0;
	let size = 48;
	let isMap = true;
	for (const key of Object.keys(value)) {
		keys += 1;
		if (key === "$typeName" || key === "case" || key === "wireType") {
			isMap = false;
			continue;
		}
		keyBytes += key.length;
		size += decodedSize(value[key]);
	}
	// A message, a oneof or an unknown field shares its keys and its hidden class with others.
	return isMap
		? size + keyBytes + 160 * Math.min(keys, fastKeys) + 64 * Math.max(0, keys - fastKeys)
		: size + keys * (keys <= fastKeys ? 8 : 40);
}

const viewBytes = 112;

function listSize(list: readonly unknown[]): number {
	// A list grows by half of its length and 16 elements.
	let size = list.length === 0 ? 32 : 176 + 12 * list.length;
	for (const element of list) {
		size += ArrayBuffer.isView(element) ? viewBytes : decodedSize(element);
	}
	return size;
}
