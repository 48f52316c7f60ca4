import { addressesIn } from "../shadow/endpoint-addresses.ts";
import { ResourceShadow, recordOf } from "../shadow/shadow-records.ts";
import type { AuthoritativeStorage } from "./authoritative-storage.fixture.ts";
import type { ServerProcess } from "./server-process.fixture.ts";
import type { SimulationContext } from "./simulation-context.fixture.ts";

/** Options of a `ServerGroup`. */
export interface ServerGroupOptions<Process extends ServerProcess> {
	/** The name of the deployment. */
	readonly name: string;
	readonly authoritative: AuthoritativeStorage;
	/** Creates a server. It has not started yet. */
	readonly create: () => Process;
}

/** The servers of a deployment, which start and crash. */
export class ServerGroup<Process extends ServerProcess> {
	readonly #sim: SimulationContext;
	readonly #options: ServerGroupOptions<Process>;
	/** The number of servers to start once it is resumed; `undefined` while it is not halted. */
	#halted: number | undefined;
	running: readonly Process[] = [];

	constructor(sim: SimulationContext, options: ServerGroupOptions<Process>) {
		this.#sim = sim;
		this.#options = options;
	}

	/** Starts a server, once the group is not halted. */
	start(): void {
		if (this.#halted !== undefined) {
			this.#halted += 1;
			return;
		}
		const server = this.#options.create();
		this.running = [...this.running, server];
		server.start();
		this.#sim.trace.add(this.#options.name, () => "a server starts");
	}

	/** Stops a server abruptly. */
	crash(server: { crash(): void }): void {
		this.#sim.trace.add(this.#options.name, () => "a server crashes");
		this.running = this.running.filter((each) => each !== server);
		server.crash();
	}

	/** Crashes all servers. None starts until `resume`. */
	halt(): void {
		this.#halted = 0;
		for (const server of this.running) {
			this.crash(server);
			this.#halted += 1;
		}
	}

	/** Starts the servers that `halt` has crashed, and those that were to start since. */
	resume(): void {
		const servers = this.#halted ?? 0;
		this.#halted = undefined;
		for (let started = 0; started < servers; started++) {
			this.start();
		}
	}

	/** Where servers listen, as the storage records it. */
	recorded(): readonly string[] {
		return [...this.#options.authoritative.all()].flatMap((resource) => {
			const isRecord = resource.id?.type?.kind === ResourceShadow.type.kind;
			const record = isRecord ? recordOf(resource).record : undefined;
			return record?.case === "endpoint" ? [addressesIn(record.value).direct] : [];
		});
	}
}
