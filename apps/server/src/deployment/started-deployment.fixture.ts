import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "@plinth/test-support/ports";
import { onTestFinished } from "vitest";
import type { Server } from "../server.ts";
import type { ServerOptions } from "../server-options.ts";
import { startServer } from "../started-server.fixture.ts";
import type { DeploymentOptions } from "./deployment-options.ts";

/** The credential of all deployments of a test. */
export const credential = "a-credential-of-all-deployments";

/** A file with the credential, and the one before it. */
export function credentialFile(): string {
	const folder = mkdtempSync(join(tmpdir(), "plinth-deployment-"));
	onTestFinished(() => rmSync(folder, { recursive: true }));
	const file = join(folder, "credential");
	writeFileSync(file, `${credential}\nthe-credential-that-was-before\n`);
	return file;
}

/** A server as a deployment of a service, in the region `r1` unless another one is named. */
export async function startDeployment(
	service: string,
	file: string,
	options: Partial<
		Pick<DeploymentOptions, "metaAddresses" | "dropsVersionsInUse" | "region"> &
			Omit<ServerOptions, "deployment"> & {
				/** The port of the internal listener. Default: a free one. */
				readonly internalPort: number;
			}
	> = {},
): Promise<{ readonly server: Server; readonly internal: string }> {
	const {
		metaAddresses = [],
		dropsVersionsInUse = false,
		region = "r1",
		internalPort,
		...serverOptions
	} = options;
	const internalListen = { host: "127.0.0.1", port: internalPort ?? (await freePort()) };
	const internal = `http://127.0.0.1:${internalListen.port}`;
	const server = await startServer({
		...serverOptions,
		deployment: {
			service,
			region,
			address: internal,
			metaAddresses,
			dropsVersionsInUse,
			internalListen,
			credentialFile: file,
		},
	});
	return { server, internal };
}
