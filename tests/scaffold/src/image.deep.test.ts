import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { chownSync, mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { packAll, root } from "@plinth/release";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildImage, type Image } from "./image.fixture.ts";
import { startRegistry } from "./registry.fixture.ts";

/** Whether this machine lets a process have a file system of its own. */
const canMount = spawnSync("unshare", ["--mount", "true"]).status === 0;

describe.skipIf(!canMount)("the image of the server, whose steps are run (needs unshare)", () => {
	let folder: string;
	let image: Image;

	beforeAll(async () => {
		folder = mkdtempSync(join(tmpdir(), "plinth-image-"));
		for (const each of ["registry", "tarballs", "image", "data"]) {
			mkdirSync(join(folder, each), { mode: 0o700 });
		}
		await using registry = await startRegistry(join(folder, "registry"));
		const tarballs = await packAll(join(folder, "tarballs"));
		for (const tarball of Object.values(tarballs)) {
			await registry.publish(tarball.replace("file:", ""));
		}
		image = await buildImage(join(root, "deploy/image/Dockerfile"), {
			context: join(root, "deploy/image"),
			folder: join(folder, "image"),
			args: { VERSION: "0.1.0" },
			environment: { npm_config_registry: registry.url, npm_config_cache: join(folder, "npm") },
		});
	});

	afterAll(() => rmSync(folder, { recursive: true, force: true }));

	it("serves as its user, writes nothing but its data, is healthy, and stops", async () => {
		expect(image.user).toBe("node");
		// A volume gets the owner that the image's folder has.
		const { uid, gid } = statSync(join(image.files, "data"));
		expect(uid).toBeGreaterThan(0);
		const volume = join(folder, "data");
		chownSync(volume, uid, gid);
		const server = image.start({
			volume,
			environment: { PLINTH_ALLOW_ANONYMOUS: "true" },
		});
		let output = "";
		const ended = once(server, "close");
		await new Promise<void>((resolve, reject) => {
			const read = (data: Buffer) => {
				output += data;
				if (output.includes('"server ready"')) {
					resolve();
				}
			};
			server.stdout?.on("data", read);
			server.stderr?.on("data", read);
			void ended.then(() => reject(new Error(output)));
		});
		expect(await image.checkHealth({})).toBe("");
		expect(statSync(join(volume, "plinth.sqlite")).uid).toBe(uid);
		server.kill("SIGTERM");
		expect(await ended).toEqual([0, null]);
		await expect(image.checkHealth({})).rejects.toThrow("ended with 1");
	});
});
