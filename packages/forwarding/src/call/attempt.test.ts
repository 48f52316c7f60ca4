import type { Http2ClientStream } from "@plinth/http2";
import type { Session } from "@plinth/rpc-client/session";
import { reachableBytes } from "@plinth/test-support";
import { expect, it } from "vitest";
import type { Server } from "../servers/server.ts";
import { Attempt } from "./attempt.ts";

const chunkBytes = 1024 * 1024;

/** An attempt whose reader takes a chunk at a time. */
function startAttempt() {
	const received: Uint8Array[] = [];
	let consumed = 0;
	let next: PromiseWithResolvers<void> | undefined;
	const stream = {
		consume: (bytes: number) => {
			consumed += bytes;
		},
		reset: () => {},
		isLocalEnded: true,
	} as Partial<Http2ClientStream> as Http2ClientStream;
	const session = { open: () => stream, arrived() {}, closed() {} } as Partial<Session> as Session;
	const ended = Promise.withResolvers<void>();
	const attempt = new Attempt({} as Server, { session: () => session, leave() {} }, session, {
		responded() {},
		received: (chunk) => {
			received.push(Uint8Array.from(chunk));
			next = Promise.withResolvers();
			return next.promise;
		},
		ended: () => ended.resolve(),
		endedEarly() {},
	});
	attempt.open([]);
	return {
		attempt,
		received,
		ended: ended.promise,
		consumed: () => consumed,
		takeNext: () => next?.resolve(),
	};
}

it("keeps no chunks for small parts of them that wait, and returns all of their credit", async () => {
	const before = reachableBytes();
	const { attempt, received, ended, consumed, takeNext } = startAttempt();
	for (let count = 0; count < 100; count += 1) {
		attempt.onData(Buffer.alloc(chunkBytes, count).subarray(9, 10));
	}
	attempt.onEnd([]);
	await expect.poll(() => reachableBytes() - before).toBeLessThan(3 * chunkBytes);
	expect(consumed()).toBe(0);
	let hasEnded = false;
	void ended.then(() => {
		hasEnded = true;
	});
	while (!hasEnded) {
		takeNext();
		await new Promise((resolve) => setImmediate(resolve));
	}
	expect([...Buffer.concat(received)]).toEqual(Array.from({ length: 100 }, (_, count) => count));
	expect(consumed()).toBe(100);
});
