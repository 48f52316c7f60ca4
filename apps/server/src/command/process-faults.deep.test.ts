import { fileURLToPath } from "node:url";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { describe, expect, it } from "vitest";
import { JukeboxService } from "../../testdata/gen/music/v1/music_pb.ts";
import { ServerProcess } from "../server-process.fixture.ts";

const module = fileURLToPath(new URL("../../testdata/modules/faults/module.ts", import.meta.url));

/** A server that does damage to itself. */
async function start(stopTimeout = "10s") {
	const server = new ServerProcess(
		...["--listen", "127.0.0.1:0", "--storage", "memory", "--module", module],
		...["--limits-stop-timeout", stopTimeout],
	);
	const baseUrl = await server.listening();
	const jukebox = createClient(
		JukeboxService,
		createConnectTransport({ baseUrl, httpVersion: "1.1" }),
	);
	return { server, play: (song: string) => jukebox.play({ song }).catch(() => undefined) };
}

describe("an unhandled fault", () => {
	it.each([
		["rejection", "a rejection was not handled", "nobody handles this rejection", "module.ts"],
		["exception", "an exception was not caught", "nobody catches this exception", "module.ts"],
		["oddity", "a rejection was not handled", "not an error, but { song: 'so what' }", ""],
	])(
		"%s: is logged with its stack, and the server stops in order with 1",
		async (fault, ...texts) => {
			const { server, play } = await start();
			await play(fault);
			const { code, stderr } = await server.ended;
			for (const text of [...texts, "server stopping", "server stopped"]) {
				expect(stderr).toContain(text);
			}
			expect(code).toBe(1);
		},
	);

	it("that causes many more does not flood the log, nor end the stop", async () => {
		const { server, play } = await start();
		await play("storm");
		const { code, stderr } = await server.ended;
		expect(stderr.match(/a rejection was not handled/g)).toHaveLength(100);
		expect(stderr).toContain("server stopped");
		expect(code).toBe(1);
	});
});

describe("a stop that never ends", () => {
	it("is ended with 1 after the limit, after a fault and with another one in it", async () => {
		const { server, play } = await start("100ms");
		await play("endless stop");
		await play("rejection");
		const { code, stderr } = await server.ended;
		expect(stderr).toContain("a second fault");
		expect(stderr).toContain("the stop did not complete in time");
		expect(code).toBe(1);
	});

	it("is ended by a second signal, with a thread that nothing can stop", async () => {
		const { server, play } = await start("10m");
		await play("endless stop");
		await play("stuck thread");
		await server.logs(/the thread is stuck/);
		server.kill("SIGTERM");
		await server.logs(/a second signal exits immediately/);
		server.kill("SIGTERM");
		expect(await server.ended).toMatchObject({ code: 1, signal: null });
	});

	it("is ended in the same way after a signal, with a thread that can't be stopped", async () => {
		const { server, play } = await start("100ms");
		await play("endless stop");
		await play("stuck thread");
		await server.logs(/the thread is stuck/);
		server.kill("SIGTERM");
		const { code, stderr } = await server.ended;
		expect(stderr).toContain("the stop did not complete in time");
		expect(code).toBe(1);
	});
});
