import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Keys } from "./keys.ts";

const keys = new Keys("/plinth");
const label = fc.stringMatching(/^[a-z\d]([a-z\d-]{0,6}[a-z\d])?$/);
const unit = fc.oneof(fc.constant(""), label);
const name = fc.record({
	type: fc.record({
		group: fc.stringMatching(/^[a-z][a-z\d_]{1,5}$/),
		groupVersion: fc.constant(""),
		kind: fc.stringMatching(/^[A-Z][A-Za-z\d]{1,5}$/),
	}),
	tenancy: fc.record({ partition: unit, namespace: unit }),
	name: label,
});
/** A copy of another region. */
const copy = fc.record({ name, region: label }).map(({ name, region }) => ({ ...name, region }));

describe("keys of resources", () => {
	it("say which resource they are of", () => {
		fc.assert(
			fc.property(fc.oneof(name, copy), (id) => {
				expect(keys.parse(keys.resource(id))).toEqual(id);
			}),
		);
	});

	it("order as partition, namespace and name do, and those of copies behind all others, by region", () => {
		fc.assert(
			fc.property(fc.oneof(name, copy), fc.oneof(name, copy), (a, other) => {
				const b = { ...other, type: a.type };
				const parts = (id: typeof a) => [
					...["region" in id ? id.region : ""],
					...[id.tenancy.partition, id.tenancy.namespace, id.name],
				];
				const [left, right] = [parts(a), parts(b)];
				const different = left.findIndex((part, index) => part !== right[index]);
				const expected =
					different < 0 ? 0 : (left[different] ?? "") < (right[different] ?? "") ? -1 : 1;
				const [x, y] = [Buffer.from(keys.resource(a)), Buffer.from(keys.resource(b))];
				expect(Buffer.compare(x, y)).toBe(expected);
			}),
		);
	});

	it("are within what is watched, as the head is, and leases and events are not", () => {
		const { key, rangeEnd } = keys.watched;
		const watched = (each: Uint8Array) =>
			Buffer.compare(key, each) <= 0 && Buffer.compare(each, rangeEnd) < 0;
		expect(watched(keys.head)).toBe(true);
		fc.assert(
			fc.property(fc.oneof(name, copy), (id) => {
				expect(watched(Buffer.from(keys.resource(id)))).toBe(true);
			}),
		);
		expect(watched(keys.lease("singletons"))).toBe(false);
		fc.assert(
			fc.property(fc.string(), (key) => {
				expect(watched(keys.event(key))).toBe(false);
			}),
		);
	});

	it("are not made of what is no resource", () => {
		for (const text of [
			"/plinth/head",
			"/plinth/resources/a",
			"/plinth/resources/a\0b\0c\0d",
			"/plinth/resources/a.B\0~\0b\0c\0d",
			"/plinth/resources/a.B\0~us\0~eu\0b\0c\0d",
			"",
		]) {
			expect(keys.parse(text)).toBeUndefined();
		}
	});
});

describe("keys of events", () => {
	it("are in their range, and say which row they are of", () => {
		const { key: begin, rangeEnd } = keys.events;
		fc.assert(
			fc.property(fc.string({ unit: "grapheme" }), (row) => {
				const key = keys.event(row);
				expect(keys.eventKey(key)).toBe(row);
				expect(Buffer.compare(begin, key)).toBeLessThanOrEqual(0);
				expect(Buffer.compare(key, rangeEnd)).toBe(-1);
			}),
		);
	});
});
