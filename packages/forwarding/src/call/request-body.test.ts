import { reachableBytes } from "@plinth/test-support";
import { expect, it } from "vitest";
import type { InboundCall } from "../inbound-call.ts";
import { defaultForwardingLimits } from "../limits.ts";
import { KeptBytes } from "./kept-bytes.ts";
import { type BodyStream, RequestBody } from "./request-body.ts";

const chunkBytes = 1024 * 1024;

/** A body whose client sends what a test adds to `arrived`, and what was sent on its stream. */
function startBody() {
	const arrived: (Uint8Array | "end")[] = [];
	const wakes: (() => void)[] = [];
	const call = {
		header: () => undefined,
		take: () => arrived.shift(),
		wait: (wake: () => void) => void wakes.push(wake),
	};
	const sent: (Uint8Array | "end")[] = [];
	const stream = (): BodyStream => ({
		isClosed: false,
		write: (chunk) => sent.push(chunk) > 0,
		end: () => void sent.push("end"),
		onceDrained: () => {},
	});
	const body = new RequestBody(
		call as unknown as InboundCall,
		defaultForwardingLimits,
		new KeptBytes(1024),
		(failure) => {
			throw failure;
		},
	);
	return { arrived, wakes, sent, stream, body };
}

it("ends the body once, however often the listener wakes it", () => {
	const { arrived, wakes, sent, stream, body } = startBody();
	body.sendTo(stream());
	const chunk = new Uint8Array([1, 2]);
	arrived.push(chunk, "end");
	for (const wake of [...wakes, ...wakes]) {
		wake();
	}
	expect(sent).toEqual([chunk, "end"]);
	expect(body.whole).toEqual(chunk);
});

it("is sent again from its beginning, in any number of parts", async () => {
	const before = reachableBytes();
	const { arrived, wakes, sent, stream, body } = startBody();
	const wake = () => {
		for (const each of wakes.splice(0)) {
			each();
		}
	};
	body.sendTo(stream());
	for (let count = 0; count < 100; count += 1) {
		arrived.push(new Uint8Array(chunkBytes).fill(count).subarray(9, 10));
		wake();
	}
	expect(sent).toHaveLength(100);
	sent.length = 0;
	// What is kept has not kept the chunks.
	await expect.poll(() => reachableBytes() - before).toBeLessThan(3 * chunkBytes);
	body.stop();
	body.sendTo(stream());
	arrived.push(new Uint8Array([100]), "end");
	wake();
	const end = sent.pop();
	expect(end).toBe("end");
	const all = Array.from({ length: 101 }, (_, count) => count);
	expect(sent.flatMap((chunk) => [...chunk])).toEqual(all);
	expect([...(body.whole ?? [])]).toEqual(all);
});
