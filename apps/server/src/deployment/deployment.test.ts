import { once } from "node:events";
import { constants } from "node:http2";
import { create, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { Deployment } from "@plinth/db-constraint";
import { ListRequestSchema, ResourceService, WatchListRequestSchema } from "@plinth/proto";
import { SchemaMixinService } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import { idOf, Namespace, tenancyOf, typeOf } from "@plinth/resource";
import { systemRuntime } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import { freePort } from "@plinth/test-support/ports";
import { describe, expect, it, vi } from "vitest";
import { musicModule } from "../../testdata/music.ts";
import { Health, HealthCheckResponse_ServingStatus } from "../gen/grpc/health/v1/health_pb.ts";
import { enveloped, metric, openSession, post } from "../raw-calls.fixture.ts";
import { createServer } from "../server.ts";
import { credential, credentialFile, startDeployment } from "./started-deployment.fixture.ts";

function transportWith(address: string, token: string) {
	return createConnectTransport({
		baseUrl: address,
		httpVersion: "2",
		interceptors: [
			(next) => (request) => {
				request.header.set("authorization", `Bearer ${token}`);
				return next(request);
			},
		],
	});
}

describe("the internal listener", () => {
	it("serves callers with the credential, and meta types only", async () => {
		const { server, internal } = await startDeployment("meta", credentialFile());
		const request = { type: typeOf(Deployment.type), tenancy: tenancyOf() };
		for (const token of ["", "another-credential-of-nobody"]) {
			const transport = transportWith(internal, token);
			const resources = createClient(ResourceService, transport);
			const mixin = createClient(SchemaMixinService, transport);
			for (const call of [resources.list(request), mixin.checkReferences({})]) {
				const refused = await call.catch(ConnectError.from);
				expect(refused).toMatchObject({ code: Code.Unauthenticated });
			}
		}
		for (const token of [credential, "the-credential-that-was-before"]) {
			const resources = createClient(ResourceService, transportWith(internal, token));
			const { resources: found } = await resources.list(request);
			expect(found.map(({ id }) => id?.name)).toEqual(["meta-r1"]);
			const other = await resources
				.list({ type: typeOf(Namespace.type), tenancy: tenancyOf({ partition: "*" }) })
				.catch(ConnectError.from);
			expect(other).toMatchObject({ message: expect.stringContaining("not registered") });
		}
		const outside = await fetch(`${server.address}/plinth.schema.v1.SchemaMixinService/Check`);
		expect(outside.status).toBe(404);
	});

	it("does not serve the meta types at other deployments", async () => {
		const file = credentialFile();
		const meta = await startDeployment("meta", file);
		const music = await startDeployment("music", file, {
			metaAddresses: [meta.internal],
			modules: [musicModule()],
		});
		const transport = transportWith(music.internal, credential);
		const refused = await createClient(ResourceService, transport)
			.list({ type: typeOf(Deployment.type), tenancy: tenancyOf() })
			.catch(ConnectError.from);
		expect(refused).toMatchObject({ code: Code.Unimplemented });
	});
});

describe("a stream of another deployment", () => {
	it("may stall, and continues when its client reads again; other calls are reset", async () => {
		const clock = new FakeClock({ nowMs: Date.now() });
		const { server, internal } = await startDeployment("meta", credentialFile(), {
			runtime: { ...systemRuntime, clock },
		});
		const session = openSession(internal, { initialWindowSize: 0 });
		const headers = { authorization: `Bearer ${credential}` };
		const deployments = { type: typeOf(Deployment.type), tenancy: tenancyOf() };
		const call = (method: string, request: Uint8Array) =>
			post(
				session,
				`/plinth.resource.v1.ResourceService/${method}`,
				enveloped(Buffer.from(request).toString("latin1")),
				{ contentType: "application/grpc", headers },
			);
		const { stream } = call(
			"WatchList",
			toBinary(WatchListRequestSchema, create(WatchListRequestSchema, deployments)),
		);
		await once(stream, "response");
		const list = call("List", toBinary(ListRequestSchema, create(ListRequestSchema, deployments)));
		await once(list.stream, "response");
		clock.advance(32_000);
		expect((await list.ended).rstCode).toBe(constants.NGHTTP2_ENHANCE_YOUR_CALM);
		expect(await metric(server.address, "plinth_calls_cut_total")).toBe(1);
		session.settings({ initialWindowSize: 65_535 });
		const [received] = await once(stream, "data");
		expect(received).toContain("meta-r1");
	});
});

describe("a deployment that is deleted", () => {
	it("stops with the reason", async () => {
		const file = credentialFile();
		const meta = await startDeployment("meta", file);
		const { server } = await startDeployment("music", file, {
			metaAddresses: [meta.internal],
			modules: [musicModule()],
		});
		await meta.server.client.delete({ id: idOf(Deployment, "music-r1") });
		await expect(server.ended).rejects.toThrow("deployment music-r1 was deleted");
	});
});

describe("a server that waits for the meta service", () => {
	it("reports its health, refuses calls, and can be stopped", async () => {
		const listen = { host: "127.0.0.1", port: await freePort() };
		const address = `http://127.0.0.1:${listen.port}`;
		const server = createServer({
			storage: { kind: "memory" },
			listen,
			stopLimitMs: 600_000,
			deployment: {
				service: "music",
				region: "r1",
				address: "http://127.0.0.1:2",
				metaAddresses: ["http://127.0.0.1:1"],
				internalListen: { host: "127.0.0.1", port: 0 },
				credentialFile: credentialFile(),
			},
		});
		const started = server.start();
		const refused = expect(started).rejects.toThrow("stopped while it was starting");
		await vi.waitFor(async () => expect((await fetch(`${address}/healthz`)).status).toBe(200), {
			timeout: 300_000,
		});
		await vi.waitFor(
			async () => {
				const ready = await fetch(`${address}/readyz`);
				expect(ready.status).toBe(503);
				expect((await ready.text()).trimEnd()).toBe(
					[
						"not ready",
						"the server is starting or stopping",
						"references: not discovered yet; the log says why it can't register the deployment",
					].join("\n"),
				);
			},
			{ timeout: 300_000 },
		);
		const transport = createConnectTransport({ baseUrl: address, httpVersion: "2" });
		const request = { type: typeOf(Namespace.type), tenancy: tenancyOf() };
		await expect(createClient(ResourceService, transport).list(request)).rejects.toMatchObject({
			code: Code.Unavailable,
			rawMessage: "the server is starting or stopping: try again",
		});
		const health = createClient(Health, transport).watch({})[Symbol.asyncIterator]();
		expect((await health.next()).value?.status).toBe(HealthCheckResponse_ServingStatus.NOT_SERVING);
		const end = health.next().catch(ConnectError.from);
		await server.stop();
		await refused;
		expect(await end).toMatchObject({ code: Code.Unavailable });
	});
});
