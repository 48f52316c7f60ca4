import { create, createRegistry, type DescMessage, type Registry } from "@bufbuild/protobuf";
import { createClient, createConnectRouter, createRouterTransport } from "@connectrpc/connect";
import { ResourceSchema, ResourceService } from "@plinth/proto";
import { expect, it } from "vitest";
import {
	ServerReflection,
	ServerReflectionRequestSchema,
	type ServerReflectionResponse,
} from "../gen/grpc/reflection/v1/reflection_pb.ts";
import { createReflectionService } from "./reflection-service.ts";

/** A registry that counts how often somebody goes through its messages. */
function countedRegistry(messages: readonly DescMessage[]) {
	const registry = createRegistry(...messages);
	let visits = 0;
	const counted: Registry = {
		...registry,
		[Symbol.iterator]() {
			visits += 1;
			return registry[Symbol.iterator]();
		},
	};
	return { registry: counted, visits: () => visits };
}

/** A client of the reflection service of a server with the resource service and these messages. */
function reflectionOf(messages: Registry) {
	const router = createConnectRouter().service(ResourceService, {});
	const transport = createRouterTransport(({ service }) =>
		service(ServerReflection, createReflectionService(router, messages)),
	);
	const client = createClient(ServerReflection, transport);
	return async (...symbols: readonly string[]) => {
		const requests = symbols.map((value) =>
			create(ServerReflectionRequestSchema, {
				messageRequest: { case: "fileContainingSymbol", value },
			}),
		);
		const responses: ServerReflectionResponse["messageResponse"]["case"][] = [];
		for await (const { messageResponse } of client.serverReflectionInfo(
			(async function* () {
				yield* requests;
			})(),
		)) {
			responses.push(messageResponse.case);
		}
		return responses;
	};
}

const found = "fileDescriptorResponse";
const refused = "errorResponse";

it("finds types, and what is in them, by their names alone: no request goes through all types", async () => {
	const { registry, visits } = countedRegistry([ResourceSchema]);
	const filesOf = reflectionOf(registry);
	await filesOf("plinth.resource.v1.Resource");
	const first = visits();
	const service = "plinth.resource.v1.ResourceService";
	expect(
		await filesOf(
			...["plinth.resource.v1.Resource", ".plinth.resource.v1.Resource"],
			...[`${service}.Write`, "plinth.resource.v1.Resource.version"],
			...["plinth.resource.v1.MutateAndValidateResponse.unknown", "plinth.resource.v1", "", "."],
		),
	).toEqual([...Array(5).fill(found), ...Array(3).fill(refused)]);
	expect(visits()).toBe(first);
});

it("looks no further than the longest name, however long the symbol", async () => {
	const filesOf = reflectionOf(createRegistry(ResourceSchema));
	const many = 1_000_000;
	const symbols = ["a.".repeat(many), ".".repeat(many), "a".repeat(many)];
	expect(await filesOf(...symbols)).toEqual([refused, refused, refused]);
	expect(await filesOf(`plinth.resource.v1.Resource${".a".repeat(many)}`)).toEqual([found]);
});
