import { describe, expect, it } from "vitest";
import { LeftOutResources } from "./left-out.ts";

describe("what is left out", () => {
	const many = () => {
		const leftOut = new LeftOutResources();
		for (let at = 0; at < 250; at++) {
			leftOut.add("type", { namespace: "default", name: `x${at}` }, "too large");
		}
		return leftOut;
	};

	it("is named up to a hundred, and counted beyond, until a snapshot begins", () => {
		const leftOut = many();
		expect(leftOut.named).toHaveLength(100);
		expect(leftOut.total).toBe(250);
		leftOut.remove("type", { namespace: "default", name: "x0" });
		leftOut.add("type", { namespace: "default", name: "x1" }, "still too large");
		expect(leftOut.total).toBe(249);
		leftOut.clear("type");
		expect(leftOut).toMatchObject({ total: 0, named: [], types: [] });
	});

	it("keeps no names beyond a hundred, so that those don't come back", () => {
		const leftOut = many();
		for (let at = 0; at < 100; at++) {
			leftOut.remove("type", { namespace: "default", name: `x${at}` });
		}
		expect(leftOut.named).toEqual([]);
		expect(leftOut.total).toBe(150);
	});
});
