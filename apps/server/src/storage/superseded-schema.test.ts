import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
// Fixtures and test data, which packages do not export.
import { Thing, ThingSchema } from "@plinth/db-constraint/testing";
import { idOf, Namespace, resourceOf } from "@plinth/resource";
import type { Logger } from "@plinth/runtime";
import { EtcdProcess } from "@plinth/storage-etcd/testing";
import { describeWith } from "@plinth/test-support";
import { expect, it, onTestFinished } from "vitest";
import { musicModule } from "../../testdata/music.ts";
import { defineModule, type Module } from "../module/index.ts";
import { startServer } from "../started-server.fixture.ts";

/** Has a type with references: with it and without it, a server has different schemas. */
const thingsModule = defineModule({ name: "things", types: [Thing] });

/** A server that shares the etcd, and its log. */
async function startOn(etcd: EtcdProcess, modules: readonly Module[]) {
	const lines: string[] = [];
	let changed = Promise.withResolvers<void>();
	const note = (fields: Readonly<Record<string, unknown>>, message: string) => {
		lines.push(`${message} ${JSON.stringify(fields)}`);
		changed.resolve();
		changed = Promise.withResolvers();
	};
	const logger: Logger = { debug: note, info: note, warn: note, error: note };
	const server = await startServer({
		storage: { kind: "etcd", endpoints: [etcd.url] },
		modules,
		logger,
	});
	return {
		server,
		/** Resolves with the next line from now on that matches. */
		async logs(pattern: RegExp): Promise<string> {
			for (let from = lines.length; ; await changed.promise) {
				for (; from < lines.length; from++) {
					const line = lines[from] ?? "";
					if (pattern.test(line)) {
						return line;
					}
				}
			}
		},
		lines,
		readiness: async () => {
			const response = await fetch(`${server.address}/readyz`);
			return { status: response.status, text: await response.text() };
		},
	};
}

const holdsLease = /^acquired the lease of singleton controllers/;
const lostLease = /^lost the lease of singleton controllers/;
const notReady = /^server not ready/;
const readyAgain = /^server ready again/;

const thing = (name: string) =>
	resourceOf(Thing, { id: idOf(Thing, name), data: create(ThingSchema) });

describeWith("etcd")("a server whose schema of references is superseded", () => {
	it("is not ready and gives up its leases until its own schema is active again", async () => {
		const etcd = await EtcdProcess.start();
		onTestFinished(() => etcd.dispose());
		const old = await startOn(etcd, [thingsModule]);
		await expect
			.poll(() => old.lines.some((line) => holdsLease.test(line)), { timeout: 300_000 })
			.toBe(true);
		await old.server.client.write({ resource: thing("a") });

		const blocked = old.logs(notReady);
		const lost = old.logs(lostLease);
		const startedMs = performance.now();
		const next = await startOn(etcd, [musicModule()]);
		const line = await blocked;
		expect(line).toContain('"part":"references"');
		expect(line).toContain("has activated the schema of references");
		await lost;
		await expect
			.poll(() => next.lines.some((each) => holdsLease.test(each)), { timeout: 300_000 })
			.toBe(true);
		console.log(
			`the singletons moved within ${(performance.now() - startedMs).toFixed(0)} ms of the start of the other server`,
		);
		const refused = await old.readiness();
		expect(refused.status).toBe(503);
		expect(refused.text).toMatch(/references: another server has activated the schema/);
		expect((await next.readiness()).status).toBe(200);
		const failure = await old.server.client
			.write({ resource: thing("b") })
			.catch(ConnectError.from);
		expect(failure).toMatchObject({ code: Code.Unavailable });

		// The deletion of tenancies is a singleton: it runs on the other server now.
		const namespace = idOf(Namespace, "left");
		await next.server.client.write({ resource: resourceOf(Namespace, { id: namespace }) });
		await next.server.client.delete({ id: namespace });
		const isGone = async () =>
			next.server.client.read({ id: namespace }).then(
				() => false,
				(error: unknown) => ConnectError.from(error).code === Code.NotFound,
			);
		await expect.poll(isGone, { timeout: 300_000 }).toBe(true);

		const ready = old.logs(readyAgain);
		const superseded = next.logs(notReady);
		const same = await startOn(etcd, [thingsModule]);
		await ready;
		await superseded;
		expect((await old.readiness()).status).toBe(200);
		expect((await next.readiness()).status).toBe(503);
		await old.server.client.write({ resource: thing("b") });
		const holds = old.logs(holdsLease);
		await same.server.stop();
		// Either of them got it; now there is only one that may.
		if (
			!old.lines
				.slice(old.lines.findIndex((each) => readyAgain.test(each)))
				.some((each) => holdsLease.test(each))
		) {
			await holds;
		}
	});
});
