import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { fromBinary } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { ResourceService } from "@plinth/proto";
import { describe, expect, it, onTestFinished } from "vitest";
import { ExportedTracesSchema, type ResourceSpans } from "../../testdata/gen/otlp/v1/otlp_pb.ts";
import { artist } from "../../testdata/music.ts";
import { musicModuleFile, ServerProcess } from "../server-process.fixture.ts";

/** What an OpenTelemetry collector would get. */
async function startCollector() {
	const received: ResourceSpans[] = [];
	const requests: string[] = [];
	const server = createServer(async (request, response) => {
		requests.push(`${request.method} ${request.url} ${request.headers["content-type"]}`);
		received.push(...fromBinary(ExportedTracesSchema, await buffer(request)).resourceSpans);
		response.writeHead(200, { "content-type": "application/x-protobuf" }).end();
	});
	server.listen(0, "127.0.0.1");
	await once(server, "listening");
	onTestFinished(() => {
		server.closeAllConnections();
		server.close();
	});
	const { port } = server.address() as AddressInfo;
	return { endpoint: `http://127.0.0.1:${port}`, received, requests };
}

function startTracing(endpoint: string): ServerProcess {
	return new ServerProcess(
		...["--listen", "127.0.0.1:0", "--storage", "memory", "--module", musicModuleFile],
		...["--otlp-endpoint", endpoint],
	);
}

describe("--otlp-endpoint", () => {
	it("sends a collector the spans of calls and their commits, the last ones when it stops", async () => {
		const collector = await startCollector();
		const server = startTracing(collector.endpoint);
		const transport = createGrpcTransport({ baseUrl: await server.listening() });
		const traceId = "0af7651916cd43dd8448eb211c80319c";
		const headers = { traceparent: `00-${traceId}-b7ad6b7169203331-01` };
		await createClient(ResourceService, transport).write(
			{ resource: artist("miles") },
			{ headers },
		);
		server.kill("SIGTERM");
		expect(await server.ended).toMatchObject({ code: 0 });

		expect(new Set(collector.requests)).toEqual(
			new Set(["POST /v1/traces application/x-protobuf"]),
		);
		for (const { resource } of collector.received) {
			expect(resource?.attributes).toContainEqual(
				expect.objectContaining({
					key: "service.name",
					value: expect.objectContaining({ stringValue: "plinth-server" }),
				}),
			);
		}
		const hex = (bytes: Uint8Array | undefined) => Buffer.from(bytes ?? []).toString("hex");
		const spans = collector.received
			.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans))
			.filter(({ traceId: id }) => hex(id) === traceId);
		const write = spans.find(({ name }) => name === "plinth.resource.v1.ResourceService/Write");
		const commit = spans.find(({ name }) => name === "commit");
		expect(hex(write?.parentSpanId)).toBe("b7ad6b7169203331");
		expect(hex(commit?.parentSpanId)).toBe(hex(write?.spanId));
	});

	it("does not prevent the server from serving and stopping if there is no collector", async () => {
		// Nobody listens on the port of discarded messages.
		const server = startTracing("http://127.0.0.1:9");
		const transport = createGrpcTransport({ baseUrl: await server.listening() });
		await createClient(ResourceService, transport).write({ resource: artist("miles") });
		server.kill("SIGTERM");
		const { code, stderr } = await server.ended;
		expect(code).toBe(0);
		expect(stderr).toContain("traces are lost");
	});
});
