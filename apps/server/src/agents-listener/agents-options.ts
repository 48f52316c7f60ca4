import type { ListenAddress } from "../configuration/listen-address.ts";

/** The port for agents. */
export interface AgentsOptions {
	/** The address on which the server listens for agents. */
	readonly listen: ListenAddress;
	/**
	 * The file with the credentials of agents, one per line. All are accepted, so that they can be replaced while agents run.
	 * Read again when it changes.
	 */
	readonly credentialFile: string;
}
