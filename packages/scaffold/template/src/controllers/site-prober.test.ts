import assert from "node:assert/strict";
import { test } from "node:test";
import { startTestServer, type TestServer } from "@plinth/plinth/testing";
import { Condition_State } from "@plinth/plinth/types";
import type { RequestUrl } from "../request-url.ts";
import { Site } from "../types/site.ts";
import { createSiteProber } from "./site-prober.ts";

const url = "https://shop.example/";

/** A server in memory, with a clock that only the test moves, and a network in which some URLs are down. */
async function startServer(
	down: ReadonlySet<string>,
	requested: string[] = [],
): Promise<TestServer> {
	const requestUrl: RequestUrl = async (url) => {
		requested.push(url);
		return down.has(url)
			? { ok: false, reason: "RequestFailed", message: "down" }
			: { ok: true, reason: "Responded", message: "up" };
	};
	return await startTestServer({ types: [Site], controllers: [createSiteProber(requestUrl)] });
}

/** Whether the condition of the site `shop` is true. */
async function isReachable(server: TestServer): Promise<boolean> {
	const site = await server.read(Site, "shop");
	const condition = site?.resource.status["site-prober"]?.conditions[0];
	assert.equal(condition?.type, "Reachable");
	return condition.state === Condition_State.TRUE;
}

test("a site is requested every minute", async () => {
	const requested: string[] = [];
	await using server = await startServer(new Set(), requested);
	await server.write(Site, "shop", { url });
	await server.settle();
	assert.deepEqual(requested, [url]);

	await server.advance(59_000);
	assert.deepEqual(requested, [url]);
	await server.advance(1_000);
	assert.deepEqual(requested, [url, url]);
});

test("its condition follows", async () => {
	const down = new Set<string>();
	await using server = await startServer(down);
	await server.write(Site, "shop", { url });
	await server.settle();
	assert.equal(await isReachable(server), true);

	down.add(url);
	await server.advance(60_000);
	assert.equal(await isReachable(server), false);

	down.delete(url);
	await server.advance(60_000);
	assert.equal(await isReachable(server), true);
});

test("a site needs the URL of a web site", async () => {
	await using server = await startServer(new Set());
	await assert.rejects(server.write(Site, "shop", { url: "shop" }), /url/);
	await assert.rejects(server.write(Site, "shop", { url: "ftp://shop.example/" }), /url/);
});
