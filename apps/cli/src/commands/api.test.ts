import { mkdtemp, rm, writeFile } from "node:fs/promises";
import {
	createServer as createHttpServer,
	type IncomingMessage,
	type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer } from "@plinth/server";
import { describe, expect, it, onTestFinished } from "vitest";
import { runPlinth, startPlinth } from "../run-plinth.fixture.ts";

async function start() {
	const server = createServer({
		storage: { kind: "memory" },
		listen: { host: "127.0.0.1", port: 0 },
	});
	await server.start();
	onTestFinished(() => server.stop());
	const args = (words: readonly string[]) => ["api", ...words, "--server", server.address];
	return {
		run: (words: readonly string[], stdin = "") => runPlinth(args(words), { stdin }),
		follow: (...words: readonly string[]) => startPlinth(args(words)),
	};
}

const read = "plinth.resource.v1.ResourceService/Read";
const namespace = JSON.stringify({
	id: {
		type: { group: "tenancy", groupVersion: "v1", kind: "Namespace" },
		name: "default",
		tenancy: { partition: "default" },
	},
});

describe("plinth api", () => {
	it("prints the response to a request from the command line, a file or standard input", async () => {
		const { run } = await start();
		const folder = await mkdtemp(join(tmpdir(), "plinth-api-"));
		onTestFinished(() => rm(folder, { recursive: true }));
		const file = join(folder, "request.json");
		await writeFile(file, namespace);
		for (const [data, stdin] of [[namespace], [`@${file}`], ["-", namespace]]) {
			const { code, out } = await run([read, "-d", data ?? ""], stdin);
			expect(code).toBe(0);
			expect(JSON.parse(out)).toMatchObject({ resource: { id: { name: "default" } } });
		}
		const { out } = await run(["/plinth.type.v1.TypeService/ListTypes"]);
		expect(JSON.parse(out).types.length).toBeGreaterThan(0);
	});

	it("prints each message of a stream, until it is interrupted", async () => {
		const { follow } = await start();
		const watch = follow("plinth.event.v1.EventService/WatchEvents");
		await watch.prints('"isCurrent": true');
		watch.interrupt();
		expect((await watch.ended).code).toBe(130);
	});

	it("explains what is wrong", async () => {
		const { run } = await start();
		const errorOf = async (...words: readonly string[]) => {
			const { code, err } = await run(words);
			return [code, err.trim()];
		};
		expect(await errorOf("ListTypes")).toEqual([
			2,
			'plinth: "ListTypes" is not a method: write SERVICE/METHOD, as in plinth.type.v1.TypeService/ListTypes',
		]);
		expect((await errorOf("a.b.C/D"))[1]).toContain("there is no method a.b.C/D");
		expect((await errorOf(read, "-d", "{"))[1]).toContain("the request is not JSON");
		expect((await errorOf(read, "-d", "@/nowhere"))[1]).toContain("can't read /nowhere");
		expect((await errorOf(read, "-d", '{"nmae":1}'))[1]).toContain("nmae");
		const [code, problem] = await errorOf(read, "-d", namespace.replace("default", "none"));
		expect([code, problem]).toEqual([3, "plinth: resource not found"]);
	});

	it("says that the server can't be reached", async () => {
		const { code, err } = await runPlinth(["api", read, "--server", "http://127.0.0.1:1"]);
		expect(code).toBe(6);
		expect(err).toContain("can't reach http://127.0.0.1:1");
	});

	it("ends a call that takes longer than the timeout, also within the response", async () => {
		for (const begin of ["", '{"resource":']) {
			const { address } = await startResponder((_, response) => {
				if (begin !== "") {
					response.write(begin);
				}
			});
			const args = ["api", read, "--server", address, "--request-timeout", "50ms"];
			const { code, err } = await runPlinth(args);
			expect([code, err]).toEqual([
				7,
				`plinth: ${address} did not respond in time (--request-timeout)\n`,
			]);
		}
	});

	it("waits for a call without a timeout if that is 0", async () => {
		let timeout: unknown = "none was sent";
		const { address } = await startResponder((request, response) => {
			timeout = request.headers["connect-timeout-ms"];
			setTimeout(() => response.end("{}"), 20);
		});
		for (const none of ["0", "0s"]) {
			const args = ["api", read, "--server", address, "--request-timeout", none];
			expect(await runPlinth(args)).toMatchObject({ code: 0, out: "{}\n" });
			expect(timeout).toBe(undefined);
		}
	});

	it("says that the connection was lost, or that the response is not JSON", async () => {
		const { address, respondWith } = await startResponder();
		const failed = async (how: Responder) => {
			respondWith(how);
			const { code, err } = await runPlinth(["api", read, "--server", address]);
			return [code, err.trim()];
		};
		const lost = `plinth: ${address} is not available: the connection was lost within the response`;
		const cut = (text: string | Buffer, response: ServerResponse) =>
			response.write(text, () => response.destroy());
		expect(await failed((_, response) => cut("{", response))).toEqual([6, lost]);
		const cutStream = streamOf((response) => cut(Buffer.of(0, 0, 0), response));
		expect(await failed(cutStream)).toEqual([6, lost]);
		const noJson = 'plinth: the response is not JSON: "<html>". Is it a Plinth server?';
		expect(await failed((_, response) => response.end("<html>"))).toEqual([1, noJson]);
		for (const flag of [0, 2]) {
			const how = streamOf((response) => response.end(frame(flag, "<html>")));
			expect(await failed(how)).toEqual([1, noJson]);
		}
	});

	it("reads the messages of a stream, however they are cut into chunks", async () => {
		const texts = ["{}", '{"a":1}', `{"b":"${"x".repeat(100)}"}`];
		const all = Buffer.concat([...texts.map((text) => frame(0, text)), frame(2, "{}")]);
		for (const size of [1, 4, 7, 20, 500]) {
			const { address } = await startResponder(
				streamOf((response) => void writeInChunks(response, all, size)),
			);
			const { code, out } = await runPlinth(["api", read, "--server", address]);
			expect(code).toBe(0);
			expect(out).toBe(
				texts.map((text) => `${JSON.stringify(JSON.parse(text), undefined, 2)}\n`).join(""),
			);
		}
	});

	it("keeps the path of the server", async () => {
		const { address, respondWith } = await startResponder();
		respondWith((request, response) => response.end(JSON.stringify({ url: request.url })));
		for (const path of ["/plinth/", "/plinth"]) {
			const { out } = await runPlinth(["api", read, "--server", address + path]);
			expect(JSON.parse(out)).toEqual({ url: `/plinth/${read}` });
		}
	});

	it("warns of a token that is sent unencrypted", async () => {
		const server = "http://plinth.invalid";
		const { err } = await runPlinth(["api", read, "--server", server, "--token", "secret"]);
		expect(err).toContain(`the token is sent to ${server} unencrypted: use https`);
	});
});

type Responder = (request: IncomingMessage, response: ServerResponse) => unknown;

/** A server that is none of Plinth's, which responds as it is told. */
async function startResponder(first: Responder = () => {}) {
	let how = first;
	const server = createHttpServer((request, response) => {
		request.resume();
		request.on("end", () => how(request, response));
	});
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	onTestFinished(() => {
		server.closeAllConnections();
		server.close();
	});
	const { port } = server.address() as AddressInfo;
	return {
		address: `http://127.0.0.1:${port}`,
		respondWith: (next: Responder) => {
			how = next;
		},
	};
}

/** Refuses the media type of methods that are no streams, as a server does for streams. */
function streamOf(body: (response: ServerResponse) => unknown): Responder {
	return ({ headers }, response) => {
		if (headers["content-type"] === "application/json") {
			response.writeHead(415).end();
		} else {
			body(response);
		}
	};
}

function frame(flags: number, text: string): Buffer {
	const head = Buffer.alloc(5);
	head[0] = flags;
	head.writeUInt32BE(Buffer.byteLength(text), 1);
	return Buffer.concat([head, Buffer.from(text)]);
}

async function writeInChunks(response: ServerResponse, all: Buffer, size: number): Promise<void> {
	for (let begin = 0; begin < all.byteLength; begin += size) {
		await new Promise((resolve) => response.write(all.subarray(begin, begin + size), resolve));
	}
	response.end();
}
