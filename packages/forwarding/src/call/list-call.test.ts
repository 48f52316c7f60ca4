import { expect, it } from "vitest";
import { ListServers } from "../pages/list-servers.ts";
import type { Server } from "../servers/server.ts";
import { KeptBytes } from "./kept-bytes.ts";
import { connectingServer, serverWith, startWrite, UpstreamStream } from "./write-call.fixture.ts";

const method = { isRepeatable: true, isStream: false, isUnary: true, hasPages: true } as const;

/** The memory for requests, which other calls have filled. */
const full = new KeptBytes(0);

it("a List is forwarded while other requests fill the memory", () => {
	const stream = new UpstreamStream();
	const request = '{"type":{"group":"demo"}}';
	const { response } = startWrite({
		...{ contentType: "application/json", request: Buffer.from(request), method, memory: full },
		servers: [serverWith(stream), connectingServer()],
	});
	expect(stream.sent).toBe(request);
	stream.call.onHead(200, ["content-type", "application/json"]);
	stream.call.onData(Buffer.from("{}"));
	stream.call.onEnd([]);
	expect(response).toMatchObject({ status: 200, body: "{}" });
});

it("a further page comes from the server that has it, also while other requests fill the memory", () => {
	const [stream, other] = [new UpstreamStream(), new UpstreamStream()];
	const owner = serverWith(stream, "b");
	const lists = new ListServers<Server>(1);
	lists.remember("KEY", owner);
	const request = '{"pageToken":"KEY.rest"}';
	startWrite({
		...{ contentType: "application/json", request: Buffer.from(request), method, lists },
		...{ memory: full, servers: [serverWith(other), owner] },
	});
	expect({ owner: stream.sent, other: other.sent }).toEqual({ owner: request, other: "" });
});
