import { createClient } from "@connectrpc/connect";
import { createInProcessTransport } from "@plinth/in-process";
import { SchemaMixinService } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import { describe, expect, it } from "vitest";
import { CountedTransport } from "./counted-transport.ts";

/** A client of a server that streams two messages, or fails after the first one, and holds calls until it is released. */
function counted({ fails = false } = {}) {
	const released = Promise.withResolvers<void>();
	const transport = new CountedTransport(
		createInProcessTransport((router) =>
			router.service(SchemaMixinService, {
				async reportReleases() {
					await released.promise;
					if (fails) {
						throw new Error("failed");
					}
					return {};
				},
				async *watchImportedServiceDeletions() {
					yield {};
					if (fails) {
						throw new Error("failed");
					}
					yield {};
				},
			}),
		),
	);
	const client = createClient(SchemaMixinService, transport);
	const open = (signal?: AbortSignal) =>
		client.watchImportedServiceDeletions({}, { ...(signal && { signal }) })[Symbol.asyncIterator]();
	return { transport, client, open, release: () => released.resolve() };
}

describe("a transport is idle once", () => {
	it.each([false, true])("a call has ended (failed: %s)", async (fails) => {
		const { transport, client, release } = counted({ fails });
		expect(transport.isIdle).toBe(true);
		const call = client.reportReleases({}).catch(() => {});
		expect(transport.isIdle).toBe(false);
		release();
		await call;
		expect(transport.isIdle).toBe(true);
	});

	it("the last message of a stream was read", async () => {
		const { transport, open } = counted();
		const messages = open();
		for (const isDone of [false, false, true]) {
			expect((await messages.next()).done === true).toBe(isDone);
			expect(transport.isIdle).toBe(isDone);
		}
	});

	it("a stream has failed", async () => {
		const { transport, open } = counted({ fails: true });
		const messages = open();
		await messages.next();
		expect(transport.isIdle).toBe(false);
		await expect(messages.next()).rejects.toThrow();
		expect(transport.isIdle).toBe(true);
	});

	it("the reader of a stream has stopped", async () => {
		const { transport } = counted();
		const { watchImportedServiceDeletions: method } = SchemaMixinService.method;
		const request = (async function* () {
			yield {};
		})();
		const { message } = await transport.stream(method, undefined, undefined, undefined, request);
		expect(transport.isIdle).toBe(false);
		for await (const _ of message) {
			break;
		}
		expect(transport.isIdle).toBe(true);
	});

	it("the signal of a stream has aborted, though nobody reads it", async () => {
		const { transport, open } = counted();
		const end = new AbortController();
		await open(end.signal).next();
		expect(transport.isIdle).toBe(false);
		end.abort();
		expect(transport.isIdle).toBe(true);
	});
});
