/** The bits of each byte's code, RFC 7541, appendix B. The end of string, symbol 256, has 30. */
// biome-ignore format: sixteen a line
const codeLengths = [
	13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
	28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
	6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
	5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
	13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
	7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
	15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
	6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
	20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
	24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
	22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
	21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
	26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
	19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
	20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
	26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
	30,
];

/** A symbol's code: the lowest `bits` bits of `code`. */
export interface HuffmanCode {
	readonly code: number;
	readonly bits: number;
}

/** The symbol that ends a string: its code is never sent, only the start of it as padding. */
export const endOfString = 256;

/**
 * The codes by symbol. The code is canonical: among codes of one length, and from one length to the next, they
 * count up in the order of the symbols.
 */
export const huffmanCodes: readonly HuffmanCode[] = assignCodes();

function assignCodes(): readonly HuffmanCode[] {
	const codes: HuffmanCode[] = [];
	let code = 0;
	for (let bits = 1; bits <= 30; bits++) {
		code *= 2;
		for (const [symbol, length] of codeLengths.entries()) {
			if (length === bits) {
				codes[symbol] = { code, bits };
				code++;
			}
		}
	}
	return codes;
}
