import type { Random } from "@plinth/runtime";
import { pick } from "../simulation/simulation.fixture.ts";

/** A part of a JSON document. */
type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

const oddKeys = [
	"__proto__",
	"constructor",
	"toString",
	"hasOwnProperty",
	"",
	"@type",
	"\u0000",
] as const;

/** The JSON text, changed in one place. */
export function bendJson(random: Random, text: string): string {
	const drawn = random.next();
	if (drawn < 0.15) {
		return bendText(random, text);
	}
	const places: { readonly holder: { [key: string]: Json } | Json[]; readonly key: string }[] = [];
	const root: Json = JSON.parse(text);
	const visit = (value: Json) => {
		if (typeof value === "object" && value !== null) {
			for (const [key, part] of Object.entries(value)) {
				places.push({ holder: value, key });
				visit(part);
			}
		}
	};
	visit(root);
	const place = places[Math.floor(random.next() * places.length)];
	if (place === undefined) {
		return oddJson(random);
	}
	const { holder, key } = place;
	// Put into the text, not into the object: it is to arrive as it is, whatever its key.
	const mark = "\u0001here\u0001";
	const value = Array.isArray(holder) ? undefined : holder[key];
	if (value !== undefined && !Array.isArray(holder) && drawn < 0.4) {
		delete holder[key];
		holder[mark] = value;
		return JSON.stringify(root).replace(JSON.stringify(mark), () =>
			JSON.stringify(pick(random, oddKeys)),
		);
	}
	Object.assign(holder, { [key]: mark });
	return JSON.stringify(root).replace(JSON.stringify(mark), () => oddJson(random));
}

function bendText(random: Random, text: string): string {
	const at = Math.floor(random.next() * text.length);
	const inserted = pick(random, ["", "{", "]", '"', "\u0000", ",", "1e999", "\ud800", "\\ud800"]);
	return text.slice(0, at) + inserted + text.slice(at + Math.floor(random.next() * 3));
}

/** A JSON text that is unlike what anybody expects. */
export function oddJson(random: Random): string {
	switch (Math.floor(random.next() * 12)) {
		case 0:
			return "null";
		case 1:
			return "-1";
		case 2:
			return "1e400";
		case 3:
			return JSON.stringify("x".repeat(pick(random, [64, 5_000, 300_000])));
		case 4:
			return JSON.stringify(pick(random, ["*", "A", "default", "é".repeat(70), "-", "..", "%00"]));
		case 5:
			return '"\\ud800"';
		case 6:
			return nested(pick(random, [10, 101, 20_000]), "[", "]");
		case 7:
			return nested(pick(random, [10, 101, 20_000]), '{"takes":', "}");
		case 8:
			return `{${JSON.stringify(pick(random, oddKeys))}:{"a":"b"}}`;
		case 9:
			return '{"@type":"type.googleapis.com/acme.demo.v2.Artist","name":"a"}';
		case 10:
			return '{"@type":"type.googleapis.com/google.protobuf.Empty"}';
		default:
			return JSON.stringify(Array.from({ length: 100 }, (_, index) => ({ [index]: index })));
	}
}

function nested(depth: number, open: string, close: string): string {
	return `${open.repeat(depth)}1${close.repeat(depth)}`;
}

/** The bytes, changed in one place. */
export function bendBytes(random: Random, bytes: Uint8Array): Uint8Array {
	const at = Math.floor(random.next() * bytes.length);
	switch (Math.floor(random.next() * 6)) {
		case 0: {
			const bent = bytes.slice();
			bent[at] = Math.floor(random.next() * 256);
			return bent;
		}
		case 1:
			return bytes.slice(0, at);
		case 2:
			return Buffer.concat([bytes.slice(0, at), randomBytes(random, 8), bytes.slice(at)]);
		case 3:
			return Buffer.concat([bytes, bytes]);
		case 4:
			// A field that nobody knows: kept, and sent back.
			return Buffer.concat([bytes, Buffer.from([0xc2, 0x3e, 3, 1, 2, 3])]);
		default: {
			// Groups within groups.
			return Buffer.concat([bytes, Buffer.alloc(pick(random, [10, 500, 20_000]), 0x0b)]);
		}
	}
}

/** Bytes without meaning. */
export function randomBytes(random: Random, maxLength: number): Uint8Array {
	const length = Math.floor(random.next() * maxLength);
	return Uint8Array.from({ length }, () => Math.floor(random.next() * 256));
}
