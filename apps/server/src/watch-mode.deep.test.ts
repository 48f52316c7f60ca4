import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { ResourceService } from "@plinth/proto";
import { idOf } from "@plinth/resource";
import { temporaryFolder } from "@plinth/test-support";
import { expect, it } from "vitest";
import { Artist, artist } from "../testdata/music.ts";
import { ServerProcess } from "./server-process.fixture.ts";

/** The source of a module with the type of the tests. */
function moduleNamed(name: string): string {
	const from = (path: string) => JSON.stringify(new URL(path, import.meta.url).href);
	return `
		import { defineModule } from ${from("./module/index.ts")};
		import { Artist } from ${from("../testdata/music.ts")};
		export default defineModule({ name: "${name}", types: [Artist] });`;
}

it("a server under node --watch restarts when its module changes, and keeps its data", async () => {
	const folder = await temporaryFolder();
	const file = join(folder, "module.ts");
	await writeFile(file, moduleNamed("first"));
	const server = new ServerProcess(
		{ node: ["--watch", "--watch-preserve-output"] },
		...["--listen", "127.0.0.1:0", "--module", file, "--data-dir", join(folder, "data")],
	);
	try {
		const first = createClient(
			ResourceService,
			createGrpcTransport({ baseUrl: await server.listening() }),
		);
		await first.write({ resource: artist("miles") });

		await writeFile(file, moduleNamed("second"));
		await server.prints(/modules +second[\s\S]*Try next/);
		const baseUrl = /^Plinth listens on (\S+)$/gm;
		const addresses = [...server.stdout.matchAll(baseUrl)].map(([, address = ""]) => address);
		const second = createClient(
			ResourceService,
			createGrpcTransport({ baseUrl: addresses.at(-1) ?? "" }),
		);
		const { resource } = await second.read({ id: idOf(Artist, "miles") });
		expect(resource?.id?.name).toBe("miles");
	} finally {
		// Not by SIGKILL: Node would leave the watched process behind.
		server.kill("SIGTERM");
		await server.ended;
	}
});
