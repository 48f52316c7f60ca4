import {
	create,
	createFileRegistry,
	type DescMessage,
	fromBinary,
	type MessageInitShape,
	type MessageShape,
	toBinary,
} from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import {
	credentials,
	Client as GrpcClient,
	status as grpcStatus,
	type ServiceError,
} from "@grpc/grpc-js";
import {
	ReadRequestSchema,
	ReadResponseSchema,
	WatchEventSchema,
	WatchListRequestSchema,
	WriteRequestSchema,
	WriteResponseSchema,
} from "@plinth/proto";
import { idOf, typeOf } from "@plinth/resource";
import { describeWith } from "@plinth/test-support";
import {
	ClientError,
	createChannel,
	createClient as createWebClient,
	NodeHttpTransport,
} from "nice-grpc-web";
import { describe, expect, it, onTestFinished } from "vitest";
import { Artist, artist, musicModule } from "../testdata/music.ts";
import { curl } from "./curl.fixture.ts";
import {
	HealthCheckRequestSchema,
	HealthCheckResponseSchema,
} from "./gen/grpc/health/v1/health_pb.ts";
import {
	type ServerReflectionRequest,
	ServerReflectionRequestSchema,
	ServerReflectionResponseSchema,
} from "./gen/grpc/reflection/v1/reflection_pb.ts";
import { type MetricFamily, parsePrometheus } from "./parse-prometheus.fixture.ts";
import { startServer } from "./started-server.fixture.ts";

const service = "/plinth.resource.v1.ResourceService";

/** What an independent client needs to know of a message: its bytes. */
function codec<Desc extends DescMessage>(schema: Desc) {
	return {
		serialize: (message: MessageInitShape<Desc>) =>
			Buffer.from(toBinary(schema, create(schema, message))),
		deserialize: (bytes: Uint8Array): MessageShape<Desc> => fromBinary(schema, bytes),
	};
}

describe("@grpc/grpc-js", () => {
	async function connected() {
		const server = await startServer({ modules: [musicModule()] });
		const client = new GrpcClient(new URL(server.address).host, credentials.createInsecure());
		onTestFinished(() => client.close());
		const unary = <I extends DescMessage, O extends DescMessage>(
			path: string,
			input: I,
			output: O,
			message: MessageInitShape<I>,
		) =>
			new Promise<MessageShape<O>>((resolve, reject) => {
				client.makeUnaryRequest<MessageInitShape<I>, MessageShape<O>>(
					path,
					codec(input).serialize,
					(bytes) => codec(output).deserialize(bytes),
					message,
					(error: ServiceError | null, response?: MessageShape<O>) =>
						response === undefined ? reject(error) : resolve(response),
				);
			});
		return { server, client, unary };
	}

	it.each(["v1", "v1alpha"])(
		"finds services, methods and resource types by reflection %s",
		async (version) => {
			const { client } = await connected();
			const stream = client.makeBidiStreamRequest(
				`/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`,
				codec(ServerReflectionRequestSchema).serialize,
				codec(ServerReflectionResponseSchema).deserialize,
			);
			const responses = stream[Symbol.asyncIterator]();
			const ask = async (messageRequest: ServerReflectionRequest["messageRequest"]) => {
				stream.write({ messageRequest });
				const { value } = await responses.next();
				return value.messageResponse;
			};
			const listed = await ask({ case: "listServices", value: "" });
			expect(listed.value.service.map(({ name }: { name: string }) => name)).toEqual(
				expect.arrayContaining([
					"grpc.health.v1.Health",
					`grpc.reflection.${version}.ServerReflection`,
					"music.v1.JukeboxService",
					"plinth.resource.v1.ResourceService",
				]),
			);
			for (const symbol of [
				"plinth.resource.v1.ResourceService",
				"plinth.resource.v1.ResourceService.WatchList",
				"plinth.resource.v1.WatchEvent.Upsert",
				"music.v1.Artist",
			]) {
				const found = await ask({ case: "fileContainingSymbol", value: symbol });
				expect(found.case).toBe("fileDescriptorResponse");
				// A client without any proto makes a registry of what it gets, dependencies included.
				const file = found.value.fileDescriptorProto.map((bytes: Uint8Array) =>
					fromBinary(FileDescriptorProtoSchema, bytes),
				);
				const registry = createFileRegistry(
					create(FileDescriptorSetSchema, { file: file.reverse() }),
				);
				const declared =
					registry.get(symbol) ?? registry.get(symbol.slice(0, symbol.lastIndexOf(".")));
				expect(declared).toBeDefined();
			}
			const missing = await ask({ case: "fileContainingSymbol", value: "no.such.Thing" });
			expect(missing.value).toMatchObject({ errorCode: 5 });
			const byName = await ask({
				case: "fileByFilename",
				value: "plinth/resource/v1/resource_service.proto",
			});
			expect(byName.case).toBe("fileDescriptorResponse");
			stream.end();
		},
	);

	it("writes, reads and watches, and learns the codes of errors", async () => {
		const { client, unary } = await connected();
		await unary(`${service}/Write`, WriteRequestSchema, WriteResponseSchema, {
			resource: artist("miles"),
		});
		const { resource } = await unary(`${service}/Read`, ReadRequestSchema, ReadResponseSchema, {
			id: idOf(Artist, "miles"),
		});
		expect(resource?.id?.name).toBe("miles");
		const missing = unary(`${service}/Read`, ReadRequestSchema, ReadResponseSchema, {
			id: idOf(Artist, "nobody"),
		});
		await expect(missing).rejects.toMatchObject({
			code: grpcStatus.NOT_FOUND,
			details: "resource not found",
		});
		const watch = client.makeServerStreamRequest(
			`${service}/WatchList`,
			codec(WatchListRequestSchema).serialize,
			codec(WatchEventSchema).deserialize,
			{ type: typeOf(Artist.type) },
		);
		const seen: unknown[] = [];
		for await (const { event } of watch) {
			seen.push(event.case);
			if (event.case === "endOfSnapshot") {
				break;
			}
		}
		expect(seen).toEqual(["upsert", "endOfSnapshot"]);
	});

	it("learns the health, and that it changes when the server stops", async () => {
		const { client, server, unary } = await connected();
		const check = (name: string) =>
			unary("/grpc.health.v1.Health/Check", HealthCheckRequestSchema, HealthCheckResponseSchema, {
				service: name,
			});
		expect((await check("")).status).toBe(1);
		expect((await check("plinth.resource.v1.ResourceService")).status).toBe(1);
		await expect(check("no.such.Service")).rejects.toMatchObject({ code: grpcStatus.NOT_FOUND });
		const watch = client.makeServerStreamRequest(
			"/grpc.health.v1.Health/Watch",
			codec(HealthCheckRequestSchema).serialize,
			codec(HealthCheckResponseSchema).deserialize,
			{ service: "" },
		);
		const statuses = watch[Symbol.asyncIterator]();
		expect((await statuses.next()).value.status).toBe(1);
		const ended = statuses.next().catch((error: ServiceError) => error.code);
		await server.stop();
		expect(await ended).toBe(grpcStatus.UNAVAILABLE);
	});
});

describe("a gRPC-Web client", () => {
	it("reads, watches, and learns the codes of errors", async () => {
		const server = await startServer({ modules: [musicModule()] });
		await server.client.write({ resource: artist("miles") });
		const method = <I extends DescMessage, O extends DescMessage>(
			name: string,
			input: I,
			output: O,
		) => ({
			path: `${service}/${name}`,
			requestStream: false as const,
			requestSerialize: codec(input).serialize,
			requestDeserialize: codec(input).deserialize,
			responseSerialize: codec(output).serialize,
			responseDeserialize: codec(output).deserialize,
			options: {},
		});
		const client = createWebClient(
			{
				read: {
					...method("Read", ReadRequestSchema, ReadResponseSchema),
					responseStream: false as const,
				},
				watchList: {
					...method("WatchList", WatchListRequestSchema, WatchEventSchema),
					responseStream: true as const,
				},
			},
			createChannel(server.address, NodeHttpTransport()),
		);
		const { resource } = await client.read({ id: idOf(Artist, "miles") });
		expect(resource?.id?.name).toBe("miles");
		const failure = await client.read({ id: idOf(Artist, "nobody") }).catch((error) => error);
		expect(failure).toBeInstanceOf(ClientError);
		expect(failure).toMatchObject({ code: 5, details: "resource not found" });
		const seen: unknown[] = [];
		for await (const { event } of client.watchList({ type: typeOf(Artist.type) })) {
			seen.push(event.case);
			if (event.case === "endOfSnapshot") {
				break;
			}
		}
		expect(seen).toEqual(["upsert", "endOfSnapshot"]);
	});
});

describeWith("curl")("curl", () => {
	it.each([
		["HTTP/1.1", "--http1.1", "1.1"],
		["HTTP/2", "--http2-prior-knowledge", "2"],
	])("writes and lists JSON over %s", async (_name, flag, version) => {
		const { address } = await startServer({ modules: [musicModule()] });
		const call = async (method: string, body: unknown) => {
			const printed = await curl(
				flag,
				`${address}${service}/${method}`,
				...["--header", "content-type: application/json", "--data", JSON.stringify(body)],
				...["--write-out", "\n%{http_version} %{http_code}"],
			);
			const [json = "", line] = printed.split("\n");
			return [JSON.parse(json), line];
		};
		const type = { group: "music", groupVersion: "v1", kind: "Artist" };
		const data = { "@type": "type.googleapis.com/music.v1.Artist", genre: "jazz" };
		const [, written] = await call("Write", { resource: { id: { name: "miles", type }, data } });
		expect(written).toBe(`${version} 200`);
		const [list] = await call("List", { type, tenancy: {} });
		expect(list).toMatchObject({ resources: [{ id: { name: "miles" }, data: { genre: "jazz" } }] });
		const [error, line] = await call("Read", { id: { name: "nobody", type } });
		expect([error, line]).toEqual([
			{ code: "not_found", message: "resource not found" },
			`${version} 404`,
		]);
	});
});

describe("a Prometheus parser", () => {
	it("reads all metrics, with the calls, watches and commits that there were", async () => {
		const server = await startServer({ modules: [musicModule()] });
		const call = (method: string, body: unknown) =>
			fetch(`${server.address}${service}/${method}`, {
				method: "POST",
				headers: { "content-type": "application/json" },
				body: JSON.stringify(body),
			}).then((response) => response.text());
		const type = { group: "music", groupVersion: "v1", kind: "Artist" };
		await call("Write", { resource: { id: { name: "miles", type } } });
		await call("Read", { id: { name: "nobody", type } });
		const controller = new AbortController();
		const watch = await fetch(`${server.address}${service}/WatchList`, {
			method: "POST",
			headers: { "content-type": "application/connect+json" },
			body: Buffer.concat([
				Buffer.from([0, 0, 0, 0, JSON.stringify({ type }).length]),
				Buffer.from(JSON.stringify({ type })),
			]),
			signal: controller.signal,
		});
		await watch.body?.getReader().read();

		const response = await fetch(`${server.address}/metrics`);
		expect(response.headers.get("content-type")).toMatch(/^text\/plain; version=0\.0\.4/);
		const text = await response.text();
		const families = new Map<string, MetricFamily>(
			parsePrometheus(text).map((family) => [family.name, family]),
		);
		for (const { help, type: kind } of families.values()) {
			expect(help).not.toBe("");
			expect(["COUNTER", "GAUGE", "HISTOGRAM"]).toContain(kind);
		}
		// The parser does not tell histograms apart by their labels.
		const resourceService = 'method="plinth.resource.v1.ResourceService';
		expect(text).toContain(
			`plinth_call_duration_seconds_count{${resourceService}/Write",code="ok"} 1\n`,
		);
		expect(text).toContain(
			`plinth_call_duration_seconds_count{${resourceService}/Read",code="not_found"} 1\n`,
		);
		const values = (name: string) =>
			(families.get(name)?.metrics ?? []).map(({ labels, value }) => ({ ...labels, value }));
		expect(values("plinth_streams_open")).toEqual([
			{ method: "plinth.resource.v1.ResourceService/WatchList", value: "1" },
		]);
		expect(values("plinth_lease_held")).toEqual([{ lease: "controllers", value: "1" }]);
		expect(values("plinth_connections").map(({ value }) => Number(value))[0]).toBeGreaterThan(0);
		expect([...families.keys()]).toEqual(
			expect.arrayContaining([
				"plinth_call_duration_seconds",
				"plinth_calls_in_flight",
				"plinth_commit_duration_seconds",
				"plinth_commit_mutations",
				"plinth_commits_under_way",
				"plinth_controller_cache_size",
				"plinth_controller_queue_depth",
				"plinth_controller_reconcile_duration_seconds_total",
				"plinth_controller_restarts_total",
				"plinth_stream_lag_seconds",
				"plinth_stream_messages_total",
				"plinth_process_memory_bytes",
			]),
		);
		controller.abort();
	});
});
