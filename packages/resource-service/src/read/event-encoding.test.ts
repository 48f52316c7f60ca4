import { create, toBinary } from "@bufbuild/protobuf";
import { type WatchEvent, WatchEventSchema } from "@plinth/proto";
import { decode, idOf, resourceOf } from "@plinth/resource";
import type { Mutation, WatchEvent as StoredEvent } from "@plinth/storage";
import fc from "fast-check";
import { afterEach, describe, expect, it, vi } from "vitest";
import { SecretSchema } from "../../testdata/gen/acme/demo/v2/demo_pb.ts";
import { PolicyAuthorizer } from "../access/policy-authorizer.ts";
import { Artist, artist, Secret } from "../demo.fixture.ts";
import { startService, type TestService } from "../service.fixture.ts";
import { EventEncoding } from "./event-encoding.ts";

const subjects = ["ann", "bob"] as const;
const names = ["s0", "s1", "s2"] as const;

/** A commit: the new reader of each secret that it writes, or no reader to delete it. */
const commits = fc.array(
	fc.dictionary(fc.constantFrom(...names), fc.constantFrom("", ...subjects), {
		minKeys: 1,
		noNullPrototype: true,
	}),
	{ minLength: 1, maxLength: 12 },
);

/** What a watch has received: action, name, reader and version of each secret. */
type Seen = readonly (readonly [action: string, name: string, reader: string, version: string])[];

function authorizer(): PolicyAuthorizer {
	const policies = new PolicyAuthorizer();
	for (const subject of subjects) {
		policies.grant(subject, { subject, rules: [{ operations: ["operator:read"] }] });
	}
	return policies;
}

async function commit({ backend }: TestService, readers: Readonly<Record<string, string>>) {
	const { resources } = await backend.list({
		type: Secret.type,
		tenancy: { partition: "*", namespace: "*" },
		namePrefix: "",
	});
	const stored = new Map(resources.map((each) => [each.id?.name, each]));
	const mutations = Object.entries(readers).flatMap(([name, reader]): Mutation[] => {
		const before = stored.get(name);
		const id = before?.id ?? { ...idOf(Secret, name), uid: name };
		const expectedVersion = before?.version ?? "";
		if (reader === "") {
			return before === undefined ? [] : [{ op: "delete", id, expectedVersion }];
		}
		const resource = resourceOf(Secret, { id, data: create(SecretSchema, { reader }) });
		return [{ op: "put", resource, expectedVersion }];
	});
	await backend.commit(mutations);
}

/** The messages of a watch after its snapshot, until a secret named `end` comes. */
async function watch({ client }: TestService, subject: string, signal: AbortSignal) {
	const messages: WatchEvent[] = [];
	const headers = { authorization: `Bearer ${subject}` };
	const started = Promise.withResolvers<void>();
	const ended = (async () => {
		for await (const message of client.watchList({ type: Secret.type }, { headers, signal })) {
			if (message.event.case === "endOfSnapshot") {
				started.resolve();
			} else if (seenOf([message])[0]?.[1] === `end-${subject}`) {
				return;
			} else {
				messages.push(message);
			}
		}
	})();
	await started.promise;
	return { messages, ended };
}

function seenOf(messages: readonly WatchEvent[]): Seen {
	return messages.map(({ event }) => {
		if (event.case !== "upsert" && event.case !== "delete") {
			throw new Error(`unexpected ${event.case}`);
		}
		const { resource } = event.value;
		const reader = resource === undefined ? "" : decode(Secret, resource).data.reader;
		return [event.case, resource?.id?.name ?? "", reader, resource?.version ?? ""];
	});
}

/** What a caller should see of the events, made for it alone. */
function expectedOf(events: readonly StoredEvent[], subject: string): Seen {
	return events.flatMap((event): Seen => {
		if (event.kind !== "upsert" && event.kind !== "delete") {
			return [];
		}
		const sees = (resource = event.resource) => decode(Secret, resource).data.reader === subject;
		const { resource } = event;
		const seen = (action: string, shown = resource): Seen => [
			[action, shown.id?.name ?? "", decode(Secret, shown).data.reader, shown.version],
		];
		if (sees()) {
			return seen(event.kind);
		}
		const previous = event.kind === "upsert" ? event.previous : undefined;
		return previous !== undefined && sees(previous) ? seen("delete", previous) : [];
	});
}

/** Makes the commits while two watches of each subject run, and compares what they receive. */
async function check(readers: readonly Readonly<Record<string, string>>[]): Promise<void> {
	await using t = await startService("in-process", { authorizer: authorizer() });
	const end = new AbortController();
	const stored: StoredEvent[] = [];
	const query = { type: Secret.type, tenancy: { partition: "*", namespace: "*" }, namePrefix: "" };
	const raw = t.backend.watchList(query, { signal: end.signal })[Symbol.asyncIterator]();
	await raw.next();
	const watches = await Promise.all(
		[...subjects, ...subjects].map(async (subject) => ({
			subject,
			...(await watch(t, subject, end.signal)),
		})),
	);
	for (const each of readers) {
		await commit(t, each);
	}
	await commit(t, Object.fromEntries(subjects.map((subject) => [`end-${subject}`, subject])));
	for (;;) {
		const { value, done } = await raw.next();
		if (done || (value.kind === "upsert" && value.resource.id?.name.startsWith("end-"))) {
			break;
		}
		stored.push(value);
	}
	await Promise.all(watches.map(({ ended }) => ended));
	end.abort();
	for (const { subject, messages } of watches) {
		expect(seenOf(messages)).toEqual(expectedOf(stored, subject));
	}
	const bytes = watches.map(({ messages }) =>
		messages.map((message) => Buffer.from(toBinary(WatchEventSchema, message)).toString("hex")),
	);
	for (const [index] of subjects.entries()) {
		expect(bytes[index]).toEqual(bytes[index + subjects.length]);
	}
}

describe("messages that watches share", () => {
	afterEach(() => {
		vi.restoreAllMocks();
	});

	it("show each caller what it may see, and callers with the same rights the same", async () => {
		await fc.assert(fc.asyncProperty(commits, check), { numRuns: 40 });
	});

	it("are found out if they depend on the event alone", async () => {
		const first = new WeakMap<object, WatchEvent>();
		const { upsert, deletion } = EventEncoding.prototype;
		for (const [method, make] of [
			["upsert", upsert],
			["deletion", deletion],
		] as const) {
			vi.spyOn(EventEncoding.prototype, method).mockImplementation(function (
				this: EventEncoding,
				event,
				resource,
			) {
				const key = event.derived?.key ?? {};
				const message = first.get(key) ?? make.call(this, event, resource);
				first.set(key, message);
				return message;
			});
		}
		const moved = [{ s0: "ann" }, { s0: "bob" }];
		await expect(check(moved)).rejects.toThrow(/to deeply equal/);
	});

	it("are the same object for all watches, with and without the version of a commit", async () => {
		await using t = await startService("in-process");
		const end = new AbortController();
		const watches = [0, 1].map(() =>
			t.client.watchList({ type: Artist.type }, { signal: end.signal })[Symbol.asyncIterator](),
		);
		await Promise.all(watches.map((each) => each.next()));
		await t.backend.commit(
			["a", "b"].map((name): Mutation => {
				const resource = artist(name);
				const id = resource.id && { ...resource.id, uid: name };
				return { op: "put", resource: { ...resource, ...(id && { id }) }, expectedVersion: "" };
			}),
		);
		for (const hasVersion of [false, true]) {
			const [one, other] = await Promise.all(watches.map((each) => each.next()));
			expect(one?.value).toBe(other?.value);
			expect(one?.value?.version !== "").toBe(hasVersion);
		}
		end.abort();
	});
});

describe("the messages of an event", () => {
	it("are made again after the log has dropped them, and count once for all watches", () => {
		const counted: number[] = [];
		const derived = { key: {}, retain: (bytes: number) => counted.push(bytes) };
		const encoding = new EventEncoding();
		const resource = artist("a");
		const event = { version: "7", derived };
		const message = encoding.upsert(event, resource);
		expect(encoding.upsert({ version: "7", derived }, resource)).toBe(message);
		expect(counted).toHaveLength(1);
		expect(encoding.deletion(event, resource)).not.toBe(message);
		expect(encoding.upsert({ derived }, resource)).toMatchObject({ version: "" });
		expect(encoding.upsert(event, { ...resource })).not.toBe(message);
		expect(counted).toHaveLength(4);
		derived.key = {};
		expect(encoding.upsert(event, resource)).not.toBe(message);
		expect(encoding.upsert({ version: "7" }, resource)).toEqual(message);
		expect(counted).toHaveLength(5);
	});
});
