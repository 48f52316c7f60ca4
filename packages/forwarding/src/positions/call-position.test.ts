import { describe, expect, it } from "vitest";
import { CallPosition } from "./call-position.ts";
import { ClusterPosition } from "./cluster-position.ts";

function start(newest: number, named?: string) {
	const cluster = new ClusterPosition();
	cluster.shown(newest);
	return { cluster, call: new CallPosition(cluster, { header: () => named }) };
}

describe("the position of a call", () => {
	it.each([
		[undefined, 7, "7"],
		["", 7, "7"],
		["0", 7, "7"],
		["9", 7, "9"],
		["5", 7, "7"],
		[undefined, 0, "0"],
	])("named %j by its client, after %i was passed on, is %s", (named, newest, expected) => {
		expect(start(newest, named).call.headers()).toEqual({ "x-plinth-not-before": expected });
	});

	it.each(["7e1", "007", "00", "9007199254740993", "9999999999999999"])(
		"is left to the server if it is %s, which is malformed or can't be told from others",
		(named) => {
			expect(start(7, named).call.headers()).toEqual({});
		},
	);

	it("is that of its response from then on", () => {
		const { cluster, call } = start(7);
		call.headers();
		expect(call.responded({ "x-plinth-position": "9" })).toBe("pass-on");
		expect(cluster.newest).toBe(9);
		expect(call.responded({})).toBe("pass-on");
		expect(call.responded({ "x-plinth-position": "1e9" })).toBe("pass-on");
		expect(cluster.newest).toBe(9);
	});

	it("is that of the storage after a refusal, once", () => {
		const { cluster, call } = start(7, "2");
		call.headers();
		expect(call.responded({ "x-plinth-position": "3" })).toBe("send-again");
		expect(cluster.newest).toBe(3);
		expect(call.headers()).toEqual({ "x-plinth-not-before": "3" });
		expect(call.responded({ "x-plinth-position": "2" })).toBe("pass-on");
		expect(cluster.newest).toBe(2);
	});

	it("is refused to a client that has named a version which the storage has not reached, and to no other", () => {
		const { cluster, call } = start(1, "7");
		call.headers();
		// A response that came from another server meanwhile.
		cluster.shown(4);
		expect(call.responded({ "x-plinth-position": "3" })).toBe("pass-on");
		expect(cluster.newest).toBe(4);
	});

	it("is told only to a client that has named one", () => {
		const fields = { "content-type": "x", "x-plinth-position": "3" };
		expect(start(1).call.fieldsFor(fields)).toEqual({ "content-type": "x" });
		expect(start(1, "0").call.fieldsFor(fields)).toEqual(fields);
	});
});
