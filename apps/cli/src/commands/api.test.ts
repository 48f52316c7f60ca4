import { mkdtemp, rm, writeFile } from "node:fs/promises";
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
});
