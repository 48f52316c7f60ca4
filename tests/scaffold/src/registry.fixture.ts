import { execFile } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { promisify } from "node:util";
import { runServer } from "verdaccio";

const run = promisify(execFile);

/** A registry on this machine. It has packages of its own, and all those of npm. */
export interface Registry extends AsyncDisposable {
	readonly url: string;
	/** Publishes a tarball under the tag `latest`. */
	publish(tarball: string): Promise<void>;
}

/** Only packages that are not published here are looked up in the registry of npm. */
const configuration = `
storage: ./storage
uplinks:
  npm:
    url: https://registry.npmjs.org/
    timeout: 60s
packages:
  "@plinth/*": &own
    access: $all
    publish: $all
  create-plinth: *own
  "**":
    access: $all
    proxy: npm
log: { type: stdout, format: json, level: error }
`;

/** Starts a registry with its data in the folder. */
export async function startRegistry(folder: string): Promise<Registry> {
	// npm trusts the authorities of the machine too, of which its way to the registry may need one.
	setDefaultCACertificates([...getCACertificates("default"), ...getCACertificates("system")]);
	const file = join(folder, "verdaccio.yaml");
	writeFileSync(file, configuration);
	const server = await runServer(file);
	server.listen(0, "127.0.0.1");
	await once(server, "listening");
	const url = `http://127.0.0.1:${server.address().port}`;
	return {
		url,
		publish: (tarball) => publish(url, tarball),
		async [Symbol.asyncDispose]() {
			server.closeAllConnections();
			await new Promise((resolve) => server.close(resolve));
		},
	};
}

interface Manifest {
	readonly name: string;
	readonly version: string;
}

/** As `npm publish` does, without an account. */
async function publish(url: string, tarball: string): Promise<void> {
	const { stdout } = await run("tar", ["-xzOf", tarball, "package/package.json"]);
	const manifest: Manifest = JSON.parse(stdout);
	const { name, version } = manifest;
	const file = `${name}-${version}.tgz`;
	const data = readFileSync(tarball);
	const response = await fetch(`${url}/${name.replace("/", "%2f")}`, {
		method: "PUT",
		headers: { "content-type": "application/json" },
		body: JSON.stringify({
			_id: name,
			name,
			"dist-tags": { latest: version },
			versions: { [version]: { ...manifest, dist: { tarball: `${url}/${name}/-/${file}` } } },
			_attachments: {
				[file]: {
					content_type: "application/octet-stream",
					data: data.toString("base64"),
					length: data.length,
				},
			},
		}),
	});
	if (!response.ok) {
		throw new Error(`${name} was not published: ${response.status} ${await response.text()}`);
	}
}
