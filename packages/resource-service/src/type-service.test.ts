import {
	create,
	createFileRegistry,
	fromBinary,
	getOption,
	type MessageInitShape,
	setExtension,
} from "@bufbuild/protobuf";
import {
	FieldDescriptorProto_Label,
	FieldDescriptorProto_Type,
	type FileDescriptorSet,
	FileDescriptorSetSchema,
	file_google_protobuf_descriptor,
	MessageOptionsSchema,
	type SourceCodeInfoSchema,
} from "@bufbuild/protobuf/wkt";
import { Code, createClient } from "@connectrpc/connect";
import { createInProcessTransport } from "@plinth/in-process";
import { type ListTypesResponse, Scope, spec, TypeService, TypeSpecSchema } from "@plinth/proto";
import { longestComment } from "@plinth/proto-comments";
import {
	type Authorizer,
	defineType,
	denied,
	gvkKey,
	Namespace,
	Partition,
	type ResourceType,
	TypeRegistry,
} from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { LabelSchema } from "../testdata/gen/acme/demo/v2/demo_pb.ts";
import { insecureAllowAll } from "./access/open-access.ts";
import { PolicyAuthorizer } from "./access/policy-authorizer.ts";
import { Artist, demoTypes } from "./demo.fixture.ts";
import { expectRefusal } from "./service.fixture.ts";
import { createTypeService } from "./type-service.ts";

const allTypes = [Partition, Namespace, ...demoTypes];

function clientOf(
	authorizer: Authorizer = insecureAllowAll,
	types: readonly ResourceType[] = allTypes,
) {
	const service = createTypeService({ registry: new TypeRegistry(types), authorizer });
	return createClient(
		TypeService,
		createInProcessTransport((router) => router.service(TypeService, service)),
	);
}

const keysOf = ({ types }: ListTypesResponse) => types.map(({ type }) => type && gvkKey(type));

const as = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });

function filesOf({ fileDescriptorSet }: ListTypesResponse): FileDescriptorSet {
	return fromBinary(FileDescriptorSetSchema, fileDescriptorSet);
}

/** Three types, each in a file of its own that takes more than half of a page. */
function largeTypes(sourceCodeInfo?: MessageInitShape<typeof SourceCodeInfoSchema>) {
	const options = create(MessageOptionsSchema);
	setExtension(options, spec, create(TypeSpecSchema, { scope: Scope.CLUSTER }));
	const names = ["One", "Three", "Two"];
	const registry = createFileRegistry(
		create(FileDescriptorSetSchema, {
			file: [
				file_google_protobuf_descriptor.proto,
				spec.file.proto,
				...names.map((name) => ({
					name: `large/v1/${name}.proto`,
					package: "large.v1",
					syntax: "proto3",
					dependency: [spec.file.proto.name],
					messageType: [{ name, options, field: Array.from({ length: 120 }, longField) }],
					...(sourceCodeInfo && { sourceCodeInfo }),
				})),
			],
		}),
	);
	return names.map((name) => {
		const message = registry.getMessage(`large.v1.${name}`);
		if (message === undefined) {
			throw new Error(`large.v1.${name} is missing`);
		}
		return defineType(message);
	});
}

const longField = (_: unknown, position: number) => ({
	name: `field_${position}_${"x".repeat(10_000)}`,
	number: position + 1,
	label: FieldDescriptorProto_Label.OPTIONAL,
	type: FieldDescriptorProto_Type.STRING,
});

describe("the type service", () => {
	it("tells names, scopes and messages of all types, by name", async () => {
		const response = await clientOf().listTypes({});
		expect(keysOf(response)).toEqual(allTypes.map(({ key }) => key).sort());
		expect(response.types.find(({ type }) => type?.kind === "Partition")).toMatchObject({
			scope: Scope.CLUSTER,
			messageName: "plinth.tenancy.v1.Partition",
		});
		expect(response.nextPageToken).toBe("");
	});

	it("tells descriptors from which clients make the messages, options and imports included", async () => {
		const response = await clientOf().listTypes({});
		const registry = createFileRegistry(filesOf(response));
		for (const { messageName, scope } of response.types) {
			const message = registry.getMessage(messageName);
			expect(message && getOption(message, spec).scope).toBe(scope);
		}
		const artist = registry.getMessage(Artist.schema.typeName);
		expect(artist?.fields.map(({ name }) => name)).toEqual(
			Artist.schema.fields.map(({ name }) => name),
		);
	});

	it("tells each file once, after what it imports", async () => {
		const { file } = filesOf(await clientOf().listTypes({}));
		const seen = new Set<string>();
		for (const { name, dependency } of file) {
			expect(seen).not.toContain(name);
			expect(dependency.filter((one) => !seen.has(one))).toEqual([]);
			seen.add(name);
		}
	});

	it("tells pages that each stand alone, and together are all types", async () => {
		const client = clientOf();
		const keys: unknown[] = [];
		let pageToken = "";
		do {
			const page = await client.listTypes({ pageSize: 2, pageToken });
			expect(page.types.length).toBeLessThanOrEqual(2);
			const registry = createFileRegistry(filesOf(page));
			for (const { messageName } of page.types) {
				expect(registry.getMessage(messageName)).toBeDefined();
			}
			keys.push(...keysOf(page));
			pageToken = page.nextPageToken;
		} while (pageToken !== "");
		expect(keys).toEqual(keysOf(await client.listTypes({})));
	});

	it("ends a page before its descriptors grow too large, and never before its first type", async () => {
		const client = clientOf(insecureAllowAll, largeTypes());
		const first = await client.listTypes({});
		expect(keysOf(first)).toEqual(["large.v1.One"]);
		const second = await client.listTypes({ pageToken: first.nextPageToken });
		expect(keysOf(second)).toEqual(["large.v1.Three"]);
	});

	it("sends the comments of messages and fields, and nothing else of the source information", async () => {
		const span = [0, 0, 1];
		const location = [
			{ path: [], span },
			{ path: [12], span, leadingComments: " A license.\n" },
			{ path: [4, 0, 7], span, leadingComments: " An option.\n" },
			{ path: [4, 0], span, leadingComments: " One.\n", leadingDetachedComments: [" Apart.\n"] },
			{ path: [4, 0, 2, 1], span, trailingComments: "x".repeat(10_000) },
		];
		const response = await clientOf(insecureAllowAll, largeTypes({ location })).listTypes({});
		const { sourceCodeInfo } = filesOf(response).file.at(-1) ?? {};
		expect(sourceCodeInfo?.location).toMatchObject([
			{ path: [4, 0], span, leadingComments: " One.\n", leadingDetachedComments: [] },
			{ path: [4, 0, 2, 1], span, trailingComments: `${"x".repeat(longestComment - 1)}…` },
		]);
	});

	it("leaves out comments that would make a page too large", async () => {
		const location = Array.from({ length: 1_000 }, (_, at) => ({
			path: [4, at],
			span: [0, 0, 1],
			leadingComments: "x".repeat(longestComment),
		}));
		const response = await clientOf(insecureAllowAll, largeTypes({ location })).listTypes({});
		expect(keysOf(response)).toEqual(["large.v1.One"]);
		expect(filesOf(response).file.at(-1)?.sourceCodeInfo).toBeUndefined();
	});

	it.each([-1, 1_001])("refuses a page size of %d", async (pageSize) => {
		await expectRefusal(
			clientOf().listTypes({ pageSize }),
			Code.InvalidArgument,
			`page_size invalid: ${pageSize} is not between 0 and 1000`,
		);
	});

	it("tells callers of the types that they may read or write somewhere, and of no others", async () => {
		const authorizer = new PolicyAuthorizer();
		authorizer.grant("reader", {
			subject: "reader",
			rules: [{ operations: ["operator:read"], type: "demo.v2.Artist", namePrefix: "my-" }],
		});
		authorizer.grant("writer", {
			subject: "writer",
			rules: [{ operations: ["operator:write"], type: "demo.v2.Label" }],
		});
		authorizer.grant("nobody", { subject: "nobody", rules: [] });
		const client = clientOf(authorizer, [Partition, Artist, defineType(LabelSchema)]);
		expect(keysOf(await client.listTypes({}, as("reader")))).toEqual(["demo.v2.Artist"]);
		expect(keysOf(await client.listTypes({}, as("writer")))).toEqual(["demo.v2.Label"]);
		const none = await client.listTypes({}, as("nobody"));
		expect(none.types).toEqual([]);
		expect(filesOf(none).file).toEqual([]);
	});

	it("leaves out a type whose list hook denies", async () => {
		const hidden = defineType(LabelSchema, { authorize: { list: () => denied("no") } });
		const authorizer = new PolicyAuthorizer();
		authorizer.grant("reader", { subject: "reader", rules: [{ operations: ["operator:read"] }] });
		const client = clientOf(authorizer, [Partition, hidden]);
		expect(keysOf(await client.listTypes({}, as("reader")))).toEqual(["tenancy.v1.Partition"]);
	});

	it("tells nothing to callers without a valid token", async () => {
		const client = clientOf(new PolicyAuthorizer());
		await expectRefusal(
			client.listTypes({}),
			Code.Unauthenticated,
			"a token is required: authorization: Bearer <token>",
		);
		await expectRefusal(
			client.listTypes({}, as("wrong")),
			Code.Unauthenticated,
			"the token is not known",
		);
	});
});
