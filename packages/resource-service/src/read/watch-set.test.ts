import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { anyPack, anyUnpack } from "@bufbuild/protobuf/wkt";
import { Code, createHandlerContext } from "@connectrpc/connect";
import {
	type ID,
	IDSchema,
	type Resource,
	ResourceService,
	type WatchEvent,
	WatchEventSchema,
	type WatchSetEvent,
	WatchSetRequestSchema,
} from "@plinth/proto";
import { idOf, resourceOf } from "@plinth/resource";
import { systemRuntime } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import { decorateBackend, Refused, type StorageBackend } from "@plinth/storage";
import { describe, expect, it } from "vitest";
import { insecureAllowAll } from "../access/open-access.ts";
import { PolicyAuthorizer } from "../access/policy-authorizer.ts";
import { Album, Artist, artist, Label } from "../demo.fixture.ts";
import { createResourceService } from "../resource-service.ts";
import { connections, expectRefusal, startService, type TestService } from "../service.fixture.ts";

type Watches = NonNullable<MessageInitShape<typeof WatchSetRequestSchema>["watches"]>;

/** A message as text: what happened to which watch. */
function told({ watchId, content }: WatchSetEvent): string {
	if (content.case === "end") {
		return `${watchId}: ${Code[content.value.code] ?? content.value.code}: ${content.value.message}`;
	}
	const event = content.value?.event;
	const name =
		event?.case === "upsert" || event?.case === "delete" ? event.value.resource?.id?.name : "";
	return `${watchId}: ${event?.case}${name && ` ${name}`}`;
}

/** A stream of a set, which is read message by message. */
class SetReader implements AsyncDisposable {
	readonly messages: WatchSetEvent[] = [];
	readonly #stop = new AbortController();
	readonly #events: AsyncIterator<WatchSetEvent>;

	constructor({ client }: TestService, watches: Watches, headers: Record<string, string> = {}) {
		this.#events = client
			.watchSet({ watches }, { headers, signal: this.#stop.signal })
			[Symbol.asyncIterator]();
	}

	/** The next message as text; `undefined` at the end. */
	async next(): Promise<string | undefined> {
		const { value, done } = await this.#events.next();
		if (done) {
			return undefined;
		}
		this.messages.push(value);
		return told(value);
	}

	async take(count: number): Promise<readonly (string | undefined)[]> {
		const taken: (string | undefined)[] = [];
		while (taken.length < count) {
			taken.push(await this.next());
		}
		return taken;
	}

	async [Symbol.asyncDispose](): Promise<void> {
		this.#stop.abort();
		await this.#events.return?.();
	}
}

const of = (type: { readonly type: object }, more: object = {}) => ({
	request: { type: { ...type.type }, ...more },
});
const album = (name: string): Resource => resourceOf(Album, { id: idOf(Album, name) });

/** An authorizer whose token `artists` may read artists only, and `all` everything. */
function policies(): PolicyAuthorizer {
	const authorizer = new PolicyAuthorizer();
	authorizer.grant("artists", {
		subject: "ann",
		rules: [{ operations: ["operator:read"], type: Artist.key }],
	});
	authorizer.grant("all", { subject: "bob", rules: [{ operations: ["*"] }] });
	return authorizer;
}
const token = (value: string) => ({ authorization: `Bearer ${value}` });

describe.each(connections)("a set of watches, %s", (connection) => {
	it("sends for each watch the messages of a WatchList", async () => {
		await using t = await startService(connection);
		const { client } = t;
		await client.write({ resource: artist("a") });
		const { resource: b } = await client.write({ resource: album("b") });
		const requests = [
			of(Artist),
			of(Album, { afterVersion: b?.version }),
			of(Artist, { namePrefix: "x" }),
		];
		const watches = requests.map((each, index) => ({ id: `${index}`, ...each }));
		await using set = new SetReader(t, watches);
		const stop = new AbortController();
		const singles = requests.map(({ request }) =>
			client.watchList(request, { signal: stop.signal })[Symbol.asyncIterator](),
		);
		const expected: WatchEvent[][] = [[], [], []];
		const read = async (index: number, count: number) => {
			for (let each = 0; each < count; each += 1) {
				const result = await singles[index]?.next();
				if (result !== undefined && !result.done) {
					expected[index]?.push(result.value);
				}
			}
		};
		const snapshots = Promise.all([read(0, 2), read(2, 1)]);
		await set.take(3);
		await snapshots;
		const live = Promise.all([read(0, 3), read(1, 2), read(2, 1)]);
		await client.write({ resource: artist("xa") });
		await client.write({ resource: album("c") });
		await client.delete({ id: idOf(Artist, "a") });
		await client.write({ resource: album("c") });
		await client.write({ resource: artist("b") });
		await set.take(6);
		await live;
		const bytes = (event: WatchEvent) => Buffer.from(toBinary(WatchEventSchema, event)).toString();
		for (const [index, events] of expected.entries()) {
			const received = set.messages.flatMap(({ watchId, content }) =>
				watchId === `${index}` && content.case === "event" ? [content.value] : [],
			);
			expect(received.map(bytes)).toEqual(events.map(bytes));
		}
		stop.abort();
	});

	it("ends a watch that fails alone, with its status", async () => {
		await using t = await startService(connection, { authorizer: policies() });
		await using set = new SetReader(
			t,
			[
				{ id: "denied", ...of(Album) },
				{ id: "unknown", request: { type: { group: "demo", groupVersion: "v9", kind: "Nope" } } },
				{ id: "old", ...of(Artist, { afterVersion: "999999" }) },
				{ id: "good", ...of(Artist) },
				{ id: "malformed", ...of(Artist, { namePrefix: "A" }) },
			],
			token("artists"),
		);
		const ends = await set.take(5);
		expect(ends.toSorted()).toEqual([
			expect.stringMatching(/^denied: PermissionDenied: .*ann/),
			"good: endOfSnapshot",
			expect.stringMatching(/^malformed: InvalidArgument: name_prefix invalid: /),
			expect.stringMatching(/^old: OutOfRange: .*: watch again without a version$/),
			"unknown: InvalidArgument: resource type demo.v9.Nope not registered",
		]);
		await t.client.write({ resource: artist("a") }, { headers: token("all") });
		expect(await set.next()).toBe("good: upsert a");
	});

	it("ends with OK when all its watches have ended", async () => {
		await using t = await startService(connection);
		await using set = new SetReader(t, [{ id: "old", ...of(Artist, { afterVersion: "999999" }) }]);
		expect(await set.next()).toMatch(/^old: OutOfRange/);
		expect(await set.next()).toBeUndefined();
	});

	it("fails as a whole when the token ends, and sends nothing more", async () => {
		const authorizer = policies();
		await using t = await startService(connection, { authorizer });
		await using set = new SetReader(
			t,
			[
				{ id: "1", ...of(Artist) },
				{ id: "2", ...of(Album) },
			],
			token("all"),
		);
		await set.take(2);
		authorizer.revoke("all");
		const message = "the token has expired or was revoked: watch again with a valid token";
		await expectRefusal(set.next(), Code.Unauthenticated, message);
	});

	it.each<[problem: string, watches: Watches, message: string]>([
		["no watches", [], "watches is required"],
		["an empty id", [{ id: "a", ...of(Artist) }, of(Artist)], "watches[1].id is required"],
		[
			"a long id",
			[{ id: "x".repeat(65), ...of(Artist) }],
			`watches[0].id invalid: must be at most 64 characters long, got: "${"x".repeat(65)}"`,
		],
		[
			"an id twice",
			["a", "b", "a"].map((id) => ({ id, ...of(Artist) })),
			'watches[2].id invalid: must differ from watches[0].id, got: "a"',
		],
		["a watch of nothing", [{ id: "a" }], "watches[0].request is required"],
		[
			"too many watches",
			Array.from({ length: 101 }, (_, index) => ({ id: `${index}`, ...of(Artist) })),
			"watches invalid: has 101 entries, more than 100: watch the others in further streams",
		],
	])("is refused with %s", async (_problem, watches, message) => {
		await using t = await startService(connection);
		await using set = new SetReader(t, watches);
		await expectRefusal(set.next(), Code.InvalidArgument, message);
	});
});

/** A storage that fails the watches of a type. */
function failing(backend: StorageBackend, failure: unknown): StorageBackend {
	return decorateBackend(backend, {
		watchList(query, options) {
			if (query.type.kind === Album.type.kind) {
				throw failure;
			}
			return backend.watchList(query, options);
		},
	});
}

describe("a set of watches", () => {
	it("passes on the details of a failure", async () => {
		const id: ID = idOf(Artist, "cause");
		await using t = await startService("in-process", {
			decorate: (backend) =>
				failing(
					backend,
					new Refused(Code.FailedPrecondition, "not now", [{ desc: IDSchema, value: id }]),
				),
		});
		await using set = new SetReader(t, [{ id: "a", ...of(Album) }]);
		expect(await set.next()).toBe("a: FailedPrecondition: not now");
		const content = set.messages[0]?.content;
		const [detail] = content?.case === "end" ? content.value.details : [];
		expect(detail).toEqual(anyPack(IDSchema, id));
		expect(detail && anyUnpack(detail, IDSchema)).toEqual(id);
	});

	it("sends the first bookmark of each watch that resumes at once, so that a stream of any length moves its position", async () => {
		const runtime = { ...systemRuntime, clock: new FakeClock() };
		await using t = await startService("in-process", { runtime });
		const { resource } = await t.client.write({ resource: artist("a") });
		const { resource: newest } = await t.client.write({ resource: album("b") });
		const watches = [
			{ id: "idle", ...of(Artist, { afterVersion: resource?.version, bookmarks: true }) },
			{ id: "missed", ...of(Album, { afterVersion: resource?.version, bookmarks: true }) },
			{ id: "silent", ...of(Artist, { afterVersion: resource?.version }) },
			{ id: "new", ...of(Label, { bookmarks: true }) },
		];
		await using set = new SetReader(t, watches);
		expect((await set.take(4)).toSorted()).toEqual([
			"idle: bookmark",
			"missed: bookmark",
			"missed: upsert b",
			"new: endOfSnapshot",
		]);
		const versions = set.messages.flatMap(({ content }) =>
			content.case === "event" ? [content.value.version] : [],
		);
		expect(versions).toEqual(Array(4).fill(newest?.version));
		await t.client.write({ resource: artist("c") });
		expect((await set.take(2)).toSorted()).toEqual(["idle: upsert c", "silent: upsert c"]);
	});

	it("says nothing of a bug but that there is one, and logs it", async () => {
		const errors: unknown[] = [];
		await using t = await startService("in-process", {
			decorate: (backend) => failing(backend, new TypeError("secret")),
			logger: {
				debug() {},
				info() {},
				warn() {},
				error: (fields: { readonly method?: unknown }) => errors.push(fields.method),
			},
		});
		await using set = new SetReader(t, [
			{ id: "a", ...of(Album) },
			{ id: "b", ...of(Artist) },
		]);
		expect((await set.take(2)).toSorted()).toEqual([
			"a: Internal: internal error",
			"b: endOfSnapshot",
		]);
		expect(errors).toEqual(["WatchSet"]);
	});

	it("sends no message that it took before the token has ended", async () => {
		const authorizer = policies();
		await using t = await startService("in-process", { authorizer });
		await using set = new SetReader(
			t,
			["1", "2", "3"].map((id) => ({ id, ...of(Artist) })),
			token("all"),
		);
		// The messages of the other watches have come in the meantime.
		await set.next();
		authorizer.revoke("all");
		await expectRefusal(set.next(), Code.Unauthenticated, /^the token has expired/);
	});

	it("sends the events of a watch while the snapshot of another is on its way", async () => {
		await using t = await startService("in-process");
		await Promise.all(
			Array.from({ length: 300 }, (_, index) => t.client.write({ resource: artist(`a${index}`) })),
		);
		await using set = new SetReader(t, [
			{ id: "large", ...of(Artist) },
			{ id: "small", ...of(Label) },
		]);
		expect(await set.take(4)).toContain("small: endOfSnapshot");
		await t.client.write({ resource: resourceOf(Label, { id: idOf(Label, "ecm") }) });
		expect(await set.take(6)).toContain("small: upsert ecm");
		const rest = await set.take(291);
		expect(rest.filter((each) => each?.startsWith("large: upsert")).length).toBeGreaterThan(285);
	});

	it("takes no more than one message of each watch before it is read", async () => {
		let taken = 0;
		await using t = await startService("in-process", {
			decorate: (backend) =>
				decorateBackend(backend, {
					async *watchList(query, options) {
						for await (const event of backend.watchList(query, options)) {
							taken += 1;
							yield event;
						}
					},
				}),
		});
		await Promise.all(
			Array.from({ length: 50 }, (_, index) => t.client.write({ resource: artist(`a${index}`) })),
		);
		const count = 4;
		await using set = new SetReader(
			t,
			Array.from({ length: count }, (_, index) => ({ id: `${index}`, ...of(Artist) })),
		);
		const read = 8;
		await set.take(read);
		await t.client.write({ resource: artist("later") });
		expect(taken).toBeLessThanOrEqual(read + 2 * count);
		await set.take(4 * 52 - read);
	});

	it("ends a watch that has fallen behind, and goes on with the others", async () => {
		await using t = await startService("in-process", { limits: { logEvents: 4 } });
		await using set = new SetReader(t, [
			{ id: "artists", ...of(Artist) },
			{ id: "albums", ...of(Album) },
		]);
		await set.take(2);
		for (let index = 0; index < 12; index += 1) {
			await t.client.write({ resource: artist(`a${index}`) });
		}
		let last: string | undefined = "";
		while (last?.startsWith("artists: Aborted") === false) {
			last = await set.next();
		}
		await t.client.write({ resource: album("b") });
		expect(await set.next()).toBe("albums: upsert b");
	});

	it("releases its watches when it is left", async () => {
		const open = new Set<object>();
		await using t = await startService("in-process", {
			decorate: (backend) =>
				decorateBackend(backend, {
					async *watchList(query, options) {
						try {
							open.add(query);
							yield* backend.watchList(query, options);
						} finally {
							open.delete(query);
						}
					},
				}),
		});
		const set = new SetReader(t, [
			{ id: "1", ...of(Artist) },
			{ id: "2", ...of(Album) },
		]);
		await set.take(2);
		expect(open.size).toBe(2);
		await set[Symbol.asyncDispose]();
		await expect.poll(() => open.size).toBe(0);
	});

	it("ends a call of next that waits when it is left", async () => {
		await using t = await startService("in-process");
		const service = createResourceService({ ...t, authorizer: insecureAllowAll });
		const context = createHandlerContext({
			service: ResourceService,
			method: ResourceService.method.watchSet,
			protocolName: "test",
			requestMethod: "POST",
			url: "http://test",
		});
		const request = create(WatchSetRequestSchema, { watches: [{ id: "1", ...of(Artist) }] });
		const events = service.watchSet(request, context)[Symbol.asyncIterator]();
		await events.next();
		const next = events.next();
		await events.return?.();
		expect(await next).toEqual({ done: true, value: undefined });
	});
});
