import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { assignShards } from "./assign-shards.ts";
import { shardCount, shardOf } from "./shard-of.ts";

const servers = fc.uniqueArray(fc.string({ minLength: 1, maxLength: 8 }), { maxLength: 40 });

describe("shards", () => {
	it("are each assigned to one server, evenly, whatever the order of the servers", () => {
		fc.assert(
			fc.property(servers, (names) => {
				const assigned = assignShards(names);
				expect(assigned).toEqual(assignShards(names.toReversed()));
				expect(assigned.size).toBe(names.length === 0 ? 0 : shardCount);
				for (const name of names) {
					const count = [...assigned.values()].filter((server) => server === name).length;
					expect(count).toBeLessThanOrEqual(Math.ceil(shardCount / names.length));
				}
			}),
		);
	});

	it("mostly stay where they are when a server comes or goes", () => {
		let moved = 0;
		let least = 0;
		for (let round = 0; round < 200; round += 1) {
			const names = Array.from({ length: 4 }, (_, at) => `server-${round}-${at}`);
			const [before, after] = [assignShards(names), assignShards(names.slice(1))];
			for (const [shard, server] of before) {
				moved += Number(after.get(shard) !== server);
				least += Number(server === names[0]);
			}
		}
		expect(moved / least).toBeLessThan(1.7);
	});

	it("have about the same number of keys", () => {
		const counts = Array.from({ length: shardCount }, () => 0);
		const keys = 16_000;
		for (let key = 0; key < keys; key += 1) {
			const shard = shardOf(`demo.Artist/default/default/artist-${key}`);
			counts[shard] = (counts[shard] ?? 0) + 1;
		}
		expect(Math.min(...counts)).toBeGreaterThan((0.8 * keys) / shardCount);
		expect(Math.max(...counts)).toBeLessThan((1.2 * keys) / shardCount);
	});

	it("are the same in all versions", () => {
		const keys = ["", "a", "demo.Artist/default/default/artist-1", "demo.Artist/ü/default/x"];
		expect(keys.map(shardOf)).toMatchInlineSnapshot(`
			[
			  11,
			  3,
			  11,
			  14,
			]
		`);
	});
});
