import { Buffer } from "node:buffer";
import { once } from "node:events";
import { createServer } from "node:net";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { expect, it } from "vitest";
import { ProbeService } from "../testdata/src/gen/probe_pb.ts";
import { createPlinthTransport } from "./transport.ts";

async function codeOf(promise: Promise<unknown>): Promise<string | undefined> {
	try {
		await promise;
	} catch (thrown) {
		return Code[ConnectError.from(thrown).code];
	}
	return "no error";
}

const frameTypes = { data: 0, headers: 1, reset: 3, settings: 4 } as const;

function frame(type: number, flags: number, stream: number, payload: Uint8Array): Buffer {
	const prefix = Buffer.alloc(9);
	prefix.writeUIntBE(payload.length, 0, 3);
	prefix[3] = type;
	prefix[4] = flags;
	prefix.writeUInt32BE(stream, 5);
	return Buffer.concat([prefix, payload]);
}

/** A header in HPACK, without an index. */
function literal(name: string, value: string): Buffer {
	return Buffer.concat([
		Buffer.from([0, name.length]),
		Buffer.from(name),
		Buffer.from([value.length]),
		Buffer.from(value),
	]);
}

it("resets a call whose request is not read any more when its status arrives", async () => {
	const reset = Promise.withResolvers<void>();
	const server = createServer((socket) => {
		socket.on("error", () => {});
		socket.write(frame(frameTypes.settings, 0, 0, new Uint8Array()));
		let rest = Buffer.alloc(0);
		let isPreface = true;
		let received = 0;
		socket.on("data", (chunk) => {
			rest = Buffer.concat([rest, Buffer.from(chunk)]);
			if (isPreface && rest.length >= 24) {
				isPreface = false;
				rest = rest.subarray(24);
			}
			while (!isPreface && rest.length >= 9 && rest.length >= 9 + rest.readUIntBE(0, 3)) {
				const length = rest.readUIntBE(0, 3);
				if (rest[3] === frameTypes.reset) {
					reset.resolve();
				}
				received += rest[3] === frameTypes.data ? length : 0;
				rest = rest.subarray(9 + length);
				if (received === 65_535) {
					received = 0;
					const block = Buffer.concat([
						Buffer.from([0x88]),
						literal("content-type", "application/grpc+proto"),
					]);
					socket.write(frame(frameTypes.headers, 4, 1, block));
					socket.write(frame(frameTypes.headers, 5, 1, literal("grpc-status", "5")));
				}
			}
		});
	});
	server.listen(0, "127.0.0.1");
	await once(server, "listening");
	const port: unknown = Object(server.address()).port;
	const transport = createPlinthTransport({ baseUrl: `http://127.0.0.1:${port}` });
	const client = createClient(ProbeService, transport);
	try {
		expect(await codeOf(client.unary({ text: "x".repeat(1_000_000) }))).toBe("NotFound");
		await reset.promise;
	} finally {
		transport.close();
		server.close();
	}
});
