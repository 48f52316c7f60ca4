import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { Layout, type MessagePlan, type MessagePlans } from "./message-plan.ts";

/** The decoder's limit on nested messages: it fails where the scan stops. */
const deepestNesting = 100;

/** The limit on the length of a type URL, which bounds the cost of a lookup. */
const longestTypeUrl = 1_024;

/**
 * Counts the records of a message in binary form, without decoding it, up to one more than `limit`:
 *
 * - a field counts one, a repeated field one per element, a message one plus its contents;
 * - a map entry counts as a message with a key and a value, which the decoder adds if they are missing;
 * - a packed field counts one per 1, 4 or 8 bytes, the minimum size of an element;
 * - an Any of a known type counts as a message plus the contents of its value, at any depth;
 * - an unknown field counts one, and so does each record in an unknown group.
 *
 * Invariant: the scan reads every byte as the decoder does. The decoder follows a field's descriptor and not the wire
 * type in its tag, does not compare the length of a message with that of its parent, and allows the last element of a
 * packed field to exceed its end. If the two differed, bytes that are a string for one could be fields for the other.
 * On malformed bytes, the decoder fails at the same position: the count is the number of fields that it has decoded.
 *
 * The decoder merges a second record of a field into the first, which can combine the value of one Any with the type
 * of another. If that happens to a field that contains an Any, the bytes of Any values are counted as well: no value
 * has more fields than bytes.
 */
export function countBinaryFields(
	plans: MessagePlans,
	plan: MessagePlan,
	bytes: Uint8Array,
	limit: number,
): number {
	return new BinaryScan(plans, limit).count(plan, bytes);
}

class BinaryScan {
	readonly #plans: MessagePlans;
	readonly #limit: number;
	#fields = 0;
	/** Bytes in values of Any. */
	#anyBytes = 0;
	#merges = false;
	/** The messages that remain to be scanned. */
	readonly #pendingPlans: MessagePlan[] = [];
	readonly #pendingBytes: Uint8Array[] = [];

	constructor(plans: MessagePlans, limit: number) {
		this.#plans = plans;
		this.#limit = limit;
	}

	count(plan: MessagePlan, bytes: Uint8Array): number {
		this.#pendingPlans.push(plan);
		this.#pendingBytes.push(bytes);
		for (;;) {
			const next = this.#pendingBytes.pop();
			const nextPlan = this.#pendingPlans.pop();
			if (next === undefined || nextPlan === undefined || this.#counted() > this.#limit) {
				return Math.min(this.#counted(), this.#limit + 1);
			}
			try {
				this.#scan(nextPlan, next, new BinaryReader(next));
			} catch {
				// Malformed: the decoder fails here as well.
			}
		}
	}

	#counted(): number {
		return this.#fields + (this.#merges ? this.#anyBytes : 0);
	}

	/** @throws Error if the bytes are malformed. */
	// biome-ignore lint/complexity/noExcessiveCognitiveComplexity: one loop over every byte of every request
	// biome-ignore lint/complexity/noExcessiveLinesPerFunction: its state is in local variables, which is fastest
	#scan(root: MessagePlan, bytes: Uint8Array, reader: BinaryReader): void {
		if (root.isAny) {
			this.#scanAny(bytes, reader, reader.len);
			return;
		}
		// The current message, with the enclosing ones on stacks. A group ends with a tag.
		let plan = root;
		let end = reader.len;
		let group = 0;
		let seen = 0;
		let depth = 1;
		const plansAround: MessagePlan[] = [];
		const endsAround: number[] = [];
		const groupsAround: number[] = [];
		const seenAround: number[] = [];
		for (;;) {
			if (group === 0 ? reader.pos >= end : reader.pos >= reader.len) {
				if (group !== 0 || plansAround.length === 0) {
					return;
				}
				if (plan.isMapEntry) {
					this.#fields += missingIn(seen);
				} else {
					depth -= 1;
				}
				plan = plansAround.pop() ?? root;
				end = endsAround.pop() ?? 0;
				group = groupsAround.pop() ?? 0;
				seen = seenAround.pop() ?? 0;
				continue;
			}
			const tag = reader.uint32();
			const number = tag >>> 3;
			const wireType: WireType = tag & 7;
			if (number === 0) {
				return;
			}
			if (group !== 0 && wireType === WireType.EndGroup) {
				if (number !== group) {
					return;
				}
				depth -= 1;
				plan = plansAround.pop() ?? root;
				end = endsAround.pop() ?? 0;
				group = groupsAround.pop() ?? 0;
				seen = seenAround.pop() ?? 0;
				continue;
			}
			this.#fields += 1;
			if (this.#fields > this.#limit) {
				return;
			}
			const field = plan.fields.get(number);
			if (field === undefined) {
				this.#skipUnknown(bytes, reader, wireType, number, deepestNesting - depth);
				continue;
			}
			if (field.isPackable && wireType === WireType.LengthDelimited) {
				this.#skipPacked(bytes, reader, field.layout);
				continue;
			}
			if (plan.isMapEntry) {
				seen |= number === 1 ? keySeen : valueSeen;
			}
			const { child } = field;
			if (child === undefined) {
				skipScalar(bytes, reader, field.layout);
				continue;
			}
			if ((seen & field.mergeBit) !== 0) {
				this.#merges = true;
			}
			seen |= field.mergeBit;
			const childEnd = field.layout === Layout.group ? 0 : reader.uint32() + reader.pos;
			if (child.isAny && field.layout === Layout.message) {
				this.#scanAny(bytes, reader, childEnd);
				continue;
			}
			if (childEnd === reader.pos) {
				this.#fields += child.isMapEntry ? missingIn(0) : 0;
				continue;
			}
			depth += child.isMapEntry ? 0 : 1;
			if (depth > deepestNesting) {
				return;
			}
			plansAround.push(plan);
			endsAround.push(end);
			groupsAround.push(group);
			seenAround.push(seen);
			plan = child;
			end = childEnd;
			group = field.layout === Layout.group ? number : 0;
			seen = 0;
		}
	}

	/** Reads an Any, whose last type and last value apply, and keeps its value to be scanned later. */
	#scanAny(bytes: Uint8Array, reader: BinaryReader, end: number): void {
		let type: Uint8Array | undefined;
		let value: Uint8Array | undefined;
		while (reader.pos < end && this.#fields < this.#limit) {
			const tag = reader.uint32();
			const number = tag >>> 3;
			this.#fields += 1;
			if (number === 1) {
				const length = skipBytes(reader);
				type = bytes.subarray(reader.pos - length, reader.pos);
			} else if (number === 2) {
				const length = skipBytes(reader);
				value = bytes.subarray(reader.pos - length, reader.pos);
				this.#anyBytes += length;
			} else {
				this.#skipUnknown(bytes, reader, tag & 7, number, deepestNesting);
			}
		}
		if (value !== undefined && type !== undefined && type.length <= longestTypeUrl) {
			const plan = this.#plans.ofTypeUrl(utf8.decode(type));
			if (plan !== undefined) {
				this.#pendingPlans.push(plan);
				this.#pendingBytes.push(value);
			}
		}
	}

	/** Skips the value of an unknown field as the decoder does, and counts the records of a group. */
	#skipUnknown(
		bytes: Uint8Array,
		reader: BinaryReader,
		wireType: WireType,
		number: number,
		nesting: number,
	): void {
		if (wireType !== WireType.StartGroup) {
			skipByWireType(bytes, reader, wireType);
			return;
		}
		const groups = [number];
		while (groups.length > 0) {
			if (groups.length > nesting) {
				throw new Error("groups are nested too deeply");
			}
			const tag = reader.uint32();
			const inner: WireType = tag & 7;
			if (inner === WireType.EndGroup) {
				if (groups.pop() !== tag >>> 3) {
					throw new Error("mismatched end of a group");
				}
				continue;
			}
			this.#fields += 1;
			if (this.#fields > this.#limit) {
				return;
			}
			if (inner === WireType.StartGroup) {
				groups.push(tag >>> 3);
			} else {
				skipByWireType(bytes, reader, inner);
			}
		}
	}

	/** Skips a packed field, which has counted one already. */
	#skipPacked(bytes: Uint8Array, reader: BinaryReader, layout: Layout): void {
		const length = reader.uint32();
		const end = reader.pos + length;
		const size = layout === Layout.fixed64 ? 8 : layout === Layout.fixed32 ? 4 : 1;
		const elements = Math.ceil(length / size);
		this.#fields += Math.max(0, elements - 1);
		reader.pos += elements * size;
		if (layout === Layout.varint && length > 0) {
			reader.pos = end - 1;
			skipVarint(bytes, reader);
		}
		checkBounds(reader);
	}
}

const utf8 = new TextDecoder();

/** The fields that were seen in a map entry. An entry has at most one field that merges, marked by bit 0. */
const keySeen = 2;
const valueSeen = 4;

/** How many of key and value are missing in an entry. */
function missingIn(seen: number): number {
	return ((seen & keySeen) === 0 ? 1 : 0) + ((seen & valueSeen) === 0 ? 1 : 0);
}

function checkBounds(reader: BinaryReader): void {
	if (reader.pos > reader.len) {
		throw new RangeError("premature end");
	}
}

/** Skips a length and as many bytes, and returns the length. */
function skipBytes(reader: BinaryReader): number {
	const length = reader.uint32();
	reader.pos += length;
	checkBounds(reader);
	return length;
}

/** Skips bytes up to one without a continuation bit. The decoder refuses a varint of more than 10, and the message. */
function skipVarint(bytes: Uint8Array, reader: BinaryReader): void {
	let { pos } = reader;
	while (((bytes[pos++] ?? 0) & 0x80) !== 0) {}
	reader.pos = pos;
	checkBounds(reader);
}

function skipScalar(bytes: Uint8Array, reader: BinaryReader, layout: Layout): void {
	switch (layout) {
		case Layout.varint:
			skipVarint(bytes, reader);
			return;
		case Layout.fixed32:
			reader.pos += 4;
			break;
		case Layout.fixed64:
			reader.pos += 8;
			break;
		default:
			skipBytes(reader);
			return;
	}
	checkBounds(reader);
}

function skipByWireType(bytes: Uint8Array, reader: BinaryReader, wireType: WireType): void {
	switch (wireType) {
		case WireType.Varint:
			skipScalar(bytes, reader, Layout.varint);
			return;
		case WireType.Bit32:
			skipScalar(bytes, reader, Layout.fixed32);
			return;
		case WireType.Bit64:
			skipScalar(bytes, reader, Layout.fixed64);
			return;
		case WireType.LengthDelimited:
			skipScalar(bytes, reader, Layout.bytes);
			return;
		default:
			throw new Error("not a value");
	}
}
