import { Code } from "@connectrpc/connect";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import { expect, it } from "vitest";
import { KeptBytes } from "../call/kept-bytes.ts";
import { defaultForwardingLimits } from "../limits.ts";
import { FollowedWatch } from "./followed-watch.ts";
import type { WatchMethod } from "./scanned-message.ts";

const json = (value: unknown) => encodeEnvelope(0, Buffer.from(JSON.stringify(value)));

/** Follows a watch with this request. */
function follow(method: WatchMethod, request: unknown): FollowedWatch {
	const watch = FollowedWatch.of(method, "application/connect+json", json(request), {
		limits: defaultForwardingLimits,
		...{ memory: new KeptBytes(1_000_000), watchRequests: new KeptBytes(1_000_000) },
	});
	if (watch === undefined) {
		throw new Error("the request can't be read");
	}
	return watch;
}

it("tells a resource from a copy of another region with the same name, version and revision", () => {
	const watch = follow("WatchList", { afterVersion: "7", region: "*" });
	const upsert = (id: object) => json({ upsert: { resource: { id, version: "8" } } });
	const [local, copy] = [upsert({ name: "x" }), upsert({ name: "x", region: "eu" })];
	expect(watch.receive(local).bytes).toEqual(local);
	expect(watch.receive(copy).bytes).toEqual(copy);
	watch.moveOn();
	expect(watch.receive(local).bytes).toBeUndefined();
	expect(watch.receive(copy).bytes).toBeUndefined();
});

it("shows what it passes on, and no longer what it has passed on of a storage that was replaced", () => {
	const watches = [
		{ id: "a", request: { afterVersion: "1001" } },
		{ id: "b", request: { afterVersion: "5" } },
	];
	const set = follow("WatchSet", { watches });
	const change = (watchId: string, version: string) =>
		json({ watchId, event: { upsert: { resource: { id: { name: "x" }, version } }, version } });
	set.receive(change("a", "1002"));
	expect(set.shown).toBe(1_002);
	set.moveOn();
	set.receive(json({ watchId: "a", end: { code: Code.OutOfRange, message: "not reached" } }));
	set.receive(change("b", "51"));
	expect(set.shown).toBe(51);
});
