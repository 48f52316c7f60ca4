import { create, type DescMethodStreaming } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { ResourceService } from "@plinth/proto";
import {
	ReportReleasesResponseSchema,
	SchemaMixinService,
	WatchImportedServiceDeletionsResponseSchema,
} from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import { FakeClock } from "@plinth/runtime/testing";
import { describe, expect, it } from "vitest";
import {
	decodeEndpoints,
	encodeEndpoints,
	endpointsHeader,
	versionOfEndpoints,
} from "../protocol/endpoints-header.ts";
import { createBalancedTransport } from "./balanced-transport.ts";

const [a, b, c, registered] = ["http://a", "http://b", "http://c", "http://registered"] as const;

/** How a server responds to a call with a timeout: `undefined` if it can't be reached. */
type Behavior =
	| ((timeoutMs?: number) => { readonly header?: string; readonly failure?: ConnectError })
	| undefined;

/** A deployment whose servers behave as given, and the addresses that were called, in their order. */
function deployment(
	servers: Record<string, Behavior>,
	running: readonly string[] = [],
	stall: Promise<void> = Promise.resolve(),
) {
	const clock = new FakeClock();
	const called: string[] = [];
	const known = { running };
	const timeouts: (number | undefined)[] = [];
	const connect = (address: string): Transport => ({
		async unary(method, _signal, timeoutMs) {
			called.push(address);
			timeouts.push(timeoutMs);
			await stall;
			const { header, failure } = servers[address]?.(timeoutMs) ?? {
				failure: unreachable(),
			};
			const headers = new Headers(header === undefined ? {} : { [endpointsHeader]: header });
			if (failure !== undefined) {
				throw new ConnectError(failure.rawMessage, failure.code, headers);
			}
			const message = create(ReportReleasesResponseSchema);
			const response = { stream: false, service: method.parent, header: headers } as const;
			return { ...response, method, message: message as never, trailer: new Headers() };
		},
		async stream(method) {
			called.push(address);
			const { header, failure } = servers[address]?.() ?? { failure: unreachable() };
			if (failure !== undefined) {
				throw failure;
			}
			return new LazyResponse(method, header) as never;
		},
	});
	const transport = createBalancedTransport({
		addresses: () => ({ running: known.running, registered }),
		connect,
		onEndpoints: (value) => {
			known.running = decodeEndpoints(value, registered);
		},
		ownEndpoints: () => "http://own",
		clock,
	});
	const client = createClient(SchemaMixinService, transport);
	return { client, transport, clock, called, timeouts };
}

/** A stream with one message, whose headers are made on first access, as those of Plinth's transports are. */
class LazyResponse {
	readonly stream = true;
	readonly #header: string | undefined;
	readonly method: DescMethodStreaming;

	constructor(method: DescMethodStreaming, header: string | undefined) {
		this.method = method;
		this.#header = header;
	}

	get service() {
		return this.method.parent;
	}

	get header() {
		return new Headers(this.#header === undefined ? {} : { [endpointsHeader]: this.#header });
	}

	get trailer() {
		return new Headers();
	}

	get message() {
		return (async function* () {
			yield create(WatchImportedServiceDeletionsResponseSchema);
		})();
	}
}

function unreachable(): ConnectError {
	return new ConnectError("no server responds", Code.Unavailable);
}

const responds = (...running: readonly string[]) => {
	return () => ({ header: encodeEndpoints(running) });
};

/** Responds after that time, or not in time. */
const takes = (clock: () => FakeClock, ms: number, ...running: readonly string[]) => {
	return (timeoutMs = Number.POSITIVE_INFINITY) => {
		clock().advance(Math.min(ms, timeoutMs));
		return ms > timeoutMs
			? { failure: new ConnectError("no response in time", Code.DeadlineExceeded) }
			: { header: encodeEndpoints(running) };
	};
};

const fails = (code: Code, ...running: readonly string[]) => {
	return () => ({ header: encodeEndpoints(running), failure: new ConnectError("no", code) });
};

describe("a transport to the servers of a deployment", () => {
	it("learns of them from the first response, and calls them in turns", async () => {
		const both = responds(a, b);
		const { client, called } = deployment({ [registered]: both, [a]: both, [b]: both });
		for (let calls = 0; calls < 5; calls++) {
			await client.reportReleases({});
		}
		expect(called[0]).toBe(registered);
		expect(called.slice(1).sort()).toEqual([a, a, b, b]);
	});

	it("repeats a call at the next one if a server can't be reached, and avoids that for a while", async () => {
		const { client, called, clock } = deployment({ [b]: responds(a, b) }, [a, b]);
		await client.reportReleases({});
		await client.reportReleases({});
		await client.reportReleases({});
		expect(called).toEqual([a, b, b, b]);
		clock.advance(1_000);
		await client.reportReleases({});
		await client.reportReleases({});
		expect(called.slice(4)).toContain(a);
	});

	it("opens a stream at the registered address soon if no running server responds, however long it pauses", async () => {
		const { transport, called, clock } = deployment({ [registered]: responds(b) }, [a, b, c]);
		const client = createClient(SchemaMixinService, transport);
		const opens = async () => {
			for await (const _ of client.watchImportedServiceDeletions({})) {
				return true;
			}
			return false;
		};
		for (let attempts = 0; called.at(-1) !== registered; attempts++) {
			expect(attempts).toBeLessThan(4);
			expect(await opens().catch(() => false)).toBe(called.at(-1) === registered);
			// Longer than any server is avoided.
			clock.advance(60_000);
		}
	});

	it("repeats at most twice, within the deadline of the call", async () => {
		const { client, called, clock, timeouts } = deployment(
			{
				[a]: () => {
					clock.advance(400);
					return { failure: unreachable() };
				},
			},
			[a, b, c],
		);
		await expect(client.reportReleases({}, { timeoutMs: 1_000 })).rejects.toThrow(
			"no server responds",
		);
		expect(called).toEqual([a, b, c]);
		expect(timeouts).toEqual([334, 200, 600]);
	});

	it("repeats at another one a call to a server that hangs, within its deadline, and avoids that server", async () => {
		const { client, called, clock, timeouts } = deployment(
			{ [a]: takes(() => clock, Number.POSITIVE_INFINITY, a, b), [b]: responds(a, b) },
			[a, b],
		);
		await client.reportReleases({}, { timeoutMs: 6_000 });
		expect(called).toEqual([a, b]);
		expect(timeouts).toEqual([2_000, 4_000]);
		await client.reportReleases({}, { timeoutMs: 6_000 });
		await client.reportReleases({}, { timeoutMs: 6_000 });
		expect(called).toEqual([a, b, b, b]);
	});

	it("repeats what a server has ended by the timeout of its attempt", async () => {
		const { client, called } = deployment(
			{ [a]: fails(Code.DeadlineExceeded, a, b), [b]: responds(a, b) },
			[a, b],
		);
		await client.reportReleases({}, { timeoutMs: 6_000 });
		expect(called).toEqual([a, b]);
	});

	it.each([
		["the only server", [a]],
		["slow servers, once one of them has responded late", [a, b]],
		["more slow servers, once one of them has responded late", [a, b, c]],
	])("leaves the whole deadline to %s", async (_, running) => {
		const slow = takes(() => clock, 5_000, ...running);
		const { client, clock, timeouts } = deployment({ [a]: slow, [b]: slow, [c]: slow }, running);
		const call = () =>
			client.reportReleases({}, { timeoutMs: 6_000 }).then(
				() => "a response",
				() => "none",
			);
		const isOnly = running.length === 1;
		expect(await call()).toBe(isOnly ? "a response" : "none");
		const before = timeouts.length;
		for (let calls = 0; calls < 20; calls++) {
			expect(await call()).toBe("a response");
			clock.advance(10_000);
		}
		expect(new Set(timeouts.slice(before))).toEqual(new Set([6_000]));
	});

	it("leaves the whole deadline to slow servers that end the attempts themselves", async () => {
		const running = [a, b, c];
		const header = encodeEndpoints(running);
		const slow = (timeoutMs?: number) => ({ ...takes(() => clock, 5_000)(timeoutMs), header });
		const { client, clock } = deployment({ [a]: slow, [b]: slow, [c]: slow }, running);
		await expect(client.reportReleases({}, { timeoutMs: 6_000 })).rejects.toThrow("in time");
		for (let calls = 0; calls < 20; calls++) {
			await client.reportReleases({}, { timeoutMs: 6_000 });
			clock.advance(10_000);
		}
	});

	it("lets one call at a time try again a server that is no longer avoided", async () => {
		const { client, called, clock } = deployment({ [b]: responds(a, b) }, [a, b]);
		await client.reportReleases({});
		expect(called).toEqual([a, b]);
		clock.advance(1_000);
		await Promise.all(Array.from({ length: 4 }, () => client.reportReleases({})));
		expect(called.slice(2).filter((address) => address === a)).toHaveLength(1);
	});

	it("counts the calls that one stall has met as one failure", async () => {
		const stall = Promise.withResolvers<void>();
		const { client, called, clock } = deployment({ [b]: responds(a, b) }, [a, b], stall.promise);
		const calls = Array.from({ length: 20 }, () => client.reportReleases({}));
		clock.advance(100);
		stall.resolve();
		await Promise.all(calls);
		called.length = 0;
		// Twice as long as after the first failure.
		clock.advance(1_000);
		await client.reportReleases({});
		await client.reportReleases({});
		expect(called).toContain(a);
	});

	it("does not repeat after the deadline", async () => {
		const { client, called, clock } = deployment(
			{
				[a]: () => {
					clock.advance(1_000);
					return { failure: unreachable() };
				},
			},
			[a, b],
		);
		await expect(client.reportReleases({}, { timeoutMs: 1_000 })).rejects.toThrow();
		expect(called).toEqual([a]);
	});

	it("does not repeat a call whose deadline is over by the timer, but not yet by the clock", async () => {
		const failure = new ConnectError("no response in time", Code.DeadlineExceeded);
		const { client, called, clock } = deployment(
			{
				[a]: (timeoutMs = 0) => {
					clock.advance(timeoutMs - 0.5);
					return { failure };
				},
				[registered]: responds(a),
			},
			[a],
		);
		await expect(client.reportReleases({}, { timeoutMs: 1_000 })).rejects.toThrow("in time");
		expect(called).toEqual([a]);
	});

	it("does not repeat a call that is not idempotent", async () => {
		const { transport, called } = deployment({}, [a, b]);
		await expect(createClient(ResourceService, transport).write({})).rejects.toThrow(
			"no server responds",
		);
		expect(called).toEqual([a]);
	});

	it("does not repeat what a server of the deployment has refused", async () => {
		const { client, called } = deployment(
			{ [a]: fails(Code.Unavailable, a, b), [b]: responds(a, b) },
			[a, b],
		);
		await expect(client.reportReleases({})).rejects.toThrow("no");
		expect(called).toEqual([a]);
	});

	it("repeats what a server has refused that no longer counts itself among the running ones", async () => {
		const { client, called } = deployment({ [a]: fails(Code.Unavailable, b), [b]: responds(b) }, [
			a,
			b,
		]);
		await client.reportReleases({});
		expect(called).toEqual([a, b]);
	});

	it("repeats what the server of another deployment has refused, which has the address now", async () => {
		const other = () => ({ failure: new ConnectError("this is another one", Code.Unavailable) });
		const { client, called } = deployment({ [a]: other, [b]: responds(b) }, [a, b]);
		await client.reportReleases({});
		expect(called).toEqual([a, b]);
	});

	it("returns to the registered address when none of the known servers runs any longer", async () => {
		const { client, called } = deployment({ [registered]: responds(c), [c]: responds(c) }, [a, b]);
		await client.reportReleases({});
		expect(called).toEqual([a, b, registered]);
		await client.reportReleases({});
		expect(called.at(-1)).toBe(c);
	});

	it("learns from streams, and leaves it to their callers to open them again", async () => {
		const { client, called } = deployment({ [registered]: responds(b), [b]: responds(b) });
		const headers: (string | null)[] = [];
		const follow = async () => {
			const onHeader = (header: Headers) => headers.push(header.get(endpointsHeader));
			const messages = client.watchImportedServiceDeletions({}, { onHeader });
			return (await Array.fromAsync(messages)).length;
		};
		expect(await follow()).toBe(1);
		expect(await follow()).toBe(1);
		expect(called).toEqual([registered, b]);
		expect(headers).toEqual([b, b]);
		const other = deployment({ [b]: responds(b) }, [a, b]);
		const failing = Array.fromAsync(other.client.watchImportedServiceDeletions({}));
		await expect(failing).rejects.toThrow("no server responds");
		expect(await Array.fromAsync(other.client.watchImportedServiceDeletions({}))).toHaveLength(1);
		expect(other.called).toEqual([a, b]);
	});

	it("still calls the only address while it is avoided", async () => {
		const { client, called } = deployment({});
		for (let calls = 0; calls < 3; calls++) {
			await expect(client.reportReleases({})).rejects.toThrow("no server responds");
		}
		expect(called).toEqual([registered, registered, registered]);
	});
});

describe("the addresses in a response", () => {
	it("are used only if they are URLs with the scheme of the registered one", () => {
		const value = "https://a:1, http://b:1,nonsense,,https://a:1,https://c:1/path";
		expect(decodeEndpoints(value, "https://registered")).toEqual(["https://a:1", "https://c:1"]);
		expect(decodeEndpoints("", "https://registered")).toEqual([]);
		expect(decodeEndpoints("localhost:1,localhost:2", "localhost:7576")).toEqual([]);
	});

	it("follow the version of the storage, if it is named", () => {
		const value = encodeEndpoints(["http://a", "http://b"], "17");
		expect(value).toBe("version=17,http://a,http://b");
		expect(decodeEndpoints(value, registered)).toEqual(["http://a", "http://b"]);
		expect(versionOfEndpoints(value)).toBe("17");
		for (const none of ["", "http://a", "version=0", "version=x", "http://a,version=17"]) {
			expect(versionOfEndpoints(none)).toBe("");
		}
	});

	it("are at most 32", () => {
		const many = Array.from({ length: 100 }, (_, at) => `http://host-${at}`);
		expect(decodeEndpoints(many.join(","), registered)).toHaveLength(32);
		expect(encodeEndpoints(many).split(",")).toHaveLength(32);
		expect(decodeEndpoints(encodeEndpoints(many, "17"), registered)).toHaveLength(32);
	});
});
