import { execFileSync, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chownSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { packAll, root } from "@plinth/release";
import { addNote, describeWith } from "@plinth/test-support";
import { afterAll, beforeAll, expect, it } from "vitest";
import { buildImage, type Image } from "./image.fixture.ts";
import { startRegistry } from "./registry.fixture.ts";

/** Whether this machine lets a process mount the layers of an image for itself alone. */
function canMount(folder: string): boolean {
	for (const each of ["upper", "work", "root"]) {
		mkdirSync(join(folder, each));
	}
	const layers = `lowerdir=/,upperdir=${folder}/upper,workdir=${folder}/work`;
	const mount = ["mount", "-t", "overlay", "overlay", "-o", layers, `${folder}/root`];
	return spawnSync("unshare", ["--mount", ...mount]).status === 0;
}

describeWith("openssl")("the image of the server, whose steps are run", () => {
	let folder: string;
	let image: Image | undefined;

	beforeAll(async () => {
		folder = mkdtempSync(join(tmpdir(), "plinth-image-"));
		for (const each of ["mount", "registry", "tarballs", "image"]) {
			mkdirSync(join(folder, each), { mode: 0o700 });
		}
		if (!canMount(join(folder, "mount"))) {
			return;
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

	it.each(["http", "https"])(
		"serves %s as its user, writes nothing but its data, is healthy, and stops",
		async (protocol) => {
			if (image === undefined) {
				return;
			}
			expect(image.user).toBe("node");
			// A volume gets the owner that the image's folder has.
			const { uid, gid } = statSync(join(image.files, "data"));
			expect(uid).toBeGreaterThan(0);
			const volume = join(folder, `data-${protocol}`);
			mkdirSync(volume, { mode: 0o700 });
			const environment = {
				PLINTH_ALLOW_ANONYMOUS: "true",
				...(protocol === "https" && issueCertificate(volume)),
			};
			chownAll(volume, uid, gid);
			const server = image.start({ volume, environment });
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
			expect(await image.checkHealth({ environment })).toBe("");
			expect(statSync(join(volume, "plinth.sqlite")).uid).toBe(uid);
			server.kill("SIGTERM");
			expect(await ended).toEqual([0, null]);
			await expect(image.checkHealth({ environment })).rejects.toThrow("ended with 1");
		},
	);

	it("can be mounted by this machine", (context) => {
		if (image === undefined) {
			addNote(context, "the image was not run: this machine mounts no overlay for a process");
		}
	});
});

/** Writes a certificate into a folder that the server sees as `/data`. Returns the settings that name it. */
function issueCertificate(folder: string): Record<string, string> {
	execFileSync(
		"openssl",
		["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"].concat(
			["-subj", "/CN=plinth", "-days", "1"],
			["-keyout", join(folder, "tls.key"), "-out", join(folder, "tls.crt")],
		),
		{ stdio: "pipe" },
	);
	return { PLINTH_TLS_CERT_FILE: "/data/tls.crt", PLINTH_TLS_KEY_FILE: "/data/tls.key" };
}

function chownAll(folder: string, uid: number, gid: number): void {
	for (const each of ["", ...readdirSync(folder)]) {
		chownSync(join(folder, each), uid, gid);
	}
}
