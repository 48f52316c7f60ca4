import { create } from "@bufbuild/protobuf";
import { StreamResponseSchema } from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import { expect, it } from "vitest";
import { Inbox } from "./inbox.ts";

it("an inbox is full of messages that are large by other parts than their data", async () => {
	const inbox = new Inbox();
	const value = { resource: { metadata: { large: "x".repeat(5 * 1024 * 1024) } }, version: "1" };
	const message = create(StreamResponseSchema, { message: { case: "upsert", value } });
	let isRead = false;
	const added = inbox.add(message).then(() => {
		isRead = true;
	});
	await Promise.resolve();
	await Promise.resolve();
	await Promise.resolve();
	expect(isRead).toBe(false);
	expect(await inbox.take()).toEqual([message]);
	await added;
});
