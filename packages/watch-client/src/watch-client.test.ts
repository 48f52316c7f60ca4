import { setImmediate } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import { FakeClock } from "@plinth/runtime/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { ScriptedService } from "./scripted-service.fixture.ts";
import { type ConnectionState, WatchClient } from "./watch-client.ts";
import type { WatchUpdate } from "./watch-update.ts";

const type = { group: "demo", groupVersion: "v1", kind: "Artist" };

/** An update as text. */
function told(update: WatchUpdate): string {
	switch (update.kind) {
		case "present":
			return `present ${update.resource.id?.name}`;
		case "changes":
			return `${update.changes.map(({ resource }) => resource.id?.name)} at ${update.version}`;
		case "lost":
		case "ended":
			return `${update.kind}: ${update.error.message}`;
		case "snapshot-begins":
			return update.kind;
		default:
			return `${update.kind} at ${update.version}`;
	}
}

describe("a watch client", () => {
	let service: ScriptedService;
	let clock: FakeClock;
	let client: WatchClient;
	let states: ConnectionState["kind"][];

	beforeEach(() => {
		service = new ScriptedService();
		clock = new FakeClock();
		states = [];
		client = new WatchClient({
			client: service,
			clock,
			random: () => 1,
			maxWatches: 3,
			callOptions: () => ({ headers: { authorization: `Bearer ${service.streams.length}` } }),
			onConnection: ({ kind }) => states.push(kind),
		});
	});

	/** A watch, and all its updates as texts. */
	function watch(afterVersion = "") {
		const updates: string[] = [];
		const opened = client.watch({ type, afterVersion }, (update) => updates.push(told(update)));
		return { ...opened, updates, close: opened.close, watch: opened };
	}

	it("opens one stream for watches that are added together, and passes on what each receives", async () => {
		const [one, other] = [watch(), watch("7")];
		await setImmediate();
		const stream = service.last;
		expect(stream.positions).toEqual({ 1: "", 2: "7" });
		expect(states).toEqual(["connecting"]);
		stream.upsert("1", "a");
		stream.upsert("2", "x", "8");
		stream.endOfSnapshot("1", "9");
		stream.upsert("1", "b");
		stream.upsert("1", "c", "10");
		stream.bookmark("2", "10");
		await setImmediate();
		expect(one.updates).toEqual([
			"snapshot-begins",
			"present a",
			"snapshot-complete at 9",
			"b,c at 10",
		]);
		expect(other.updates).toEqual(["x at 8", "current at 10"]);
		expect(service.streams).toHaveLength(1);
		expect(states).toEqual(["connecting", "connected"]);
	});

	it("resumes each watch after its last complete commit when the stream is lost", async () => {
		const one = watch("7");
		const other = watch();
		await setImmediate();
		const first = service.last;
		first.upsert("1", "a", "8");
		first.upsert("1", "half of a commit");
		first.upsert("2", "present, of a snapshot without an end");
		first.fail(new ConnectError("reset", Code.Unavailable));
		await setImmediate();
		expect(client.state).toMatchObject({ kind: "lost", error: { rawMessage: "reset" } });
		clock.advance(500);
		await setImmediate();
		expect(service.last.positions).toEqual({ 1: "8", 2: "" });
		expect(service.last.options.headers).toEqual({ authorization: "Bearer 1" });
		service.last.upsert("1", "half of a commit");
		service.last.upsert("1", "the other half", "9");
		await setImmediate();
		expect(one.updates).toEqual(["a at 8", "half of a commit,the other half at 9"]);
		expect(other.updates.filter((each) => each === "snapshot-begins")).toHaveLength(2);
		expect(states).toEqual(["connecting", "connected", "lost", "connected"]);
	});

	it("loses no change of a commit that ends with an event of an unknown kind", async () => {
		const one = watch("7");
		await setImmediate();
		service.last.upsert("1", "a");
		service.last.unknown("1", "8");
		service.last.unknown("1", "9");
		service.last.end();
		await setImmediate();
		clock.advance(500);
		await setImmediate();
		expect(one.updates).toEqual(["a at 8", "current at 9"]);
		expect(service.last.positions).toEqual({ 1: "9" });
	});

	it("waits longer from loss to loss, until a message comes", async () => {
		watch("7");
		await setImmediate();
		for (const waitMs of [500, 1_000, 2_000]) {
			service.last.end();
			await setImmediate();
			const { length } = service.streams;
			clock.advance(waitMs - 1);
			await setImmediate();
			expect(service.streams).toHaveLength(length);
			clock.advance(1);
			await setImmediate();
			expect(service.streams).toHaveLength(length + 1);
		}
		service.last.bookmark("1", "8");
		service.last.end();
		await setImmediate();
		clock.advance(500);
		await setImmediate();
		expect(service.streams).toHaveLength(5);
	});

	it("ends a watch that is refused, and goes on with the others in the same stream", async () => {
		const [denied, good] = [watch(), watch("7")];
		await setImmediate();
		service.last.endWatch("1", Code.PermissionDenied, "ann may not list artists");
		service.last.upsert("2", "a", "8");
		await setImmediate();
		expect(denied.updates).toEqual([
			"snapshot-begins",
			"ended: [permission_denied] ann may not list artists",
		]);
		expect(good.updates).toEqual(["a at 8"]);
		expect([service.streams.length, service.last.isOpen]).toEqual([1, true]);
	});

	it("begins a watch again that can't resume, when the snapshots of the others are complete", async () => {
		const outdated = watch("7");
		watch();
		await setImmediate();
		service.last.endWatch("1", Code.OutOfRange, "too old");
		await setImmediate();
		clock.advance(500);
		await setImmediate();
		expect(service.streams).toHaveLength(1);
		service.last.endOfSnapshot("2", "20");
		await setImmediate();
		expect(service.last.positions).toEqual({ 1: "", 2: "20" });
		expect(outdated.updates).toEqual(["lost: [out_of_range] too old", "snapshot-begins"]);
	});

	it("repeats a watch that has ended alone where it was, after growing waits", async () => {
		watch("7");
		await setImmediate();
		for (const waitMs of [500, 1_000]) {
			service.last.endWatch("1", Code.ResourceExhausted, "too many streams");
			service.last.end();
			await setImmediate();
			const { length } = service.streams;
			clock.advance(waitMs - 1);
			await setImmediate();
			expect(service.streams).toHaveLength(length);
			clock.advance(1);
			await setImmediate();
			expect(service.last.positions).toEqual({ 1: "7" });
			expect(service.streams).toHaveLength(length + 1);
		}
	});

	it("says of a watch that has ended alone that it is lost, and of the connection once none is left", async () => {
		const [one, other] = [watch("7"), watch("7")];
		await setImmediate();
		service.last.endWatch("1", Code.ResourceExhausted, "too many streams");
		await setImmediate();
		expect(one.updates).toEqual(["lost: [resource_exhausted] too many streams"]);
		expect([other.updates, client.state.kind]).toEqual([[], "connected"]);
		service.last.endWatch("2", Code.ResourceExhausted, "too many streams");
		service.last.end();
		await setImmediate();
		expect(client.state.kind).toBe("lost");
		clock.advance(500);
		await setImmediate();
		expect(service.last.positions).toEqual({ 1: "7", 2: "7" });
		service.last.bookmark("1", "8");
		await setImmediate();
		expect(one.updates.at(-1)).toBe("current at 8");
		expect(client.state.kind).toBe("connected");
	});

	it("loses the connection when the last watch is closed that does not wait for its next attempt", async () => {
		const [one, other] = [watch("7"), watch("7")];
		await setImmediate();
		service.last.bookmark("2", "8");
		service.last.endWatch("1", Code.ResourceExhausted, "too many streams");
		await setImmediate();
		expect(client.state.kind).toBe("connected");
		other.close();
		await setImmediate();
		expect(service.streams).toHaveLength(1);
		expect(client.state).toMatchObject({ kind: "lost", error: { code: Code.ResourceExhausted } });
		clock.advance(500);
		await setImmediate();
		service.last.bookmark("1", "9");
		await setImmediate();
		expect(one.updates.at(-1)).toBe("current at 9");
		expect(states).toEqual(["connecting", "connected", "lost", "connected"]);
	});

	it("ends all watches when the caller is refused", async () => {
		const watches = [watch(), watch("7")];
		await setImmediate();
		service.last.fail(new ConnectError("the token has expired", Code.Unauthenticated));
		await setImmediate();
		for (const { updates } of watches) {
			expect(updates.at(-1)).toBe("ended: [unauthenticated] the token has expired");
		}
		expect(client.state.kind).toBe("idle");
		clock.advance(60_000);
		await setImmediate();
		expect(service.streams).toHaveLength(1);
	});

	it("takes a silent stream for lost", async () => {
		watch("7");
		await setImmediate();
		clock.advance(60_000);
		service.last.bookmark("1", "8");
		await setImmediate();
		clock.advance(74_999);
		expect(service.last.isOpen).toBe(true);
		clock.advance(1);
		expect(service.last.isOpen).toBe(false);
		expect(states).toEqual(["connecting", "connected", "lost"]);
		clock.advance(500);
		await setImmediate();
		expect(service.last.positions).toEqual({ 1: "8" });
	});

	it("does not wait any longer when it is told to retry, and waits shortly after further losses", async () => {
		watch("7");
		await setImmediate();
		for (const waitMs of [500, 1_000, 2_000]) {
			service.last.end();
			await setImmediate();
			clock.advance(waitMs);
			await setImmediate();
		}
		service.last.end();
		await setImmediate();
		expect([service.streams.length, client.state.kind]).toEqual([4, "lost"]);
		client.retryNow();
		await setImmediate();
		expect(service.last.positions).toEqual({ 1: "7" });
		expect(service.streams).toHaveLength(5);
		// The attempt that was due is not made as well.
		clock.advance(60_000);
		await setImmediate();
		expect(service.streams).toHaveLength(5);
		service.last.end();
		await setImmediate();
		clock.advance(500);
		await setImmediate();
		expect(service.streams).toHaveLength(6);
	});

	it("repeats a watch that has ended alone when it is told to, once the snapshots of the others are complete", async () => {
		watch("7");
		watch();
		await setImmediate();
		service.last.endWatch("1", Code.ResourceExhausted, "too many streams");
		await setImmediate();
		client.retryNow();
		await setImmediate();
		expect(service.streams).toHaveLength(1);
		service.last.endOfSnapshot("2", "20");
		await setImmediate();
		expect(service.last.positions).toEqual({ 1: "7", 2: "20" });
		clock.advance(60_000);
		await setImmediate();
		expect(service.streams).toHaveLength(2);
	});

	it("goes on with an open stream, and opens none without watches, when it is told to retry", async () => {
		client.retryNow();
		const one = watch("7");
		await setImmediate();
		client.retryNow();
		await setImmediate();
		expect([service.streams.length, service.last.isOpen]).toEqual([1, true]);
		one.close();
		client.retryNow();
		client.close();
		client.retryNow();
		await setImmediate();
		expect([service.streams.length, client.state.kind]).toEqual([1, "idle"]);
	});

	it("adds watches to the set at once, and drops messages of the earlier stream", async () => {
		const one = watch("7");
		await setImmediate();
		const first = service.last;
		first.upsert("1", "a", "8");
		await setImmediate();
		watch("3");
		await setImmediate();
		expect(first.isOpen).toBe(false);
		expect(service.last.positions).toEqual({ 1: "8", 2: "3" });
		expect(one.watch.version).toBe("8");
		expect(states).toEqual(["connecting", "connected"]);
	});

	it("opens a stream without a watch that was closed, when no snapshot is on its way", async () => {
		const [one, other, third] = [watch("7"), watch(), watch("3")];
		await setImmediate();
		const first = service.last;
		one.close();
		first.upsert("1", "late", "8");
		first.upsert("2", "a");
		await setImmediate();
		expect(first.isOpen).toBe(true);
		first.endOfSnapshot("2", "9");
		await setImmediate();
		expect([first.isOpen, service.last.positions]).toEqual([false, { 2: "9", 3: "3" }]);
		expect(one.updates).toEqual([]);
		other.close();
		third.close();
		expect([service.last.isOpen, client.state.kind]).toEqual([false, "idle"]);
	});

	it("may be changed from within an update", async () => {
		const updates: string[] = [];
		const one = client.watch({ type, afterVersion: "7" }, (update) => {
			updates.push(told(update));
			one.close();
			watch("9");
		});
		await setImmediate();
		service.last.upsert("1", "a", "8");
		service.last.upsert("1", "b", "9");
		await setImmediate();
		expect(updates).toEqual(["a at 8"]);
		expect(service.last.positions).toEqual({ 2: "9" });
	});

	it("refuses more watches than a set may have, and all when it is closed", () => {
		const [one] = [watch(), watch(), watch()];
		expect(() => watch()).toThrow(
			"[resource_exhausted] too many watches: at most 3 at once; close some of them, or use another client",
		);
		one?.close();
		watch();
		client.close();
		expect(() => watch()).toThrow("[failed_precondition] the watch client is closed");
	});
});
