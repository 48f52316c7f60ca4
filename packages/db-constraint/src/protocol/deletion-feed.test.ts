import { create } from "@bufbuild/protobuf";
import { EndpointSchema } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { silentLogger, systemRuntime } from "@plinth/runtime";
import { createMemoryBackend } from "@plinth/storage";
import { expect, it } from "vitest";
import { HeldDeletions } from "../shadow/held-deletions.ts";
import { ShadowIndex } from "../shadow/shadow-index.ts";
import { putRecord, ResourceShadow, recordId } from "../shadow/shadow-records.ts";
import { deletionFeed } from "./deletion-feed.ts";

it("a feed tells that other servers run, but not that one still does, or another one behind its address", async () => {
	const backend = createMemoryBackend({ runtime: systemRuntime });
	const index = new ShadowIndex(backend, systemRuntime, silentLogger);
	const end = new AbortController();
	const indexed = index.run(end.signal);
	const put = async (name: string, address: string, directAddress = "") => {
		const value = create(EndpointSchema, { address, directAddress });
		const stored = await backend.lookup(recordId(name));
		const record = putRecord(systemRuntime, name, stored, { case: "endpoint", value });
		await backend.commit([record]);
		const query = {
			type: ResourceShadow.type,
			tenancy: { partition: "", namespace: "" },
			namePrefix: "-",
		};
		const { familyVersion } = await backend.snapshot(query, { consistency: "strong" });
		await index.reached(familyVersion);
	};
	await put("endpoint-a", "http://a");
	const feed = deletionFeed({ deletions: new HeldDeletions(index), index }, "uid", end.signal);
	expect(await feed.next()).toEqual({ done: false, value: { kind: "end-of-snapshot" } });

	await put("endpoint-b", "http://b");
	expect(await feed.next()).toEqual({ done: false, value: { kind: "servers" } });
	const next = feed.next();
	await put("endpoint-b", "http://b");
	await put("endpoint-c", "http://b", "http://c");
	end.abort();
	expect(await next).toEqual({ done: true });
	await indexed;
});

it("a feed tells which servers have started since it was asked for", async () => {
	const at = (address: string) => ({ announced: address, direct: address });
	const servers = new Map([["endpoint-a", at("http://a")]]);
	const index = { endpoints: servers, onEndpoints: () => () => {} };
	const deletions = new HeldDeletions({ onChange: () => () => {} });
	const end = new AbortController();
	const feed = deletionFeed({ deletions, index }, "uid", end.signal);
	servers.set("endpoint-b", at("http://b"));
	expect(await feed.next()).toEqual({ done: false, value: { kind: "end-of-snapshot" } });
	expect(await feed.next()).toEqual({ done: false, value: { kind: "servers" } });
	end.abort();
	expect(await feed.next()).toEqual({ done: true });
});
