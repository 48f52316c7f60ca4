import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, createRouterTransport } from "@connectrpc/connect";
import {
	type Resource,
	ResourceSchema,
	ResourceService,
	type WatchEventSchema,
} from "@plinth/proto";
import { idOf, resourceOf } from "@plinth/resource";
import type { Clock } from "@plinth/runtime";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Film } from "../cinema.fixture.ts";
import { cinemaTypes } from "../known-types.fixture.ts";
import { type Change, follow } from "./follow.ts";

type Event = MessageInitShape<typeof WatchEventSchema>;

/** A write or deletion that the server comes to see, one revision each. */
interface Operation {
	readonly name: string;
	readonly isDelete: boolean;
}

/** After how many events a stream breaks, and whether the server can resume it then. */
interface Break {
	readonly after: number;
	readonly code: Code;
	readonly isForgotten: boolean;
}

/** More than streams take to hand on what they hold; and than events until the break that is next. */
const maxIdleRounds = 12;

/** A server whose operations happen between events, and whose streams break as planned. */
class BreakingServer {
	readonly stored = new Map<string, Resource>();
	readonly #log: { readonly version: number; readonly event: Event }[] = [];
	readonly #operations: Operation[];
	readonly #breaks: Break[];
	/** The oldest version that a watch can resume after. */
	#floor = 0;
	#version = 1;
	/** Aborts when everything has happened, and the watcher has had time to receive it. */
	readonly quiet = new AbortController();

	constructor(operations: readonly Operation[], breaks: readonly Break[]) {
		this.#operations = [...operations];
		this.#breaks = [...breaks];
	}

	async *watch(afterVersion: string): AsyncGenerator<Event> {
		const plan = this.#breaks.shift();
		let sent = 0;
		for await (const event of this.#events(afterVersion)) {
			if (plan !== undefined && sent === plan.after) {
				if (plan.isForgotten) {
					// What happens now is not seen by anybody.
					this.#operate();
					this.#operate();
					this.#floor = this.#version;
				}
				throw new ConnectError("broken", plan.code);
			}
			yield event;
			sent += 1;
		}
	}

	async *#events(afterVersion: string): AsyncGenerator<Event> {
		let at = Number(afterVersion);
		let idleRounds = 0;
		if (afterVersion === "") {
			at = this.#version;
			for (const resource of [...this.stored.values()]) {
				yield { event: { case: "upsert", value: { resource } } };
				this.#operate();
			}
			yield { event: { case: "endOfSnapshot", value: {} }, version: String(at) };
		} else if (at < this.#floor) {
			throw new ConnectError("too long ago", Code.OutOfRange);
		}
		for (;;) {
			const next = this.#log.find(({ version }) => version > at);
			if (next !== undefined) {
				at = next.version;
				yield next.event;
			} else if (!this.#operate()) {
				yield { event: { case: "bookmark", value: {} }, version: String(at) };
				idleRounds += 1;
				// The stream has not broken by now, so no break is left.
				if (idleRounds === maxIdleRounds) {
					this.quiet.abort();
				}
				await new Promise((resolve) => setImmediate(resolve));
			}
		}
	}

	/** Does the next operation, if there is one. */
	#operate(): boolean {
		const operation = this.#operations.shift();
		if (operation === undefined) {
			return false;
		}
		const { name, isDelete } = operation;
		const previous = this.stored.get(name);
		this.#version += 1;
		const version = String(this.#version);
		if (!isDelete) {
			const resource = create(ResourceSchema, {
				...resourceOf(Film, { id: idOf(Film, name) }),
				version,
			});
			this.stored.set(name, resource);
			this.#note({ event: { case: "upsert", value: { resource } }, version });
		} else if (previous !== undefined) {
			this.stored.delete(name);
			this.#note({ event: { case: "delete", value: { resource: previous } }, version });
		}
		return true;
	}

	#note(event: Event): void {
		this.#log.push({ version: this.#version, event });
	}
}

/** Delays are over at once. */
const clock: Clock = {
	now: () => 0,
	monotonic: () => 0,
	setTimer(_, callback) {
		const immediate = setImmediate(callback);
		return { cancel: () => clearImmediate(immediate) };
	},
};

function followOf(server: BreakingServer, signal = new AbortController().signal) {
	const notes: string[] = [];
	const transport = createRouterTransport(({ service }) => {
		service(ResourceService, { watchList: ({ afterVersion }) => server.watch(afterVersion) });
	});
	const changes = follow({
		resources: createClient(ResourceService, transport),
		type: cinemaTypes().find("Film"),
		tenancy: { partition: "default", namespace: "default" },
		namePrefix: "",
		clock,
		signal,
		onLost: () => notes.push("lost"),
		onResumed: () => notes.push("resumed"),
	});
	return { changes, notes };
}

const names = fc.constantFrom("a", "b", "c");
const operations = fc.array(fc.record({ name: names, isDelete: fc.boolean() }), { maxLength: 20 });
const breaks = fc.array(
	fc.record({
		// A first event must arrive: a watch that never opens is not tried again.
		after: fc.integer({ min: 1, max: 6 }),
		code: fc.constantFrom(Code.Unavailable, Code.Aborted, Code.Internal, Code.OutOfRange),
		isForgotten: fc.boolean(),
	}),
	{ maxLength: 6 },
);

describe("follow", () => {
	it("tells what there is in the end, nothing twice, however often the watch breaks", async () => {
		await fc.assert(
			fc.asyncProperty(operations, breaks, async (planned, breaking) => {
				const server = new BreakingServer(planned, breaking);
				const { changes, notes } = followOf(server, server.quiet.signal);
				const told = new Map<string, string>();
				let completions = 0;
				try {
					for await (const change of changes) {
						if (change.kind === "complete") {
							completions += 1;
						} else {
							check(change, told, completions > 0);
						}
					}
				} catch (error) {
					if (!server.quiet.signal.aborted || !(error instanceof ConnectError)) {
						throw error;
					}
				}
				const stored = [...server.stored].map(([name, { version }]) => [name, version]);
				expect([...told].sort()).toEqual(stored.sort());
				expect(completions).toBe(1);
				for (const [at, note] of notes.entries()) {
					expect(note).toBe(at % 2 === 0 ? "lost" : "resumed");
				}
			}),
			{ numRuns: 300 },
		);
	});

	it.each([Code.PermissionDenied, Code.Unauthenticated, Code.InvalidArgument])(
		"ends where the server refuses, with code %d",
		async (code) => {
			const server = new BreakingServer([], [{ after: 1, code, isForgotten: false }]);
			const { changes } = followOf(server);
			await expect(Array.fromAsync(changes)).rejects.toMatchObject({ code });
		},
	);

	it("ends where the watch does not open at all", async () => {
		const server = new BreakingServer(
			[],
			[{ after: 0, code: Code.Unavailable, isForgotten: false }],
		);
		await expect(Array.fromAsync(followOf(server).changes)).rejects.toMatchObject({
			code: Code.Unavailable,
		});
	});

	it("ends when it is told to, while it waits to try again too", async () => {
		const stop = new AbortController();
		const server = new BreakingServer(
			[],
			[{ after: 1, code: Code.Unavailable, isForgotten: false }],
		);
		const { changes } = followOf(server, stop.signal);
		await changes.next();
		stop.abort();
		await expect(changes.next()).rejects.toThrow();
	});
});

/** Checks that the change fits what was told so far, and adds it. */
function check(
	{ kind, resource }: Exclude<Change, { kind: "complete" }>,
	told: Map<string, string>,
	isComplete: boolean,
): void {
	const name = resource.id?.name ?? "";
	const before = told.get(name);
	if (kind === "deleted") {
		expect(before).toBeDefined();
		told.delete(name);
		return;
	}
	expect(Number(resource.version)).toBeGreaterThan(Number(before ?? 0));
	expect(kind === "present").toBe(!isComplete);
	if (isComplete) {
		expect(kind).toBe(before === undefined ? "added" : "changed");
	}
	told.set(name, resource.version);
}
