import { HpackError } from "./hpack-error.ts";
import { endOfString, huffmanCodes } from "./huffman-codes.ts";

/*
 * Decoding walks the tree of codes four bits at a time. A state is an inner node of the tree, 0 is the root. As no
 * code is shorter than five bits, a step passes at most one leaf, that is emits at most one byte:
 *
 *     transition of (state, 4 bits):   bits 0..8 next state   9..16 emitted byte   17 emits   18 fails
 */
const emits = 1 << 17;
const fails = 1 << 18;

interface Node {
	readonly state: number;
	readonly children: [Node | Leaf | undefined, Node | Leaf | undefined];
	/** Whether the bits up to this node may be the padding of a string: fewer than eight, all ones. */
	readonly isPadding: boolean;
}

interface Leaf {
	readonly symbol: number;
}

const nodes: Node[] = [];
buildTree();
const padding = Uint8Array.from(nodes, ({ isPadding }) => (isPadding ? 1 : 0));
const transitions = Uint32Array.from({ length: nodes.length * 16 }, (_, index) =>
	transitionOf(index >> 4, index & 15),
);

function addNode(isPadding: boolean): Node {
	const node: Node = { state: nodes.length, children: [undefined, undefined], isPadding };
	nodes.push(node);
	return node;
}

function buildTree(): void {
	const root = addNode(true);
	for (const [symbol, { code, bits }] of huffmanCodes.entries()) {
		let node = root;
		for (let depth = 1; depth < bits; depth++) {
			const bit = (code >>> (bits - depth)) & 1 ? 1 : 0;
			let next = node.children[bit];
			if (next === undefined || "symbol" in next) {
				next = addNode(node.isPadding && bit === 1 && depth < 8);
				node.children[bit] = next;
			}
			node = next;
		}
		node.children[code & 1 ? 1 : 0] = { symbol };
	}
}

function transitionOf(state: number, nibble: number): number {
	let node = nodes[state];
	let emitted = 0;
	for (let bit = 3; bit >= 0; bit--) {
		const next = node?.children[(nibble >> bit) & 1 ? 1 : 0];
		if (next === undefined || ("symbol" in next && next.symbol === endOfString)) {
			return fails;
		}
		if ("symbol" in next) {
			emitted = emits | (next.symbol << 9);
			node = nodes[0];
		} else {
			node = next;
		}
	}
	return emitted | (node?.state ?? 0);
}

let scratch = Buffer.allocUnsafeSlow(4096);

/**
 * The characters (Latin-1) of a Huffman-coded string.
 *
 * @throws HpackError on wrong padding, and on the code that ends a string.
 */
export function decodeHuffman(bytes: Uint8Array, start: number, end: number): string {
	// The shortest code has five bits.
	const longest = Math.ceil(((end - start) * 8) / 5);
	if (scratch.length < longest) {
		scratch = Buffer.allocUnsafeSlow(longest);
	}
	let state = 0;
	let length = 0;
	for (let index = start; index < end; index++) {
		const byte = bytes[index] ?? 0;
		const first = transitions[(state << 4) | (byte >> 4)] ?? fails;
		if (first & emits) {
			scratch[length++] = (first >> 9) & 0xff;
		}
		const second =
			first & fails ? fails : (transitions[((first & 0x1ff) << 4) | (byte & 15)] ?? fails);
		if (second & emits) {
			scratch[length++] = (second >> 9) & 0xff;
		}
		if (second & fails) {
			throw new HpackError("invalid Huffman code");
		}
		state = second & 0x1ff;
	}
	if (padding[state] !== 1) {
		throw new HpackError("invalid padding of a Huffman-coded string");
	}
	return scratch.toString("latin1", 0, length);
}

/** The bytes of a string (Latin-1) when Huffman-coded. */
export function huffmanLength(text: string): number {
	let bits = 0;
	for (let index = 0; index < text.length; index++) {
		bits += huffmanCodes[text.charCodeAt(index) & 0xff]?.bits ?? 0;
	}
	return (bits + 7) >> 3;
}

/** Writes the Huffman-coded string, and returns the offset after it. */
export function encodeHuffman(text: string, target: Uint8Array, offset: number): number {
	let position = offset;
	// At most 7 bits are pending: with the longest code of a byte they make 37, which a number holds exactly.
	let waiting = 0;
	let waitingBits = 0;
	for (let index = 0; index < text.length; index++) {
		const { code, bits } = huffmanCodes[text.charCodeAt(index) & 0xff] ?? { code: 0, bits: 0 };
		waiting = waiting * 2 ** bits + code;
		waitingBits += bits;
		while (waitingBits >= 8) {
			waitingBits -= 8;
			const unit = 2 ** waitingBits;
			const byte = Math.floor(waiting / unit);
			target[position++] = byte;
			waiting -= byte * unit;
		}
	}
	if (waitingBits > 0) {
		const missing = 8 - waitingBits;
		target[position++] = waiting * 2 ** missing + 2 ** missing - 1;
	}
	return position;
}
