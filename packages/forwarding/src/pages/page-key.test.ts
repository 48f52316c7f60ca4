import { create, toBinary } from "@bufbuild/protobuf";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import { ListRequestSchema } from "@plinth/proto";
import { expect, it } from "vitest";
import { ListServers } from "./list-servers.ts";
import { pageKeyOf } from "./page-key.ts";

const request = create(ListRequestSchema, {
	type: { group: "demo", groupVersion: "v1", kind: "Artist" },
	...{ pageSize: 10, pageToken: "KEY.rest.of-it" },
});
const binary = toBinary(ListRequestSchema, request);
const json = Buffer.from('{"type":{"group":"demo"},"pageToken":"KEY.rest","pageSize":10}');
const path = "/plinth.resource.v1.ResourceService/List";

const call = (contentType: string | undefined, target = path) => ({
	method: contentType === undefined ? "GET" : "POST",
	target,
	header: (name: string) => (name === "content-type" ? contentType : undefined),
});

it.each([
	["application/proto", binary],
	["application/json; charset=utf-8", json],
	["application/json", Buffer.from('{"page_token":"KEY.rest"}')],
	["application/grpc", encodeEnvelope(0, binary)],
	["application/grpc-web+proto", encodeEnvelope(0, binary)],
	["application/grpc+json", encodeEnvelope(0, json)],
])("the key of a list is read from its page token in %s", (contentType, body) => {
	expect(pageKeyOf(call(contentType), body)).toBe("KEY");
});

it("the key of a list is read from a query", () => {
	const inProtobuf = `?encoding=proto&base64=1&message=${Buffer.from(binary).toString("base64url")}`;
	expect(pageKeyOf(call(undefined, path + inProtobuf), new Uint8Array())).toBe("KEY");
	const inJson = `?encoding=json&message=${encodeURIComponent(json.toString())}`;
	expect(pageKeyOf(call(undefined, path + inJson), new Uint8Array())).toBe("KEY");
});

it.each(["", "no JSON", "{}", '{"pageToken":""}', '{"pageToken":".x"}', '{"pageToken":7}'])(
	"a request without a key has none: %j",
	(text) => {
		expect(pageKeyOf(call("application/json"), Buffer.from(text))).toBeUndefined();
		expect(pageKeyOf(call("application/grpc"), Buffer.from(text))).toBeUndefined();
	},
);

it("the servers of the lists with the oldest pages are forgotten", () => {
	const servers = new ListServers<number>(2);
	servers.remember("a", 1);
	servers.remember("b", 2);
	servers.remember("a", 1);
	servers.remember("c", 3);
	servers.remember("x".repeat(100), 4);
	expect(["a", "b", "c"].map((key) => servers.serverOf(key))).toEqual([1, undefined, 3]);
});
