import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { PlannedServer } from "./plan.ts";

const example = fileURLToPath(new URL("..", import.meta.url));
const serverMain = fileURLToPath(new URL("../../../apps/server/src/main.ts", import.meta.url));

/** What all servers of the example share. */
export interface ServerSurroundings {
	/** Where each server has a folder and a log. */
	readonly dataDirectory: string;
	readonly credentialFile: string;
	/** Where meta deployments listen for the others. */
	readonly metaAddresses: readonly string[];
	/** Versions that differ from the module's newest, by service. */
	readonly versions: Readonly<Record<string, string>>;
}

/** One server in a process of its own, which may end and start again. */
export class ServerProcess {
	readonly plan: PlannedServer;
	/** The address for people. */
	readonly address: string;
	readonly #surroundings: ServerSurroundings;
	#child: ChildProcess | undefined;

	constructor(plan: PlannedServer, surroundings: ServerSurroundings) {
		this.plan = plan;
		this.address = `http://127.0.0.1:${plan.port}`;
		this.#surroundings = surroundings;
	}

	/** The id of the process, while there is one. */
	get pid(): number | undefined {
		return this.#child?.pid;
	}

	/** Starts it; does not wait until it is ready, since servers wait for each other. */
	start(): void {
		const { dataDirectory, credentialFile, metaAddresses, versions } = this.#surroundings;
		const { name, service, region, port, internalPort, module } = this.plan;
		const version = versions[service];
		const child = spawn(
			process.execPath,
			[
				serverMain,
				`--listen=127.0.0.1:${port}`,
				`--internal-listen=127.0.0.1:${internalPort}`,
				`--data-dir=${join(dataDirectory, name)}`,
				`--deployment-service=${service}`,
				`--deployment-region=${region}`,
				`--deployment-credential-file=${credentialFile}`,
				...metaAddresses.map((address) => `--deployment-meta-addresses=${address}`),
				...(module === undefined ? [] : [`--module=${join(example, module)}`]),
				...(version === undefined ? [] : [`--deployment-version=${version}`]),
			],
			{ stdio: ["ignore", "ignore", "pipe"] },
		);
		child.stderr.pipe(createWriteStream(join(dataDirectory, `${name}.log`), { flags: "a" }));
		this.#child = child;
	}

	/** Resolves once it serves. */
	async ready(timeoutMs = 60_000): Promise<void> {
		const end = Date.now() + timeoutMs;
		while (Date.now() < end) {
			const response = await fetch(`${this.address}/readyz`).catch(() => undefined);
			if (response?.ok) {
				return;
			}
			if (this.#child?.exitCode != null) {
				throw new Error(`${this.plan.name} ended with ${this.#child.exitCode}: see its log`);
			}
			await new Promise((resolve) => setTimeout(resolve, 100));
		}
		throw new Error(`${this.plan.name} is not ready after ${timeoutMs} ms: see its log`);
	}

	/** Ends it, and resolves when it has ended. */
	async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
		const child = this.#child;
		if (child !== undefined && child.exitCode === null && child.signalCode === null) {
			const ended = once(child, "exit");
			child.kill(signal);
			await ended;
		}
		this.#child = undefined;
	}
}
