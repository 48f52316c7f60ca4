import { once } from "node:events";
import { createServer, type ServerHttp2Session, type Settings } from "node:http2";
import type { AddressInfo } from "node:net";
import type { Session } from "@plinth/rpc-client/session";
import { systemRuntime } from "@plinth/runtime";
import { expect, it, onTestFinished } from "vitest";
import { ServerConnections } from "./server-connections.ts";
import type { Place } from "./server-network.ts";

/** A server with these settings, and at most three connections to it. */
async function start(settings: Settings) {
	const sessions: ServerHttp2Session[] = [];
	const server = createServer({ settings });
	server.on("session", (session) => {
		sessions.push(session.on("error", () => {}));
	});
	server.listen(0, "127.0.0.1");
	await once(server, "listening");
	const authority = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
	const connections = new ServerConnections({
		authority,
		tls: {},
		runtime: systemRuntime,
		onGoaway: () => {},
		maxConnections: 3,
	});
	onTestFinished(() => {
		connections.close();
		server.close();
	});
	return { authority, connections, sessions };
}

/** Waits until the session of a place knows how many calls the server accepts. */
async function settled(place: Place, limit: number): Promise<Session> {
	const session = await place.session();
	await expect.poll(() => session.maxConcurrentCalls).toBe(limit);
	return session;
}

it("opens no further connection to a server that accepts no calls, until it accepts some", async () => {
	const { authority, connections, sessions } = await start({ maxConcurrentStreams: 0 });
	const first = connections.take();
	const session = await settled(first, 0);
	for (let count = 0; count < 50; count += 1) {
		for (const purpose of ["call", "check"] as const) {
			const refused = connections.take(purpose);
			await expect(refused.session()).rejects.toThrow(
				`[resource_exhausted] ${authority} accepts no calls: its limit of concurrent streams is 0`,
			);
			refused.leave();
		}
	}
	expect(sessions).toHaveLength(1);
	sessions[0]?.settings({ maxConcurrentStreams: 2 });
	await settled(first, 2);
	expect(await connections.take().session()).toBe(session);
});

it("refuses calls that find no room on any connection, and checks a server that is full", async () => {
	const { authority, connections, sessions } = await start({ maxConcurrentStreams: 2 });
	const places: Place[] = [];
	for (let count = 0; count < 6; count += 1) {
		const place = connections.take();
		await settled(place, 2);
		places.push(place);
	}
	expect(sessions).toHaveLength(3);
	for (let count = 0; count < 50; count += 1) {
		const refused = connections.take();
		await expect(refused.session()).rejects.toThrow(
			`[resource_exhausted] ${authority} accepts no more calls: its limit of concurrent streams is 2, and the agent opens at most 3 connections to it`,
		);
		refused.leave();
		const check = connections.take("check");
		await settled(check, 2);
		check.leave();
	}
	expect(sessions).toHaveLength(4);
	const session = await places[3]?.session();
	places[3]?.leave();
	expect(await connections.take().session()).toBe(session);
	await expect(connections.take().session()).rejects.toThrow("accepts no more calls");
});

it("puts no more calls on a connection than servers usually accept, before this one has said so", async () => {
	const { connections } = await start({});
	const sessions = Array.from({ length: 101 }, () => connections.take().session());
	const [first, ...others] = await Promise.all(sessions);
	expect(others.filter((session) => session !== first)).toHaveLength(1);
});

it("puts no more calls on a new connection than the server accepts on the others", async () => {
	const { connections } = await start({ maxConcurrentStreams: 2 });
	const first = await settled(connections.take(), 2);
	expect(await connections.take().session()).toBe(first);
	const second = await connections.take().session();
	// It is connected, and its SETTINGS have not arrived. No more than two calls share the third one, which is not connected.
	const sessions = [1, 2, 3].map(() => connections.take().session());
	expect(sessions[0]).toBe(second);
	const [third, fourth] = await Promise.all(sessions.slice(1));
	expect(fourth).toBe(third);
	expect(third).not.toBe(second);
});

it.each([2, 0])(
	"remembers that a server accepts %i calls, and tries one if that is none",
	async (limit) => {
		const { connections, sessions } = await start({ maxConcurrentStreams: limit });
		const place = connections.take();
		const session = await settled(place, limit);
		// As checks do all the time.
		const check = connections.take("check");
		await Promise.resolve(check.session()).catch(() => {});
		check.leave();
		sessions[0]?.destroy();
		await expect.poll(() => session.isReady, { timeout: 300_000 }).toBe(false);
		place.leave();
		const together = Math.max(1, limit);
		const taken = Array.from({ length: together + 1 }, () => connections.take().session());
		const [first, ...others] = await Promise.all(taken);
		expect(first).not.toBe(session);
		expect(others.filter((other) => other === first)).toHaveLength(together - 1);
	},
);
