/** A message that is not what its format requires. */
export class MalformedMessage extends Error {
	override name = "MalformedMessage";
}

const lengthDelimitedType = 2;

/**
 * Calls `visit` with each length-delimited field of a Protobuf message: strings, bytes and embedded messages. No value is
 * copied.
 *
 * @param visit - gets the number of the field, and where its value begins and ends.
 * @param visitNumber - gets the number of each field that is a varint, such as a boolean, and its value.
 * @throws MalformedMessage
 */
export function visitFields(
	bytes: Uint8Array,
	start: number,
	end: number,
	visit: (number: number, start: number, end: number) => void,
	visitNumber?: (number: number, value: number) => void,
): void {
	let position = start;
	while (position < end) {
		const tag = varint(bytes, position, end);
		position = tag.end;
		switch (tag.value % 8) {
			case 0: {
				const value = varint(bytes, position, end);
				position = value.end;
				visitNumber?.(Math.floor(tag.value / 8), value.value);
				break;
			}
			case 1:
				position += 8;
				break;
			case lengthDelimitedType: {
				const length = varint(bytes, position, end);
				position = length.end + length.value;
				if (position <= end) {
					visit(Math.floor(tag.value / 8), length.end, position);
				}
				break;
			}
			case 5:
				position += 4;
				break;
			default:
				// Groups, which proto3 does not have.
				throw new MalformedMessage(`wire type ${tag.value % 8}`);
		}
	}
	if (position > end) {
		throw new MalformedMessage("a field is longer than its message");
	}
}

/** A length-delimited field. */
export function encodeField(number: number, value: Uint8Array): Uint8Array {
	return Buffer.concat([
		encodeVarint(number * 8 + lengthDelimitedType),
		encodeVarint(value.length),
		value,
	]);
}

/** A field with a number that is not negative. */
export function encodeNumberField(number: number, value: number): Uint8Array {
	return Buffer.concat([encodeVarint(number * 8), encodeVarint(value)]);
}

const varintBytes = 10;

function varint(
	bytes: Uint8Array,
	start: number,
	limit: number,
): { readonly value: number; readonly end: number } {
	let value = 0;
	let factor = 1;
	for (let position = start; position < limit && position < start + varintBytes; position += 1) {
		const byte = bytes[position] ?? 0;
		value += (byte & 0x7f) * factor;
		if (byte < 0x80) {
			return { value, end: position + 1 };
		}
		factor *= 128;
	}
	throw new MalformedMessage("a number is cut off or too long");
}

function encodeVarint(value: number): Uint8Array {
	const bytes: number[] = [];
	let rest = value;
	while (rest >= 0x80) {
		bytes.push((rest % 0x80) + 0x80);
		rest = Math.floor(rest / 0x80);
	}
	bytes.push(rest);
	return Uint8Array.from(bytes);
}
