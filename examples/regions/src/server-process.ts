import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { PlannedServer } from "./plan.ts";

const example = fileURLToPath(new URL("..", import.meta.url));
const serverMain = fileURLToPath(new URL("../../../apps/server/src/main.ts", import.meta.url));

/** The settings that all servers of the example share. */
export interface ServerEnvironment {
	/** Contains a folder and a log file per server. */
	readonly dataDirectory: string;
	readonly credentialFile: string;
	/** The internal addresses of the meta deployments. */
	readonly metaAddresses: readonly string[];
	/** The flags for the storage of a deployment. */
	readonly storage: (deployment: string) => readonly string[];
	/** The announced version by service, if it is not the newest one of the module. */
	readonly versions: Readonly<Record<string, string>>;
}

/** One server in a child process that can be stopped and restarted. */
export class ServerProcess {
	readonly plan: PlannedServer;
	/** Its own name, or that of its deployment. */
	readonly name: string;
	/** The address of the public API. */
	readonly address: string;
	readonly #environment: ServerEnvironment;
	#child: ChildProcess | undefined;

	constructor(plan: PlannedServer, environment: ServerEnvironment) {
		this.plan = plan;
		this.name = plan.server ?? plan.name;
		this.address = `http://127.0.0.1:${plan.port}`;
		this.#environment = environment;
	}

	/** The process id while it runs. */
	get pid(): number | undefined {
		return this.#child?.pid;
	}

	/** Starts the process. Does not wait until it is ready, since servers wait for each other. */
	start(): void {
		const { dataDirectory, credentialFile, metaAddresses, versions, storage } = this.#environment;
		const { name, service, region, port, internalPort, module } = this.plan;
		const version = versions[service];
		const child = spawn(
			process.execPath,
			[
				serverMain,
				`--listen=127.0.0.1:${port}`,
				`--internal-listen=127.0.0.1:${internalPort}`,
				...storage(name),
				`--deployment-service=${service}`,
				`--deployment-region=${region}`,
				`--deployment-credential-file=${credentialFile}`,
				...metaAddresses.map((address) => `--deployment-meta-addresses=${address}`),
				...(module === undefined ? [] : [`--module=${join(example, module)}`]),
				...(version === undefined ? [] : [`--deployment-version=${version}`]),
			],
			{ stdio: ["ignore", "ignore", "pipe"] },
		);
		child.stderr.pipe(createWriteStream(join(dataDirectory, `${this.name}.log`), { flags: "a" }));
		this.#child = child;
	}

	/** Resolves when the server is ready. */
	async ready(timeoutMs = 180_000): Promise<void> {
		const end = Date.now() + timeoutMs;
		while (Date.now() < end) {
			const response = await fetch(`${this.address}/readyz`).catch(() => undefined);
			if (response?.ok) {
				return;
			}
			if (this.#child?.exitCode != null) {
				throw new Error(`${this.name} exited with code ${this.#child.exitCode}: see its log`);
			}
			await new Promise((resolve) => setTimeout(resolve, 100));
		}
		throw new Error(`${this.name} is not ready after ${timeoutMs} ms: see its log`);
	}

	/** Sends the signal, and resolves when the process has exited. */
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
