import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type PlannedServer, planOf } from "./plan.ts";
import { ServerProcess } from "./server-process.ts";

/** Options of the example. */
export interface RegionsOptions {
	readonly dataDirectory: string;
	/** The port of the first server. The other ports are derived from it. */
	readonly basePort: number;
	/** The version that a service announces at first. The default is its newest. */
	readonly versions?: Readonly<Record<string, string>>;
	/** Further internal addresses of servers of the meta deployments. */
	readonly moreMetaAddresses?: readonly string[];
	/** The flags for the storage of a deployment. The default is a folder for each. */
	readonly storage?: (deployment: string) => readonly string[];
}

/** All servers of the example. */
export class Regions {
	readonly servers: Map<string, ServerProcess>;
	readonly #create: (plan: PlannedServer) => ServerProcess;

	/** Creates the folder and the shared credential if missing. Does not start the servers. */
	constructor(options: RegionsOptions) {
		const { dataDirectory, basePort, versions = {}, moreMetaAddresses = [], storage } = options;
		const credentialFile = join(dataDirectory, "credential");
		mkdirSync(dataDirectory, { recursive: true });
		if (!existsSync(credentialFile)) {
			writeFileSync(credentialFile, `${randomBytes(24).toString("base64url")}\n`, { mode: 0o600 });
		}
		const plans = planOf(basePort);
		const metaAddresses = plans
			.filter(({ service }) => service === "meta")
			.map(({ internalPort }) => `http://127.0.0.1:${internalPort}`)
			.concat(moreMetaAddresses);
		const environment = {
			...{ dataDirectory, credentialFile, metaAddresses, versions },
			storage: storage ?? ((name: string) => [`--data-dir=${join(dataDirectory, name)}`]),
		};
		this.#create = (plan) => new ServerProcess(plan, environment);
		this.servers = new Map(plans.map((plan) => [plan.name, this.#create(plan)]));
	}

	/** The server of a deployment. */
	get(name: string): ServerProcess {
		const server = this.servers.get(name);
		if (server === undefined) {
			throw new Error(
				`unknown server ${name}, expected one of ${[...this.servers.keys()].join(", ")}`,
			);
		}
		return server;
	}

	/** Adds a server without starting it. */
	add(plan: PlannedServer): ServerProcess {
		const server = this.#create(plan);
		this.servers.set(server.name, server);
		return server;
	}

	/** Starts all servers concurrently, and resolves when all are ready. */
	async start(): Promise<void> {
		for (const server of this.servers.values()) {
			server.start();
		}
		await Promise.all([...this.servers.values()].map((server) => server.ready()));
	}

	/** Stops all servers. */
	async stop(): Promise<void> {
		await Promise.all([...this.servers.values()].map((server) => server.stop()));
	}
}
