import { strict as assert } from "node:assert";
import { HpackDecoder } from "../hpack/decoder.ts";
import { HpackEncoder } from "../hpack/encoder.ts";
import { Draw } from "./draw.fixture.ts";

const names = ["content-type", "grpc-status", "x", "set-cookie", "n".repeat(200)];

/** Encodes random blocks and changes the table's size; the decoder must get the same fields, and the same table. */
export async function checkHpack(seed: number): Promise<void> {
	const draw = new Draw(seed);
	const encoder = new HpackEncoder();
	const decoder = new HpackDecoder(8192);
	const values = Array.from({ length: 6 }, () => randomText(draw));
	for (let count = draw.below(120); count > 0; count--) {
		if (draw.chance(0.05)) {
			const limit = draw.size(8192);
			encoder.setPeerLimit(limit);
			decoder.setLimit(limit);
			continue;
		}
		const fields = Array.from({ length: draw.below(4) }, () => [
			draw.pick(names),
			draw.chance(0.1) ? String(draw.below(1000)) : draw.pick(values),
		]).flat();
		const status = draw.pick([0, 200, 404, 499]);
		const block = encoder.encode(status, fields);
		const decoded = decoder.decode(block, 0, block.length, 1e9);
		assert.deepEqual(decoded.fields, [
			...(status === 0 ? [] : [":status", String(status)]),
			...fields,
		]);
		assert.equal(decoder.tableSize, encoder.tableSize);
	}
}

/** Mostly of characters with short codes, so that it is Huffman-coded, with some of all lengths in between. */
function randomText(draw: Draw): string {
	const rare = draw.pick([0, 0.1, 1]);
	return Array.from({ length: draw.size(900) }, () =>
		draw.chance(rare) ? String.fromCharCode(draw.below(256)) : draw.pick([..."0aceiost"]),
	).join("");
}
