import { Code, ConnectError } from "@connectrpc/connect";
import { good } from "@plinth/peering/testing";
import type { Resource } from "@plinth/proto";
import { nameKey } from "@plinth/resource";
import type { Write, WriteOutcome } from "./checks/write-check.ts";
import type { AgentClient, Cluster } from "./cluster/cluster.ts";
import { storageFailures } from "./cluster/follower.ts";
import { goodIdIn, goodType, isIn, names } from "./goods.ts";
import { clientLost } from "./network/client-transport.ts";
import type { Faults } from "./network/faults.ts";

const protocols = ["grpc", "connect", "json"] as const;

/** The partition of what users write. */
const partition = "default";

/** Options of `Users`. */
export interface UsersOptions {
	readonly cluster: Cluster;
	readonly faults: Faults;
	readonly onViolation: (text: string) => void;
}

/** Users of a cluster, who read and write through its agents, and check what they see. */
export class Users {
	/** All writes, in the order of their calls. */
	readonly writes: Write[] = [];
	readonly #cluster: Cluster;
	readonly #faults: Faults;
	readonly #onViolation: (text: string) => void;
	readonly #calls = new Set<Promise<void>>();
	#reads = 0;

	constructor({ cluster, faults, onViolation }: UsersOptions) {
		this.#cluster = cluster;
		this.#faults = faults;
		this.#onViolation = onViolation;
	}

	/** How many reads were checked. */
	get reads(): number {
		return this.#reads;
	}

	/** Begins a call. */
	call(): void {
		const faults = this.#faults;
		const client = this.#cluster.clientOf(faults.below(100), faults.pick(protocols) ?? "grpc");
		const name = faults.pick(names) ?? names[0];
		const drawn = faults.below(20);
		const begun = this.#one(client, name, drawn).catch((failure: unknown) => {
			if (!(failure instanceof ConnectError)) {
				this.#onViolation(`a call has failed with ${failure}`);
			}
		});
		this.#calls.add(begun);
		void begun.finally(() => this.#calls.delete(begun));
	}

	/** Resolves when no call is under way. */
	async finished(): Promise<void> {
		while (this.#calls.size > 0) {
			await Promise.all(this.#calls);
		}
	}

	async #one(client: AgentClient, name: string, drawn: number): Promise<void> {
		if (drawn < 8) {
			await this.#write(client, name, "");
		} else if (drawn < 11) {
			const stored = await this.#read(client, name);
			await this.#write(client, name, stored?.version ?? "");
		} else if (drawn < 13) {
			await this.#create(client, name);
		} else if (drawn < 15) {
			await this.#delete(client, name, "");
		} else if (drawn < 16) {
			const stored = await this.#read(client, name);
			await this.#delete(client, name, stored?.version ?? "");
		} else if (drawn < 18) {
			await this.#read(client, name);
		} else {
			await this.#list(client);
		}
	}

	/** Writes a good. A user who does not learn what became of a write with a version sends it again, as that is safe. */
	async #write(client: AgentClient, name: string, version: string): Promise<void> {
		const write = this.#begin("write", name);
		const request = { resource: { ...good(name, write.note), version } };
		write.outcome = await send(client, request);
		if (version !== "" && write.outcome.kind === "unknown") {
			const second = await send(client, request);
			write.outcome = second.kind === "acknowledged" ? second : write.outcome;
		}
	}

	async #create(client: AgentClient, name: string): Promise<void> {
		const write = this.#begin("create", name);
		write.outcome = await send(client, { resource: good(name, write.note), createOnly: true });
	}

	async #delete({ resources }: AgentClient, name: string, version: string): Promise<void> {
		const write = this.#begin("delete", name);
		const id = goodIdIn(partition, name);
		try {
			await resources.delete({ id, version });
			write.outcome = { kind: "acknowledged", version: undefined };
		} catch (failure) {
			write.outcome = outcomeOf(failure);
		}
	}

	#begin(method: Write["method"], name: string): Write {
		const note = `note ${this.#cluster.name} ${this.writes.length}`;
		const key = nameKey(goodIdIn(partition, name));
		const write: Write = { method, key, note, outcome: undefined };
		this.writes.push(write);
		return write;
	}

	/** Reads a good, which must be as it was at some time since the newest version that the agent had shown. */
	async #read({ agent, resources }: AgentClient, name: string): Promise<Resource | undefined> {
		const notBefore = agent.shown;
		const id = goodIdIn(partition, name);
		let found: Resource | undefined;
		try {
			found = (await resources.read({ id })).resource;
		} catch (failure) {
			if (!(failure instanceof ConnectError && failure.code === Code.NotFound)) {
				throw failure;
			}
		}
		const states = this.#cluster.history.statesFrom(agent.isRunning ? notBefore : 0);
		if (!states.some(({ goods }) => goods.get(nameKey(id))?.version === found?.version)) {
			this.#onViolation(
				`${name} was read at version ${found?.version}, after ${agent.name} had shown ${notBefore}`,
			);
		}
		agent.hasShown(found?.version ?? "0");
		this.#reads += 1;
		return found;
	}

	/** Lists all goods, in pages: as they were at one time since the newest version that the agent had shown. */
	async #list({ agent, resources }: AgentClient): Promise<void> {
		const notBefore = agent.shown;
		const tenancy = { partition, namespace: "*" };
		const pageSize = this.#faults.pick([0, 2, 3]) ?? 0;
		const found: Resource[] = [];
		let pageToken = "";
		do {
			const page = await resources.list({ type: goodType, tenancy, pageSize, pageToken });
			found.push(...page.resources);
			pageToken = page.nextPageToken;
		} while (pageToken !== "");
		const listed = textOf(found);
		const states = this.#cluster.history.statesFrom(agent.isRunning ? notBefore : 0);
		if (
			!states.some(({ goods }) => textOf([...goods.values()].filter(isIn(partition))) === listed)
		) {
			this.#onViolation(
				`a list has ${listed}, which no state had since ${agent.name} had shown ${notBefore}`,
			);
		}
		this.#reads += 1;
	}
}

/** Sends a write. @returns what its client knows then. */
async function send(
	{ agent, resources }: AgentClient,
	request: { readonly resource: Resource; readonly createOnly?: boolean },
): Promise<WriteOutcome> {
	try {
		const { resource } = await resources.write(request);
		const version = resource?.version ?? "";
		agent.hasShown(version);
		return { kind: "acknowledged", version };
	} catch (failure) {
		return outcomeOf(failure);
	}
}

function textOf(resources: readonly Resource[]): string {
	return resources
		.map(({ id, version }) => `${id?.name}@${version}`)
		.sort()
		.join(", ");
}

/**
 * What a client knows of a write that has failed: it was not executed, unless it has lost its connection to the agent, the
 * agent says that it may have been, or a server has lost the storage.
 */
function outcomeOf(failure: unknown): WriteOutcome {
	const error = ConnectError.from(failure);
	const isUnknown =
		error.rawMessage === clientLost ||
		storageFailures.includes(error.rawMessage) ||
		error.details.some((detail) => "type" in detail && detail.type === "google.rpc.ErrorInfo");
	return isUnknown ? { kind: "unknown" } : { kind: "not-executed", error: error.message };
}
