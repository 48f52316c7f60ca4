/** Pages in Chromium call a server of another origin. */
import { idOf, Namespace } from "@plinth/resource";
import { describeWith } from "@plinth/test-support";
import { expect, it } from "vitest";
import { createAuthority, filesOf } from "../certificates.fixture.ts";
import type { Http2Implementation } from "../listener/http2/http2-server.ts";
import { metricReaches } from "../raw-calls.fixture.ts";
import { startServer } from "../started-server.fixture.ts";
import { startPageServer } from "./chromium.fixture.ts";

const calls = "written, read and watched";
const succeeded = { connect: calls, connectBinary: calls, grpcWeb: calls };

async function start(http2: Http2Implementation, isEncrypted: boolean) {
	const page = await startPageServer();
	const { cert, key } = filesOf(await (await createAuthority()).issue());
	const server = await startServer({
		http2,
		...(isEncrypted && { tls: { certFile: cert, keyFile: key } }),
		cors: { allowedOrigins: [`http://localhost:${page.port}`] },
	});
	return { page, server, address: server.address };
}

describeWith("chromium")("a page of an allowed origin", () => {
	it.each(["node", "plinth"] as const)("calls over HTTP/2, with --http2 %s", async (http2) => {
		const { page, address } = await start(http2, true);
		const outcomes = await page.open(`http://localhost:${page.port}`, address);
		expect(outcomes).toEqual({ ...succeeded, streamed: "status 200" });
	});

	it("calls over HTTP/1.1, by which browsers send no streams", async () => {
		const { page, address } = await start("node", false);
		const outcomes = await page.open(`http://localhost:${page.port}`, address);
		expect(outcomes).toEqual({ ...succeeded, streamed: "TypeError: Failed to fetch" });
		// Its watches have ended.
		await metricReaches(address, "plinth_streams_open", 0);
	});
});

describeWith("chromium")("a page of another origin", () => {
	it.each(["node", "plinth"] as const)("gets nothing, with --http2 %s", async (http2) => {
		const { page, address, server } = await start(http2, true);
		const { streamed, ...outcomes } = await page.open(`http://127.0.0.1:${page.port}`, address);
		expect(streamed).toBe("TypeError: Failed to fetch");
		for (const outcome of Object.values(outcomes)) {
			expect(outcome).toMatch(/Failed to fetch/);
		}
		await expect(server.client.read({ id: idOf(Namespace, "page-0") })).rejects.toThrow();
	});
});
