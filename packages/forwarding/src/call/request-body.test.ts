import { expect, it } from "vitest";
import type { InboundCall } from "../inbound-call.ts";
import { defaultForwardingLimits } from "../limits.ts";
import { KeptBytes } from "./kept-bytes.ts";
import { type BodyStream, RequestBody } from "./request-body.ts";

it("ends the body once, however often the listener wakes it", () => {
	const arrived: (Uint8Array | "end")[] = [];
	const wakes: (() => void)[] = [];
	const call = {
		header: () => undefined,
		take: () => arrived.shift(),
		wait: (wake: () => void) => void wakes.push(wake),
	};
	const sent: (Uint8Array | "end")[] = [];
	const stream: BodyStream = {
		isClosed: false,
		write: (chunk) => sent.push(chunk) > 0,
		end: () => void sent.push("end"),
		onceDrained: () => {},
	};
	const body = new RequestBody(
		call as unknown as InboundCall,
		defaultForwardingLimits,
		new KeptBytes(1024),
		(failure) => {
			throw failure;
		},
	);
	body.sendTo(stream);
	const chunk = new Uint8Array([1, 2]);
	arrived.push(chunk, "end");
	for (const wake of [...wakes, ...wakes]) {
		wake();
	}
	expect(sent).toEqual([chunk, "end"]);
	expect(body.whole).toEqual(Buffer.from(chunk));
});
