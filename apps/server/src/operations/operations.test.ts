import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import {
	InMemorySpanExporter,
	SimpleSpanProcessor,
	TracerProvider,
} from "@opentelemetry/sdk-trace";
import { ResourceService } from "@plinth/proto";
import { idOf, typeOf } from "@plinth/resource";
import { tokenHash } from "@plinth/resource-service";
import { describe, expect, it } from "vitest";
import { JukeboxService } from "../../testdata/gen/music/v1/music_pb.ts";
import { Artist, artist, musicModule } from "../../testdata/music.ts";
import { filesOf } from "../certificates.fixture.ts";
import { startServer } from "../started-server.fixture.ts";

describe("the audit", () => {
	it("has a line for each write, with caller, target and result, and none for reads", async () => {
		const audited: unknown[] = [];
		const info = (fields: Readonly<Record<string, unknown>>) => {
			if ("audit" in fields) {
				audited.push(fields.audit);
			}
		};
		const entry = (name: string, policy: string) =>
			`  - { subject: ${name}, sha256: ${tokenHash(name)}, policies: [${policy}] }\n`;
		const { access } = filesOf({
			access: `policies: { all: [{ operations: ["*"] }], none: [] }\ntokens:\n${entry("alice", "all")}${entry("bob", "none")}`,
		});
		const server = await startServer({
			modules: [musicModule()],
			access: { file: access },
			logger: { debug: () => {}, info, warn: () => {}, error: () => {} },
		});
		const transport = createGrpcTransport({ baseUrl: server.address });
		const client = createClient(ResourceService, transport);
		const as = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
		const resource = artist("miles", "of no concern to the audit");
		const id = idOf(Artist, "miles");
		await client.write({ resource }, as("alice"));
		await client.mutateAndValidate({ resource }, as("alice"));
		await client.read({ id }, as("alice"));
		await client.list({ type: typeOf(Artist.type), tenancy: {} }, as("alice"));
		await client.write({ resource }, as("bob")).catch(() => {});
		await client.delete({ id }, as("stranger")).catch(() => {});
		await client.delete({ id }, as("alice"));
		await createClient(JukeboxService, transport).play({ song: "x" }, as("alice"));

		const service = "plinth.resource.v1.ResourceService";
		const tenancy = { partition: "default", namespace: "default" };
		const what = { type: "music.v1.Artist", ...tenancy, name: "miles" };
		expect(audited).toEqual([
			{ subject: "alice", method: `${service}/Write`, ...what, result: "ok" },
			{ subject: "bob", method: `${service}/Write`, ...what, result: "permission_denied" },
			{ subject: undefined, method: `${service}/Delete`, result: "unauthenticated" },
			{ subject: "alice", method: `${service}/Delete`, ...what, result: "ok" },
			{ subject: "alice", method: "music.v1.JukeboxService/Play", result: "ok" },
		]);
	});
});

describe("traces", () => {
	it("have a span per call below the caller's, one per commit below that, and no data", async () => {
		const exporter = new InMemorySpanExporter();
		const tracerProvider = new TracerProvider({
			spanProcessors: [new SimpleSpanProcessor({ exporter })],
		});
		const server = await startServer({ modules: [musicModule()], tracerProvider });
		const transport = createGrpcTransport({ baseUrl: server.address });
		const client = createClient(ResourceService, transport);
		exporter.reset();
		const traceId = "0af7651916cd43dd8448eb211c80319c";
		const headers = { traceparent: `00-${traceId}-b7ad6b7169203331-01` };
		await client.write({ resource: artist("miles", "a secret genre") }, { headers });
		await client.read({ id: idOf(Artist, "nobody") }, { headers }).catch(() => {});

		const spans = exporter.getFinishedSpans();
		const named = (name: string) => spans.find((span) => span.name === name);
		const write = named("plinth.resource.v1.ResourceService/Write");
		const read = named("plinth.resource.v1.ResourceService/Read");
		const commit = named("commit");
		expect(write?.spanContext().traceId).toBe(traceId);
		expect(write?.parentSpanContext?.spanId).toBe("b7ad6b7169203331");
		expect(commit?.parentSpanContext?.spanId).toBe(write?.spanContext().spanId);
		expect(read?.status).toMatchObject({ code: 2, message: "not_found" });
		expect(JSON.stringify(spans.map(({ attributes, events }) => [attributes, events]))).not.toMatch(
			/secret genre|miles|nobody/,
		);
	});
});
