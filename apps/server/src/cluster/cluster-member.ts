import { randomUUID } from "node:crypto";
import type {
	ReportCall,
	ReportingCluster,
	ReportQuestion,
	ServerReport,
} from "@plinth/controller";
import type { ServerDirectory, ServerRecord } from "@plinth/storage";
import { serverName } from "../server-name.ts";
import { serverVersion } from "../server-version.ts";
import { OtherServers, type OtherServersOptions } from "./other-servers.ts";

/** Options of `ClusterMember`. */
export interface ClusterMemberOptions extends OtherServersOptions {
	readonly directory: ServerDirectory;
	/** What only the servers of the cluster learn of this one. */
	readonly secret: string;
}

/** This server as one of a cluster. */
export class ClusterMember implements ReportingCluster {
	readonly #directory: ServerDirectory;
	readonly #others: OtherServers;
	#own: ServerRecord;

	constructor(options: ClusterMemberOptions) {
		this.#directory = options.directory;
		this.#others = new OtherServers(options);
		this.#own = {
			id: randomUUID(),
			name: serverName,
			address: "",
			startedAtMs: options.clock.now(),
			version: serverVersion(),
			secret: options.secret,
		};
	}

	/** Its address is empty until it joins. */
	get own(): ServerRecord {
		return this.#own;
	}

	/** Records this server, which is reached at that URL, for the others. */
	join(address: string): void {
		this.#own = { ...this.#own, address };
		this.#directory.join(this.#own);
	}

	/** Tells the others that this server is gone. */
	leave(): Promise<void> {
		return this.#directory.leave();
	}

	/** Closes the connections to the others. */
	close(): void {
		this.#others.close();
	}

	askOthers<T>(call: ReportCall, question: ReportQuestion<T>): Promise<readonly ServerReport<T>[]> {
		return this.#others.ask(this.#own.id, call, question);
	}
}
